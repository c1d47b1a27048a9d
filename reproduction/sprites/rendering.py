"""Pictures from latent classes.

A pixel is lit where its centre lies inside the outline. A horizontal line through pixel centres meets an outline in at
most two stretches, and which stretches depends on shape, scale, orientation and the height of the line alone: they are
computed once for every height that occurs. A row of a picture is then 64 bits, set between rounded ends.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ciplearn.scm.kinds import Array
from reproduction.sprites.latents import FACTORS, SHAPES, SIZES, checked_latents, factor_values
from reproduction.sprites.outlines import ellipse, heart, square, turned

SIDE = 64

_OUTLINES = {"square": square, "ellipse": ellipse, "heart": heart}

# A sprite's centre at position 0, and how far position 1 is from there.
_START, _RANGE = 16.0, 32.0

# No sprite reaches farther from its centre; the centre's row is _START + position class, and up to one more.
_FIRST_ROW, _N_ROWS = 1, 31

# Stretches that a line can meet an outline in: the heart has a notch.
_STRETCHES = 2

_IMAGES_AT_ONCE = 4096


def render(latents: Any) -> Array:  # (..., 6) -> (..., 64, 64)
    """Return pictures of 0 and 1, first axis down and second to the right, as in the original file.

    Parameters
    ----------
    latents : array of whole numbers, shape (..., 6)
        Classes of color, shape, scale, orientation, x_pos, y_pos, each from 0; see `FACTORS` and `SIZES`.

    Examples
    --------
    >>> from reproduction import sprites
    >>> sprites.render([[0, 2, 5, 7, 20, 11]]).shape
    (1, 64, 64)
    """
    classes = checked_latents(latents)
    flat = classes.reshape(-1, len(FACTORS))
    pictures = np.empty((len(flat), SIDE, SIDE), dtype=np.uint8)
    for start in range(0, len(flat), _IMAGES_AT_ONCE):
        piece = flat[start : start + _IMAGES_AT_ONCE]
        # Most significant byte first: the leftmost pixel is the highest bit.
        rows_of_bytes = _bits(piece).astype(">u8").view(np.uint8)
        pictures[start : start + len(piece)] = np.unpackbits(rows_of_bytes, axis=1).reshape(-1, SIDE, SIDE)
    return pictures.reshape(*classes.shape[:-1], SIDE, SIDE)


def _bits(classes: Array) -> Array:  # (n, 6) -> (n, 64)
    shape, scale, orientation, x, y = classes.T[1:]
    ends = _stretches()[shape, scale, orientation, y]  # (n, rows, stretches, 2)
    centre = _START + _RANGE * factor_values()["x_pos"][x]
    # Column i is lit if start <= i + 1/2 < end.
    columns = np.ceil(ends + (centre - 0.5)[:, None, None, None]).astype(np.uint64)
    edges = np.left_shift(np.uint64(1), SIDE - columns, dtype=np.uint64)
    rows = np.zeros((len(classes), SIDE), dtype=np.uint64)
    places = y[:, None] + np.arange(_FIRST_ROW, _FIRST_ROW + _N_ROWS)
    # All bits from the start on, less those from the end on.
    np.put_along_axis(rows, places, (edges[..., 0] - edges[..., 1]).sum(axis=2, dtype=np.uint64), axis=1)
    return rows


@cache
def _stretches() -> Array:  # (shapes, scales, orientations, y positions, rows, stretches, 2)
    """Start and end, from the sprite's centre, of what each row of pixels sees of the outline; 0 and 0 for nothing."""
    values = factor_values()
    row_centres = np.arange(SIZES[5])[:, None] + np.arange(_FIRST_ROW, _FIRST_ROW + _N_ROWS) + 0.5
    heights = row_centres - _START - _RANGE * values["y_pos"][:, None]
    table = np.zeros((*SIZES[1:4], *heights.shape, _STRETCHES, 2))
    for s, name in enumerate(SHAPES):
        outline = _OUTLINES[name]()
        for o, angle in enumerate(values["orientation"]):
            upright = turned(outline, angle)
            for size, factor in enumerate(values["scale"]):
                table[s, size, o] = _crossings(factor * upright, heights.ravel()).reshape(table.shape[3:])
    table.setflags(write=False)
    return table


def _crossings(polygon: Array, heights: Array) -> Array:  # (m, 2), (h,) -> (h, 2 stretches)
    """Where horizontal lines cross a polygon, from left to right, followed by zeros."""
    found = [np.interp(heights, *chain, left=np.nan, right=np.nan) for chain in _monotone_chains(polygon)]
    crossings = np.full((len(heights), 2 * _STRETCHES), np.nan)
    crossings[:, : len(found)] = np.sort(np.stack(found, axis=1), axis=1)[:, : 2 * _STRETCHES]  # NaN sorts last
    return np.nan_to_num(crossings)


def _monotone_chains(polygon: Array) -> list[tuple[Array, Array]]:
    """Cut a closed polygon where it turns up or down; each piece as rising heights and their x."""
    direction = np.sign(np.roll(polygon[:, 1], -1) - polygon[:, 1])
    # Start at a turn, so that no piece is cut in two by the start of the list.
    start = int(np.flatnonzero(direction != np.roll(direction, 1))[0])
    direction, corners = np.roll(direction, -start), np.roll(polygon, -start, axis=0)
    corners = np.concatenate([corners, corners[:1]])
    turns = [0, *(np.flatnonzero(np.diff(direction)) + 1), len(direction)]
    chains = []
    for first, last in pairwise(turns):
        if direction[first]:
            piece = corners[first : last + 1][:: int(direction[first])]
            chains.append((piece[:, 1], piece[:, 0]))
    return chains
