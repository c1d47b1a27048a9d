"""The figure of the Adult study: AUC against three measures of how much predictions hang on age and sex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ciplearn.display.frontier import baseline_points
from ciplearn.estimators.preparation import LINE
from reproduction import drawing
from reproduction.adult_models import AUTO, BASELINES, CURVES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = {
    "vcf": "variance of counterfactuals (VCF)",
    "relative": "VCF over the variance of predictions",
    "flips": "decisions that flip, at an equal rate",
}


def figure(table: pd.DataFrame) -> Figure:
    """Draw three panels."""
    drawn, axes = drawing.panels(len(_LABELS), width=4.5, height=4.1)
    means = table.groupby("method")[[*_LABELS, "auc"]].mean()
    for ax, (measure, label) in zip(axes[0], _LABELS.items(), strict=True):
        for method in CURVES:
            chosen = table[table["method"] == method]
            steps = chosen.assign(gamma=chosen["share" if method == LINE else "gamma"])
            drawing.curve(ax, steps, measure, "auc", method, labelled=False)
        points = (name for name in (*BASELINES, AUTO) if name in means.index)
        baseline_points(ax, {name: (means.loc[name, measure], means.loc[name, "auc"]) for name in points})
        ax.set_xlabel(label)
    axes[0][0].set_ylabel("area under the curve on test rows")
    drawing.legend_below(drawn, axes[0][0], 5)
    return drawn
