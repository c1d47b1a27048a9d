"""The latent factors of dSprites: their names, their values, and the place of each combination in the original file."""

from __future__ import annotations

from typing import Any

import numpy as np

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm.kinds import Array

# In the original's order; an image's number counts through the classes with the last factor fastest.
FACTORS = ("color", "shape", "scale", "orientation", "x_pos", "y_pos")
SIZES = (1, 3, 6, 40, 32, 32)
SHAPES = ("square", "ellipse", "heart")
N_IMAGES = 737_280

_PLACE_VALUES = np.array([np.prod(SIZES[place + 1 :], dtype=np.int64) for place in range(len(SIZES))])


def factor_values() -> dict[str, Array]:
    """Return the value of each class of each factor, as in the original file; orientation is in radians.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.factor_values()["scale"].tolist()
    [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    """
    return {
        "color": np.array([1.0]),
        "shape": np.array([1.0, 2.0, 3.0]),
        "scale": np.linspace(0.5, 1.0, 6),
        "orientation": np.linspace(0.0, 2 * np.pi, 40),
        "x_pos": np.linspace(0.0, 1.0, 32),
        "y_pos": np.linspace(0.0, 1.0, 32),
    }


def latent_values(latents: Any) -> Array:  # (..., 6) classes -> (..., 6) values
    """Return the values of latent classes.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.latent_values([[0, 0, 5, 0, 0, 0]]).tolist()
    [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]
    """
    classes = checked_latents(latents)
    tables = factor_values()
    return np.stack([tables[name][classes[..., place]] for place, name in enumerate(FACTORS)], axis=-1)


def index_of(latents: Any) -> Array:  # (..., 6) -> (...)
    """Return the number, in the original file, of the image with each row of latent classes.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.index_of([[0, 0, 0, 0, 0, 1]]).tolist()
    [1]
    """
    return np.asarray(checked_latents(latents) @ _PLACE_VALUES)


def latents_of(index: Any) -> Array:  # (...) -> (..., 6)
    """Return the latent classes of images by their number in the original file.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.latents_of([0, 1]).tolist()
    [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]]
    """
    numbers = _whole_numbers(index, "index")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= N_IMAGES):
        bad = numbers[(numbers < 0) | (numbers >= N_IMAGES)].flat[0]
        raise InputError(f"index must lie in 0..{N_IMAGES - 1}, got {bad}; dSprites has {N_IMAGES} images.")
    return numbers[..., None] // _PLACE_VALUES % np.array(SIZES)


def checked_latents(latents: Any) -> Array:  # (..., 6)
    """Return latent classes as whole numbers, each within its factor, or raise."""
    classes = _whole_numbers(latents, "latents")
    if classes.ndim == 0 or classes.shape[-1] != len(FACTORS):
        raise InputError(
            f"latents must have {len(FACTORS)} entries per row ({', '.join(FACTORS)}), got shape {classes.shape}; "
            f"pass an array of shape (n, {len(FACTORS)})."
        )
    outside = (classes < 0) | (classes >= np.array(SIZES))
    if outside.any():
        place = int(np.argwhere(outside)[0][-1])
        bad = classes[..., place][outside[..., place]].flat[0]
        raise InputError(
            f"{FACTORS[place]} must be a class in 0..{SIZES[place] - 1}, got {bad} in "
            f"{int(outside[..., place].sum())} rows; classes count from 0."
        )
    return classes


def _whole_numbers(values: Any, name: str) -> Array:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name} must hold whole numbers, got {type(values).__name__}; pass an array.") from error
    if array.dtype.kind not in "iuf":
        raise InputTypeError(f"{name} must hold whole numbers, got {array.dtype}; pass classes as numbers.")
    broken = ~np.isfinite(array) | (array != np.round(array))
    if broken.any():
        raise InputTypeError(
            f"{name} must hold whole numbers, got {array.dtype} such as {array[broken].flat[0].item()!r}; "
            "pass classes, not values."
        )
    return array.astype(np.int64)
