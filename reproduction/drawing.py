"""One look for all figures: methods have colours, and no window is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ciplearn.display.frontier import bare, error_curve, label_gammas
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LINE
from reproduction.methods import DEFAULT, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

COLOURS = {PAPER: "#c8553d", DEFAULT: "#2f6f9f", INDEPENDENCE: "#2f6f9f", COUNTERFACTUAL: "#3c8d5a", LINE: "#8a8f98"}
LABELS = {
    PAPER: "paper's penalty and network",
    DEFAULT: "ciplearn's default",
    INDEPENDENCE: "independence route",
    COUNTERFACTUAL: "counterfactual route",
    LINE: "straight line from CF1",
}
MARKERS = {PAPER: "o", DEFAULT: "s", INDEPENDENCE: "s", COUNTERFACTUAL: "h", LINE: "."}
INK = "#3a4250"


def panels(columns: int, rows: int = 1, *, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its axes, row by row."""
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        bare(ax)
    return figure, [list(row) for row in axes]


def curve(ax: Axes, table: pd.DataFrame, x: str, y: str, method: str, *, labelled: bool = True) -> None:
    """Draw means over seeds with their standard errors, gamma by gamma."""
    grouped = table.groupby("gamma")[[x, y]]
    means, errors = grouped.mean(), (grouped.std(ddof=1) / np.sqrt(grouped.count())).fillna(0)
    error_curve(
        ax,
        means[x],
        means[y],
        errors[x],
        errors[y],
        colour=COLOURS[method],
        marker=MARKERS[method],
        label=LABELS[method],
    )
    ax.margins(x=0.09, y=0.07)
    if labelled:
        # Each method has its side of the curve.
        place, side = ((6, 4), "left") if method == PAPER else ((-5, -11), "right")
        look: dict[str, Any] = {"xytext": place, "ha": side, "fontsize": 7.5, "color": COLOURS[method]}
        label_gammas(ax, means.index, means[x], means[y], apart=0.12, **look)


def trade_off(ax: Axes) -> None:
    """Name the axes of error against variance of counterfactuals."""
    ax.set_xlabel("variance of counterfactuals (VCF)")
    ax.set_ylabel("mean squared error on test rows")


def boxes(
    ax: Axes,
    table: pd.DataFrame,
    measure: str,
    methods: Sequence[str],
    *,
    colours: Mapping[str, str] = COLOURS,
    labels: Mapping[str, str] = LABELS,
) -> None:
    """Draw one box per gamma and method: quartiles and median over seeds, whiskers within 1.5 interquartile ranges.

    Methods that have rows at a gamma stand there side by side.
    """
    gammas = sorted(table["gamma"].unique())
    rows = {key: part[measure].to_numpy() for key, part in table.groupby(["gamma", "method"])}
    present = {gamma: [method for method in methods if (gamma, method) in rows] for gamma in gammas}
    width = 0.8 / max(len(here) for here in present.values())
    for method in methods:
        colour, here = colours[method], [gamma for gamma in gammas if method in present[gamma]]
        beside = [present[gamma].index(method) - (len(present[gamma]) - 1) / 2 for gamma in here]
        drawn: dict[str, Any] = ax.boxplot(
            [rows[gamma, method] for gamma in here],
            positions=[gammas.index(gamma) + width * step for gamma, step in zip(here, beside, strict=True)],
            widths=0.8 * width,
            patch_artist=True,
            manage_ticks=False,
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, alpha=0.55, edgecolor=colour)
        for line in (*drawn["whiskers"], *drawn["caps"]):
            line.set(color=colour)
        # A box of one seed is its median and has no other colour.
        alone = all(len(rows[gamma, method]) == 1 for gamma in here)
        for line in drawn["medians"]:
            line.set(color=colour if alone else INK, linewidth=2.4 if alone else 1.2)
        for dots in drawn["fliers"]:
            dots.set(marker=".", markersize=3, markeredgecolor=colour)
        ax.plot([], [], color=colour, linewidth=6, alpha=0.55, label=labels[method])
    ax.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    ax.set_xlabel("γ")


def bars(ax: Axes, places: Sequence[float], groups: Any, width: float, colour: str, label: str) -> None:
    """Draw means of groups as bars, with the standard deviations within them."""
    deviations = groups.std(ddof=1).fillna(0)
    ax.bar(places, groups.mean(), width, yerr=deviations, capsize=2, alpha=0.85, color=colour, label=label)


def legend_below(figure: FigureBase, ax: Axes, columns: int, **look: Any) -> None:
    """One legend for all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, **look)
