"""The figure of the image study: boxes over gamma, and one sprite with its counterfactuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn.datasets.dsprites import pictures
from ciplearn.experiments.reproduction.dsprites_trainings import BY_VARIABLE, METHODS
from ciplearn.experiments.reproduction.methods import PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_FREE = "no penalty"
_COLOURS = {_FREE: "#6b7280", PAPER: "#c8553d", BY_VARIABLE: "#2f6f9f"}
_LABELS = {_FREE: "no penalty", PAPER: "the paper's HSCIC", BY_VARIABLE: "ResidualHSCIC, a kernel for each variable"}
_INK, _GRID = "#3a4250", "#d8dce2"

# Horizontal positions in the gallery, beside the sprite's own.
_SHOWN = (0, 5, 10, 21, 26, 31)


def figure(measures: pd.DataFrame, moved: pd.DataFrame, reference: float, chosen: float, seed: int) -> Figure:
    """Draw MSE and VCF over gamma, and below them the gallery.

    Parameters
    ----------
    measures : DataFrame
        Columns method, gamma, mse, vcf; one row a network.
    moved : DataFrame
        What each network says about one sprite at each position.
    reference : float
        Error of the mean outcome by shape and y_pos.
    chosen : float
        The gamma of the gallery, beside 0.
    seed : int
        Whose networks speak in the gallery.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10.5, 7.2), layout="constrained")
    FigureCanvasAgg(drawn)
    parts: Any = drawn.subfigures(2, 1, height_ratios=(3.2, 2.0))
    top, bottom = parts
    named = measures.assign(method=measures["method"].where(measures["gamma"] > 0, _FREE))
    left, right = top.subplots(1, 2)
    _boxes(left, named, "mse")
    _boxes(right, named, "vcf")
    left.axhline(reference, color=_INK, linestyle="--", linewidth=1, label="mean outcome by shape and y, VCF 0")
    left.set_title("Mean squared error on test pictures", loc="left", fontsize=10.5)
    right.set_title("Variance of counterfactuals (VCF)", loc="left", fontsize=10.5)
    handles, labels = left.get_legend_handles_labels()
    top.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    _gallery(
        bottom, moved[(moved["seed"] == seed) & ((moved["gamma"] == 0) | (moved["method"] == BY_VARIABLE))], chosen
    )
    return drawn


def _boxes(ax: Axes, table: pd.DataFrame, measure: str) -> None:
    gammas = sorted(table["gamma"].unique())
    for method in (_FREE, *METHODS):
        colour, chosen = _COLOURS[method], table[table["method"] == method]
        here = sorted(chosen["gamma"].unique())
        shift = {_FREE: 0.0, PAPER: -0.19, BY_VARIABLE: 0.19}[method]
        parts = ax.boxplot(
            [chosen.loc[chosen["gamma"] == gamma, measure].to_numpy() for gamma in here],
            positions=[gammas.index(gamma) + shift for gamma in here],
            widths=0.3,
            patch_artist=True,
            manage_ticks=False,
        )
        for box in parts["boxes"]:
            box.set(facecolor=colour, alpha=0.55, edgecolor=colour)
        for line in (*parts["whiskers"], *parts["caps"]):
            line.set(color=colour)
        for line in parts["medians"]:
            line.set(color=_INK, linewidth=1.4)
        for dots in parts["fliers"]:
            dots.set(marker=".", markersize=4, markeredgecolor=colour)
        ax.plot([], [], color=colour, linewidth=6, alpha=0.55, label=_LABELS[method])
    ax.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    ax.set_xlim(-0.6, len(gammas) - 0.4)
    ax.set_xlabel("γ")
    ax.set_yscale("log")
    ax.grid(axis="y", color=_GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _gallery(part: SubFigure, moved: pd.DataFrame, chosen: float) -> None:
    """One sprite as it was and as it would have been, with what two networks say under each picture."""
    factual = float(moved["factual"].iloc[0])
    places = sorted({*map(float, _SHOWN), factual})
    axes = part.subplots(2, 1 + len(places), height_ratios=(3, 1.3), width_ratios=(0.95, *[1] * len(places)))
    colours = [_INK, _COLOURS[_FREE], _COLOURS[BY_VARIABLE]]
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
        spine.set(color=_INK if marked else _GRID, linewidth=2.2 if marked else 1)
    ax.set_title(title, fontsize=9, weight="bold" if marked else "normal")


def _lines(ax: Axes, texts: list[str], colours: list[str], side: str) -> None:
    ax.set_axis_off()
    for row, (text, colour) in enumerate(zip(texts, colours, strict=True)):
        at = 1.0 if side == "right" else 0.5
        ax.text(at, 0.85 - 0.35 * row, text, transform=ax.transAxes, ha=side, va="center", fontsize=9.5, color=colour)
