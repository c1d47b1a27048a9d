"""One look for all figures: methods have colours, canvases have no window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn.experiments.reproduction.methods import DEFAULT, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {PAPER: "#c8553d", DEFAULT: "#2f6f9f"}
LABELS = {PAPER: "paper's penalty and network", DEFAULT: "ciplearn's default"}
MARKERS = {PAPER: "o", DEFAULT: "s"}
_GREY, _GRID = "#3a4250", "#d8dce2"
_RIVAL_MARKERS, _RIVAL_COLOURS = ("^", "D", "v", "P"), ("#6b7a3a", "#8a5a9e", "#b07d2b", "#4f5d75")


def panels(columns: int, rows: int = 1, *, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with no window and its axes, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        ax.grid(color=_GRID, linewidth=0.6)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    return figure, [list(row) for row in axes]


def curve(ax: Axes, table: pd.DataFrame, x: str, y: str, method: str, *, labelled: bool = True) -> None:
    """Draw means over seeds with their standard errors, gamma by gamma."""
    grouped = table.groupby("gamma")[[x, y]]
    means, errors = grouped.mean(), (grouped.std(ddof=1) / np.sqrt(grouped.count())).fillna(0)
    ax.errorbar(
        means[x],
        means[y],
        xerr=errors[x],
        yerr=errors[y],
        color=COLOURS[method],
        marker=MARKERS[method],
        markersize=5,
        linewidth=1.6,
        elinewidth=0.9,
        capsize=2,
        label=LABELS[method],
        zorder=3,
    )
    ax.margins(x=0.09, y=0.07)
    if labelled:
        _label_gammas(ax, means, x, y, method)


def rivals(ax: Axes, points: dict[str, tuple[float, float]]) -> None:
    """Mark other predictors, each (x, y)."""
    for number, (name, (x, y)) in enumerate(points.items()):
        ax.plot(
            [x],
            [y],
            linestyle="none",
            marker=_RIVAL_MARKERS[number % len(_RIVAL_MARKERS)],
            color=_RIVAL_COLOURS[number % len(_RIVAL_COLOURS)],
            markersize=9,
            label=name,
            zorder=4,
        )


def boxes(ax: Axes, table: pd.DataFrame, measure: str, methods: Sequence[str]) -> None:
    """Draw one box a gamma and method: quartiles and median over seeds, whiskers within 1.5 interquartile ranges."""
    gammas = sorted(table["gamma"].unique())
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        chosen = table[table["method"] == method]
        values = [chosen.loc[chosen["gamma"] == gamma, measure].to_numpy() for gamma in gammas]
        places = np.arange(len(gammas)) + (number - (len(methods) - 1) / 2) * width
        drawn: dict[str, Any] = ax.boxplot(
            values, positions=list(places), widths=0.8 * width, patch_artist=True, manage_ticks=False
        )
        for box in drawn["boxes"]:
            box.set(facecolor=COLOURS[method], alpha=0.55, edgecolor=COLOURS[method])
        for line in (*drawn["whiskers"], *drawn["caps"]):
            line.set(color=COLOURS[method])
        for line in drawn["medians"]:
            line.set(color=_GREY, linewidth=1.2)
        for dots in drawn["fliers"]:
            dots.set(marker=".", markersize=3, markeredgecolor=COLOURS[method])
        ax.plot([], [], color=COLOURS[method], linewidth=6, alpha=0.55, label=LABELS[method])
    ax.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    ax.set_xlabel("γ")


def legend_below(figure: Figure, ax: Axes, columns: int) -> None:
    """One legend for all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def _label_gammas(ax: Axes, means: pd.DataFrame, x: str, y: str, method: str) -> None:
    # Each method has its side of the curve, and labels keep their distance from the last one.
    place, side = ((6, 4), "left") if method == PAPER else ((-5, -11), "right")
    span_x, span_y = (float(np.ptp(means[name])) or 1.0 for name in (x, y))
    taken: list[tuple[float, float]] = []
    for gamma, left, up in zip(means.index, means[x], means[y], strict=True):
        if any(abs(left - a) / span_x + abs(up - b) / span_y < 0.12 for a, b in taken):
            continue
        taken.append((left, up))
        ax.annotate(
            f"γ={gamma:g}",
            (left, up),
            xytext=place,
            textcoords="offset points",
            ha=side,
            fontsize=7.5,
            color=COLOURS[method],
        )
