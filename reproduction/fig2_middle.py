"""Figure 2, middle: a criterion without counterfactuals stands for the variance of counterfactuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from reproduction import drawing
from reproduction.first_case import FIRST, FrontierSettings, measure_first
from reproduction.methods import DEFAULT, METHODS, PAPER
from reproduction.statistics import agreement, plus_minus, within_gammas
from reproduction.study import Comparison, Findings, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CRITERIA = {"hscic": "HSCIC", "penalty": "own penalty"}


def judge(tables: Mapping[str, pd.DataFrame], settings: FrontierSettings) -> Findings:
    """Judge whether criteria and VCF agree."""
    table = tables["frontier"]
    claims = [
        agreement(table[table["method"] == method], "hscic", "vcf", "HSCIC and VCF agree", method) for method in METHODS
    ]
    claims += [
        within_gammas(
            table[table["method"] == method], "hscic", "vcf", "HSCIC and VCF agree also within one gamma", method
        )
        for method in METHODS
    ]
    default = table[table["method"] == DEFAULT]
    claims.append(agreement(default, "penalty", "vcf", "The penalty that was trained with and VCF agree", DEFAULT))
    return Findings(
        comparisons=(Comparison("On test rows, × 10³; the paper prints no numbers.", _summary(table)),),
        claims=tuple(claims),
        figure=_figure(table),
        caption="Criterion against variance of counterfactuals, one dot per network",
        notes=(
            "HSCIC is the paper's criterion with the paper's kernels for both methods, on test rows. For the default, "
            "the penalty that it trains with is shown too.",
            "Over all networks both measures follow gamma, and so they agree. Among networks of one gamma, which "
            "differ in their seeds alone, one may say little about the other.",
        ),
    )


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for gamma, group in table.groupby("gamma"):
        row = {"γ": f"{gamma:g}"}
        for method in METHODS:
            chosen = group[group["method"] == method]
            names = {"hscic": "HSCIC", "vcf": "VCF"} if method == PAPER else {**_CRITERIA, "vcf": "VCF"}
            row |= {f"{name}, {method}": plus_minus(chosen[measure], 1e3) for measure, name in names.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def _figure(table: pd.DataFrame) -> Figure:
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = drawing.panels(2, width=4.8, height=4.0)
    for ax, (measure, name) in zip(axes[0], _CRITERIA.items(), strict=True):
        for method in METHODS:
            chosen = table[table["method"] == method]
            ax.scatter(
                chosen[measure],
                chosen["vcf"],
                s=16,
                alpha=0.7,
                color=drawing.COLOURS[method],
                marker=drawing.MARKERS[method],
                label=drawing.LABELS[method],
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlabel(f"{name} on test rows")
    axes[0][0].set_ylabel("variance of counterfactuals (VCF)")
    drawing.legend_below(figure, axes[0][0], 2)
    return figure


STUDY = Study(
    name="fig2-middle", title="Figure 2, middle: HSCIC against VCF", presets=FIRST, measure=measure_first, judge=judge
)
