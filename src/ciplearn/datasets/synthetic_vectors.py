"""The paper's data-generating processes with a protected vector [quinzan2024]."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

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

    Examples
    --------
    >>> from ciplearn import datasets
    >>> datasets.multidimensional(3).columns("A")
    ['A[0]', 'A[1]', 'A[2]']
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
