"""Figure 2, left: what invariance costs on the first synthetic process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from reproduction import drawing
from reproduction.first_case import FIRST, PAPER_PRINTS, FrontierSettings, measure_first
from reproduction.methods import DEFAULT, METHODS, PAPER
from reproduction.statistics import plus_minus, trend
from reproduction.study import Claim, Comparison, Findings, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def judge(tables: Mapping[str, pd.DataFrame], settings: FrontierSettings) -> Findings:
    """Judge the trade-off."""
    table = tables["frontier"]
    return Findings(
        comparisons=(Comparison("On test rows, × 10³, mean ± standard deviation over seeds.", beside(table)),),
        claims=claims(table),
        figure=_figure(table),
        caption="Mean squared error against variance of counterfactuals; bars are standard errors over seeds",
        notes=(
            "The paper shows this result as a curve without numbers; its column holds what it prints about the same "
            "process elsewhere (its comparison with augmentation: 3000 rows, 100 epochs).",
        ),
    )


def claims(table: pd.DataFrame) -> tuple[Claim, ...]:
    """The trade-off."""
    found = []
    for method in METHODS:
        chosen = table[table["method"] == method]
        found.append(trend(chosen, "vcf", "VCF falls with gamma", method, rises=False))
        found.append(trend(chosen, "mse", "MSE rises with gamma", method, rises=True))
    return tuple(found)


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """One row per gamma: the paper's numbers and both methods'."""
    rows = []
    for gamma, group in table.groupby("gamma"):
        row = {"γ": f"{gamma:g}"}
        for measure, name in (("mse", "MSE"), ("vcf", "VCF")):
            row[f"{name}, printed"] = PAPER_PRINTS.get(float(gamma), {}).get(measure, "—")
            for method in (PAPER, DEFAULT):
                row[f"{name}, {method}"] = plus_minus(group.loc[group["method"] == method, measure], 1e3)
        rows.append(row)
    return pd.DataFrame(rows)


def _figure(table: pd.DataFrame) -> Figure:
    figure, axes = drawing.panels(1, width=6.4, height=4.4)
    ax = axes[0][0]
    for method in METHODS:
        drawing.curve(ax, table[table["method"] == method], "vcf", "mse", method)
    drawing.trade_off(ax)
    ax.legend(frameon=False)
    return figure


STUDY = Study(
    name="fig2-left",
    title="Figure 2, left: MSE against VCF",
    presets=FIRST,
    measure=measure_first,
    judge=judge,
    paper={"times 1e-3": {f"gamma={gamma:g}": numbers for gamma, numbers in PAPER_PRINTS.items()}},
)
