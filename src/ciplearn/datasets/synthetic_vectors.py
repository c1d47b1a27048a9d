"""The paper's data-generating processes with a protected vector and with image latents [quinzan2024]."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, randint

from ciplearn._core.numbers import whole
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, StructuralCausalModel, Vector
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Parents


def multidimensional(size: int) -> StructuralCausalModel:
    """Return the model with a protected vector A of ``size`` numbers, in columns ``A[0]`` to ``A[size-1]``.

    Z ~ N(0, 1), A_i = Z² + ε_A,i, L = exp(−A_1/2) + Σ A_i sin(Z) + ε_L / 10, Y = exp(−A_2/2) Σ A_i + L Z + ε_Y / 10,
    with ε_A,i ~ N(0, 1) and ε_L, ε_Y ~ N(0, 0.1).

    Parameters
    ----------
    size : int
        At least 2: the equation of Y reads the second number.
    """
    size = whole(size, "size", minimum=2)

    def l_mean(p: Parents) -> Array:
        return np.exp(-p["A"][:, 0] / 2) + p["A"].sum(axis=1) * np.sin(p["Z"])

    def y_mean(p: Parents) -> Array:
        return np.exp(-p["A"][:, 1] / 2) * p["A"].sum(axis=1) + p["L"] * p["Z"]

    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> L, A -> L, Z -> Y, A -> Y, L -> Y"),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: p["Z"][:, None] ** 2),
            "L": lambda p, u: l_mean(p) + 0.1 * u,
            "Y": lambda p, u: y_mean(p) + 0.1 * u,
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.1), "Y": norm(0, 0.1)},
        inverses={"L": lambda p, v: 10 * (v - l_mean(p)), "Y": lambda p, v: 10 * (v - y_mean(p))},
        kinds={"A": Vector(size)},
    )


# How many values each image latent takes: shape from 1, all others from 0.
SHAPES, SCALES, ORIENTATIONS, POSITIONS, COLORS = 3, 6, 40, 32, 1


def image_latents() -> StructuralCausalModel:
    """Return the model of the image experiment without its images: whole numbers that choose a picture.

    shape in 1..3, y_pos in 0..31, color and orientation uniform; x_pos = round(x) with x ~ N(shape + y_pos, 1);
    scale = round((x_pos/24 + y_pos/24) shape + ε_S); Y = exp(shape) x_pos + scale² sin(y_pos) + ε_Y, with ε_S ~ N(0, 1)
    and ε_Y ~ N(0, 0.01). x_pos and scale are clipped to the values that the pictures have, 0..31 and 0..5. Rounding
    hides part of the noise: counterfactuals of x_pos and scale are draws from all noises that fit.
    """

    def scale(p: Parents, u: Array) -> Array:
        raw = (p["x_pos"] / 24 + p["y_pos"] / 24) * p["shape"] + u
        return np.clip(np.round(raw), 0, SCALES - 1)

    return StructuralCausalModel(
        CausalGraph.from_edges(
            "shape -> x_pos, y_pos -> x_pos, shape -> scale, x_pos -> scale, y_pos -> scale, shape -> Y, x_pos -> Y, "
            "scale -> Y, y_pos -> Y",
            nodes=["color", "orientation"],
        ),
        equations={
            "shape": Additive(),
            "y_pos": Additive(),
            "color": Additive(),
            "orientation": Additive(),
            "x_pos": lambda p, u: np.clip(np.round(p["shape"] + p["y_pos"] + u), 0, POSITIONS - 1),
            "scale": scale,
            "Y": Additive(lambda p: np.exp(p["shape"]) * p["x_pos"] + p["scale"] ** 2 * np.sin(p["y_pos"])),
        },
        noise={
            "shape": randint(1, 1 + SHAPES),
            "y_pos": randint(0, POSITIONS),
            "color": randint(0, COLORS),
            "orientation": randint(0, ORIENTATIONS),
            "x_pos": norm(),
            "scale": norm(),
            "Y": norm(0, 0.01),
        },
    )
