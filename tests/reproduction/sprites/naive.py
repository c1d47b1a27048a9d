"""One picture from the definition: a pixel is lit where its centre lies inside the outline, by counting crossings."""

import numpy as np

from reproduction.sprites.outlines import ellipse, heart, square

OUTLINES = (square(), ellipse(), heart())


def naive_picture(latents):
    _, shape, scale, orientation, x, y = latents
    size, angle = np.linspace(0.5, 1, 6)[scale], np.linspace(0, 2 * np.pi, 40)[orientation]
    down, right = np.mgrid[0:64, 0:64] + 0.5
    dx, dy = right - 16 - 32 * x / 31, down - 16 - 32 * y / 31
    u = (np.cos(angle) * dx - np.sin(angle) * dy) / size
    v = (np.sin(angle) * dx + np.cos(angle) * dy) / size
    inside = np.zeros((64, 64), dtype=bool)
    corners = OUTLINES[shape]
    for (u1, v1), (u2, v2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if v1 != v2:
            inside ^= ((v1 > v) != (v2 > v)) & (u < u1 + (u2 - u1) * (v - v1) / (v2 - v1))
    return inside.astype(np.uint8)
