"""What every picture of a frontier is drawn with: one curve per method, baselines as points, labels that keep apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = "#d8dce2"
_BASELINE_COLOURS = ("#6b7a3a", "#8a5a9e", "#b07d2b", "#4f5d75", "#a3485f", "#2a8c8c")
_BASELINE_MARKERS = ("^", "D", "v", "P", "X", "*")


def bare(ax: Axes) -> None:
    """Leave a light grid and two sides."""
    ax.grid(color=_GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def error_curve(ax: Axes, x: Any, y: Any, x_error: Any, y_error: Any, *, colour: str, **look: Any) -> None:
    """Draw a line through points with error bars both ways; ``**look`` is for `Axes.errorbar`."""
    size: dict[str, Any] = {"markersize": 5, "linewidth": 1.6, "elinewidth": 0.9, "capsize": 2, "zorder": 3}
    ax.errorbar(x, y, xerr=x_error, yerr=y_error, color=colour, **size, **look)


def baseline_points(ax: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Mark other predictors, each (x, y)."""
    looks = cycle(zip(_BASELINE_COLOURS, _BASELINE_MARKERS, strict=True))
    for (name, (x, y)), (colour, marker) in zip(points.items(), looks, strict=False):
        ax.plot([x], [y], linestyle="none", marker=marker, color=colour, markersize=9, label=name, zorder=4)


def label_gammas(
    ax: Axes,
    gammas: Iterable[float],
    x: Any,
    y: Any,
    *,
    avoid: Iterable[tuple[float, float]] = (),
    apart: float,
    **look: Any,
) -> None:
    """Write gamma beside each point that keeps its distance from the last label and from the points to avoid.

    ``gammas``, ``x``, ``y``: one entry per point. ``apart``: the least distance, as a share of what the points span.
    ``**look``: for `Axes.annotate`: ``xytext`` in points, ``fontsize``, ``color`` and the like.
    """
    span_x, span_y = (float(np.ptp(np.asarray(values))) or 1.0 for values in (x, y))
    taken = list(avoid)
    for gamma, left, up in zip(gammas, x, y, strict=True):
        if any(abs(left - a) / span_x + abs(up - b) / span_y < apart for a, b in taken):
            continue
        taken.append((left, up))
        ax.annotate(f"γ = {gamma:g}", (left, up), textcoords="offset points", **look)
