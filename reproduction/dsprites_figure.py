"""The figure of the image study: boxes over gamma, and one sprite with its counterfactuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ciplearn.display.frontier import bare
from ciplearn.estimators.preparation import COUNTERFACTUAL
from reproduction.drawing import COLOURS, INK, boxes, legend_below
from reproduction.dsprites_trainings import BY_VARIABLE, METHODS
from reproduction.methods import DEFAULT, PAPER
from reproduction.sprites import pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_FREE = "no penalty"
_COLOURS = {
    _FREE: "#6b7280",
    PAPER: COLOURS[PAPER],
    BY_VARIABLE: COLOURS[DEFAULT],
    COUNTERFACTUAL: COLOURS[COUNTERFACTUAL],
}
_LABELS = {
    _FREE: "no penalty",
    PAPER: "the paper's HSCIC",
    BY_VARIABLE: "ResidualHSCIC, a kernel for each variable",
    COUNTERFACTUAL: "counterfactual route, pictures rendered",
}
_FRAME = "#d8dce2"

# Horizontal positions in the gallery, beside the sprite's own.
_SHOWN = (0, 5, 10, 21, 26, 31)


def figure(measures: pd.DataFrame, moved: pd.DataFrame, reference: float, chosen: float, seed: int) -> Figure:
    """Draw MSE and VCF over gamma, and below them the gallery.

    Parameters
    ----------
    measures : DataFrame
        Columns method, gamma, mse, vcf; one row per network.
    moved : DataFrame
        What each network says about one sprite at each position.
    reference : float
        Error of the mean outcome by shape and y_pos.
    chosen : float
        The gamma of the gallery, beside 0.
    seed : int
        Whose networks speak in the gallery.
    """
    drawn = Figure(figsize=(10.5, 7.2), layout="constrained")
    parts: Any = drawn.subfigures(2, 1, height_ratios=(3.2, 2.0))
    top, bottom = parts
    named = measures.assign(method=measures["method"].where(measures["gamma"] > 0, _FREE))
    left, right = top.subplots(1, 2)
    for ax, measure in ((left, "mse"), (right, "vcf")):
        bare(ax)
        boxes(ax, named, measure, (_FREE, *METHODS), colours=_COLOURS, labels=_LABELS)
        ax.set_yscale("log")
    left.axhline(reference, color=INK, linestyle="--", linewidth=1, label="mean outcome by shape and y, VCF 0")
    left.set_title("Mean squared error on test pictures", loc="left", fontsize=10.5)
    right.set_title("Variance of counterfactuals (VCF)", loc="left", fontsize=10.5)
    legend_below(top, left, 3, fontsize=9)
    _gallery(
        bottom, moved[(moved["seed"] == seed) & ((moved["gamma"] == 0) | (moved["method"] == COUNTERFACTUAL))], chosen
    )
    return drawn


def _gallery(part: SubFigure, moved: pd.DataFrame, chosen: float) -> None:
    """One sprite as it was and as it would have been, with what two networks say under each picture."""
    factual = float(moved["factual"].iloc[0])
    places = sorted({*map(float, _SHOWN), factual})
    axes = part.subplots(2, 1 + len(places), height_ratios=(3, 1.3), width_ratios=(0.95, *[1] * len(places)))
    colours = [INK, _COLOURS[_FREE], _COLOURS[COUNTERFACTUAL]]
    axes[0, 0].set_axis_off()
    _lines(axes[1, 0], ["true outcome", "γ = 0", f"γ = {chosen:g}"], colours, side="right")
    for column, place in enumerate(places, start=1):
        here, ours = moved[moved["x_pos"] == place], place == factual
        said = here.set_index("gamma")["prediction"]
        _picture(axes[0, column], pictures(here.iloc[:1])[0], f"x = {place:g}" + (", as it was" if ours else ""), ours)
        values = [f"{value:.0f}".replace("-", "−") for value in (here["Y"].iloc[0], said[0.0], said[chosen])]
        _lines(axes[1, column], values, colours, side="center")
    title = "One heart, had its x been different: pictures rendered, answers of two networks"
    part.suptitle(title, x=0.01, ha="left", fontsize=10.5)


def _picture(ax: Axes, picture: np.ndarray, title: str, marked: bool) -> None:
    ax.imshow(picture, cmap="gray_r", vmin=0, vmax=1.3, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set(color=INK if marked else _FRAME, linewidth=2.2 if marked else 1)
    ax.set_title(title, fontsize=9, weight="bold" if marked else "normal")


def _lines(ax: Axes, texts: list[str], colours: list[str], side: str) -> None:
    ax.set_axis_off()
    for row, (text, colour) in enumerate(zip(texts, colours, strict=True)):
        at = 1.0 if side == "right" else 0.5
        ax.text(at, 0.85 - 0.35 * row, text, transform=ax.transAxes, ha=side, va="center", fontsize=9.5, color=colour)
