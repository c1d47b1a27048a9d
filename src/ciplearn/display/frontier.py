"""`FrontierDisplay`: loss against invariance, gamma by gamma; and what every picture of a frontier is drawn with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ciplearn._core.arguments import finite, mapping_of
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.learning import Frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = "#d8dce2"
_BASELINE_COLOURS = ("#6b7a3a", "#8a5a9e", "#b07d2b", "#4f5d75", "#a3485f", "#2a8c8c")
_BASELINE_MARKERS = ("^", "D", "v", "P", "X", "*")
_LINE, _CHOSEN = "#2f6f9f", "#c8553d"
_BESIDE = ("#7a5195", "#3d8a5f", "#9a6b1f")
_LABELS = {
    "loss": "loss on held-out rows",
    "score": "score on held-out rows",
    "penalty": "penalty on held-out rows",
    "vcf": "variance of counterfactuals (VCF)",
}


@dataclass(eq=False, repr=False)
class FrontierDisplay:
    """A frontier as a curve from gamma = 0 to the strict end, with error bars over seeds.

    Parameters
    ----------
    frontier : Frontier
    cost, violation : str
        The measures on the vertical and on the horizontal axis.
    baselines : mapping of name to (violation, cost), optional
        Points to compare with.
    chosen : float, optional
        A gamma to mark, one of those tried.
    beside : mapping of name to Frontier, optional
        Further frontiers, drawn as dashed curves: one trained under doubt, for example. Measure all of them alike.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, FrontierDisplay, datasets, frontier
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=2)
    >>> curve = frontier(model, table.drop(columns="Y"), table["Y"], gammas=[0, 1], seeds=[0])
    >>> display = FrontierDisplay.from_frontier(curve, chosen=1).plot()
    >>> display.ax_.get_xlabel()
    'penalty on held-out rows'
    """

    frontier: Frontier
    _: KW_ONLY
    cost: str = "loss"
    violation: str = "penalty"
    baselines: Mapping[str, tuple[float, float]] | None = None
    chosen: float | None = None
    beside: Mapping[str, Frontier] | None = None

    def __post_init__(self) -> None:
        if self.chosen is not None:
            self.chosen = _tried(self.frontier, self.chosen)

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier,
        *,
        cost: str = "loss",
        violation: str | None = None,
        baselines: Mapping[str, tuple[float, float]] | None = None,
        chosen: float | None = None,
        beside: Mapping[str, Frontier] | None = None,
    ) -> Self:
        """Choose the axes: the variance of counterfactuals where it was measured, else the penalty."""
        for drawn in (frontier, *mapping_of(beside, "beside").values()):
            if not isinstance(drawn, Frontier):
                kind = type(drawn).__name__
                raise InputTypeError(f"A Frontier is drawn, got {kind}; pass what frontier(...) returns.")
        if violation is None:
            violation = "vcf" if "vcf" in frontier.measures else "penalty"
        for drawn in (frontier, *(beside or {}).values()):
            for name in (cost, violation):
                if not isinstance(name, str) or name not in drawn.measures:
                    raise InputError(f"{name!r} was not measured, there are {list(drawn.measures)}; name one of these.")
        mapping_of(baselines, "baselines")
        return cls(frontier, cost=cost, violation=violation, baselines=baselines, chosen=chosen, beside=beside)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on ``ax``, or on a new figure: then ``ax_`` and ``figure_`` are what was drawn on."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
        table = self.frontier.summary()
        self._curve(ax, self.frontier, colour=_LINE, marker="o", label="gamma from 0 up")
        for (name, frontier), colour in zip((self.beside or {}).items(), cycle(_BESIDE)):
            self._curve(ax, frontier, colour=colour, marker="s", label=name, linestyle="--")
        baselines = self.baselines or {}
        # Labels keep clear of the baselines too.
        look: dict[str, Any] = {"xytext": (7, 5), "fontsize": 8, "color": "#3a4250"}
        label_gammas(
            ax, table["gamma"], table[self.violation], table[self.cost], avoid=baselines.values(), apart=0.09, **look
        )
        if self.chosen is not None:
            row = table[table["gamma"] == self.chosen].iloc[0]
            ring: dict[str, Any] = {"s": 170, "facecolors": "none", "edgecolors": _CHOSEN, "linewidths": 2, "zorder": 5}
            ax.scatter(row[self.violation], row[self.cost], label=f"chosen, γ = {row['gamma']:g}", **ring)
        baseline_points(ax, baselines)
        self._draw_straight_line(ax, table)
        ax.set_xlabel(_LABELS.get(self.violation, self.violation))
        ax.set_ylabel(_LABELS.get(self.cost, self.cost))
        ax.margins(x=0.08, y=0.08)
        bare(ax)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curve(self, ax: Axes, frontier: Frontier, **look: Any) -> None:
        table, axes = frontier.summary(), (self.violation, self.cost)
        errors = (table[f"{name}_error"].fillna(0) for name in axes)
        error_curve(ax, *(table[name] for name in axes), *errors, **look)

    def _draw_straight_line(self, ax: Axes, table: Any) -> None:
        """Draw the reference, g + s (f − g) with g = CF1 and f at gamma 0.

        Its VCF is s² times f's, its loss about that of f plus (1 − s)² times what g loses to f.
        """
        strict, free = (self.baselines or {}).get("CF1"), table[table["gamma"] == 0]
        if strict is None or self.violation != "vcf" or free.empty:
            return
        s = np.linspace(0, 1, 60)
        vcf, loss = float(free[self.violation].iloc[0]), float(free[self.cost].iloc[0])
        look: dict[str, Any] = {"color": "#8a8f98", "linestyle": "--", "linewidth": 1.2, "zorder": 1}
        ax.plot(s**2 * vcf, loss + (1 - s) ** 2 * (strict[1] - loss), label="straight line from CF1", **look)


def _tried(frontier: Frontier, gamma: float) -> float:
    """Return the gamma of the frontier that this one is, up to rounding."""
    gamma = finite(gamma, "chosen")
    gammas = sorted({point.gamma for point in frontier.points})
    for tried in gammas:
        if math.isclose(tried, gamma, rel_tol=1e-6):
            return tried
    names = ", ".join(f"{gamma:g}" for gamma in gammas)
    raise InputError(f"chosen must be a gamma that was tried, got {gamma:g}; pass one of {names}.")


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

    ``apart`` is the least distance, as a share of what the points span; ``**look`` is for `Axes.annotate`.
    """
    span_x, span_y = (float(np.ptp(np.asarray(values))) or 1.0 for values in (x, y))
    taken = list(avoid)
    for gamma, left, up in zip(gammas, x, y, strict=True):
        if any(abs(left - a) / span_x + abs(up - b) / span_y < apart for a, b in taken):
            continue
        taken.append((left, up))
        ax.annotate(f"γ = {gamma:g}", (left, up), textcoords="offset points", **look)
