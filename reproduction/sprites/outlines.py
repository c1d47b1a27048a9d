"""The outlines of the three shapes, fitted to frames of the original [matthey2017].

Coordinates of a sprite of scale 1 and orientation 0 around its own centre, in pixels, with y pointing down.
"""

from __future__ import annotations

import numpy as np

from ciplearn.scm.kinds import Array

_HALF_SIDE = 9.59975
_RADIUS, _STRETCH = 9.6, 1.33
_ELLIPSE_CORNERS, _HEART_CORNERS = 90, 176


def square() -> Array:  # (4, 2)
    """|x| and |y| below half a side."""
    return _HALF_SIDE * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


def ellipse() -> Array:  # (90, 2)
    """A polygon on the ellipse with semi-axes 9.6 · 1.33 and 9.6 / 1.33."""
    t = _turn(_ELLIPSE_CORNERS)
    return np.stack([_RADIUS * _STRETCH * np.cos(t), _RADIUS / _STRETCH * np.sin(t)], axis=1)


def heart() -> Array:  # (176, 2)
    """A polygon on x = 9.6 sin³t, y = −(19.2/29)(13 cos t − 5 cos 2t − 2 cos 3t − cos 4t) − 1.44."""
    t = _turn(_HEART_CORNERS)
    height = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([_RADIUS * np.sin(t) ** 3, -2 * _RADIUS / 29 * height - 0.15 * _RADIUS], axis=1)


def turned(outline: Array, angle: float) -> Array:  # (m, 2)
    """Return the outline at an orientation, in the image's own directions."""
    cos, sin = np.cos(angle), np.sin(angle)
    return outline @ np.array([[cos, -sin], [sin, cos]])


def _turn(corners: int) -> Array:
    return np.arange(corners) * (2 * np.pi / corners)
