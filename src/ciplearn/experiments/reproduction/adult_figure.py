"""The figure of the Adult study: accuracy and VCF over gamma, and one against the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ciplearn.display.marks import baseline_points
from ciplearn.experiments.reproduction import drawing
from ciplearn.experiments.reproduction.adult_models import BASELINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELS = {"accuracy": "accuracy on test rows", "vcf": "variance of counterfactuals (VCF)"}

# VCFs below this are drawn as zero: nobody could tell them apart.
_ZERO = 1e-6


def figure(table: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """Draw three panels."""
    drawn, axes = drawing.panels(3, width=4.5, height=3.9)
    against, accuracy, spread = axes[0]
    means = table.groupby("method")[["vcf", "accuracy"]].mean()
    for method in methods:
        chosen = table[table["method"] == method]
        drawing.curve(against, chosen, "vcf", "accuracy", method)
        for ax, measure in ((accuracy, "accuracy"), (spread, "vcf")):
            drawing.curve(ax, chosen.assign(strength=chosen["gamma"]), "strength", measure, method, labelled=False)
    baseline_points(against, {name: (means["vcf"][name], means["accuracy"][name]) for name in BASELINES})
    colours = {str(line.get_label()): line.get_color() for line in against.lines}
    against.set_xlabel(_LABELS["vcf"])
    against.set_ylabel(_LABELS["accuracy"])
    for ax, measure in ((accuracy, "accuracy"), (spread, "vcf")):
        _over_gamma(ax, table, _LABELS[measure])
        for name in BASELINES:
            ax.axhline(means[measure][name], color=colours[name], linestyle="--", linewidth=1.2, zorder=2)
    spread.set_yscale("symlog", linthresh=_ZERO)
    spread.set_ylim(bottom=0)
    drawing.legend_below(drawn, against, 6)
    return drawn


def _over_gamma(ax: Axes, table: pd.DataFrame, label: str) -> None:
    ax.set_xscale("symlog", linthresh=float(table.loc[table["gamma"] > 0, "gamma"].min()))
    ax.set_xlim(left=0)
    ax.set_xlabel("γ")
    ax.set_ylabel(label)
