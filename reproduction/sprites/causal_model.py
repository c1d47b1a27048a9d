"""The image experiment's structural causal model [quinzan2024], and the pictures of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, randint

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, StructuralCausalModel
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Parents
from reproduction.sprites.latents import FACTORS, SIZES, checked_latents
from reproduction.sprites.rendering import render

_CLASSES = dict(zip(FACTORS, SIZES, strict=True))

# Rows count shapes from 1, as the equations need; all other columns are classes as they stand.
_FIRST_SHAPE = 1


def image_latents() -> StructuralCausalModel:
    """Return the model of the image experiment: whole numbers that choose a picture, and an outcome.

    shape in 1..3, y_pos in 0..31, color and orientation uniform; x_pos = round(x) with x ~ N(shape + y_pos, 1);
    scale = round((x_pos/24 + y_pos/24) shape + ε_S); Y = exp(shape) x_pos + scale² sin(y_pos) + ε_Y, with ε_S ~ N(0, 1)
    and ε_Y ~ N(0, 0.01). x_pos and scale are clipped to the values that the pictures have, 0..31 and 0..5.

    Rounding hides part of the noise: counterfactuals of rows are draws from all noises that fit. ``sample_units`` keeps
    the noise, and its units have one counterfactual each. `pictures` renders rows, factual and counterfactual alike.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sorted(sprites.image_latents().sample(2, random_state=0).columns)
    ['Y', 'color', 'orientation', 'scale', 'shape', 'x_pos', 'y_pos']
    """

    def x_pos(p: Parents, u: Array) -> Array:
        return np.clip(np.round(p["shape"] + p["y_pos"] + u), 0, _CLASSES["x_pos"] - 1)

    def scale(p: Parents, u: Array) -> Array:
        raw = (p["x_pos"] / 24 + p["y_pos"] / 24) * p["shape"] + u
        return np.clip(np.round(raw), 0, _CLASSES["scale"] - 1)

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
            "x_pos": x_pos,
            "scale": scale,
            "Y": Additive(lambda p: np.exp(p["shape"]) * p["x_pos"] + p["scale"] ** 2 * np.sin(p["y_pos"])),
        },
        noise={
            "shape": randint(_FIRST_SHAPE, _FIRST_SHAPE + _CLASSES["shape"]),
            "y_pos": randint(0, _CLASSES["y_pos"]),
            "color": randint(0, _CLASSES["color"]),
            "orientation": randint(0, _CLASSES["orientation"]),
            "x_pos": norm(),
            "scale": norm(),
            "Y": norm(0, 0.01),
        },
    )


def matched_latents(rows: pd.DataFrame) -> Array:  # (n, 6)
    """Match rows of the model with dSprites: the latent classes of the picture that shows each row.

    Parameters
    ----------
    rows : DataFrame
        With the columns color, shape (from 1), scale, orientation, x_pos and y_pos.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.matched_latents(sprites.image_latents().sample(2, random_state=0)).shape
    (2, 6)
    """
    if not isinstance(rows, pd.DataFrame):
        raise InputTypeError(f"rows must be a pandas DataFrame, got {type(rows).__name__}; pass the model's table.")
    missing = [name for name in FACTORS if name not in rows.columns]
    if missing:
        raise InputError(f"rows lacks the column {missing[0]!r}; a picture needs {', '.join(FACTORS)}.")
    table: Any = rows[list(FACTORS)].to_numpy(dtype=np.float64)
    return checked_latents(table - _FIRST_SHAPE * (np.array(FACTORS) == "shape"))


def pictures(rows: pd.DataFrame) -> Array:  # (n, 64, 64)
    """Render the picture of each row of the model.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.pictures(sprites.image_latents().sample(2, random_state=0)).shape
    (2, 64, 64)
    """
    return render(matched_latents(rows))
