"""The choice of gamma: the largest that keeps a given accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

from reproduction import drawing
from reproduction.first_case import FIRST, FrontierSettings, measure_first
from reproduction.methods import METHODS
from reproduction.statistics import LEVEL, apart, clearly_below, plus_minus
from reproduction.study import Claim, Comparison, Findings, Study, Unmatched

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLDS = (0.9, 0.7, 0.01)
_PAPER = {
    0.9: {"vcf": "3.14 ± 0.92", "hscic": "4.51 ± 0.72"},
    0.7: {"vcf": "3.01 ± 0.80", "hscic": "4.44 ± 0.65"},
    0.01: {"vcf": "2.91 ± 0.92", "hscic": "4.39 ± 0.42"},
}


def judge(tables: Mapping[str, pd.DataFrame], settings: FrontierSettings) -> Findings:
    """Choose on the frontier."""
    table = tables["frontier"]
    chosen = choices(table)
    found = [_lower_at_laxer(chosen[chosen["method"] == method], method) for method in METHODS]
    largest = table.loc[table["gamma"] == 0, "vcf"].mean()
    return Findings(
        comparisons=(Comparison("Mean ± standard deviation over seeds; VCF and HSCIC × 10².", _beside(chosen)),),
        claims=tuple(found),
        figure=_figure(chosen),
        caption="What the chosen gamma leaves of the variance of counterfactuals",
        unmatched=_unmatched(chosen, float(largest)),
        notes=(
            "The paper speaks of accuracy in a classification setting. Here the share of variance explained on test "
            "rows takes its place, and the choice is made for each seed among the gammas of figure 2, not by bisection "
            "between them; `GammaSearch` does the latter.",
        ),
    )


def _unmatched(chosen: pd.DataFrame, largest: float) -> tuple[Unmatched, ...]:
    ours = chosen[chosen["method"] == METHODS[0]].groupby("threshold")
    reasons = {
        "vcf": f"All three exceed the VCF of this process without a penalty, {largest * 100:.2f}. Why is not known.",
        "hscic": "not known",
    }
    found: list[Unmatched] = []
    for measure, reason in reasons.items():
        printed = {f"{threshold:.0%}": numbers[measure] for threshold, numbers in _PAPER.items()}
        values = {f"{threshold:.0%}": part[measure] for threshold, part in ours}
        found += apart(f"{measure.upper()} × 10²", printed, values, 1e2, reason)
    return tuple(found)


def choices(table: pd.DataFrame) -> pd.DataFrame:
    """For each method, seed and threshold the network of the largest gamma that explains at least that share."""
    rows = []
    for (method, seed), group in table.groupby(["method", "seed"], sort=False):
        for threshold in THRESHOLDS:
            allowed = group[group["r2"] >= threshold]
            if len(allowed):
                best = allowed.loc[allowed["gamma"].idxmax()]
                rows.append({"method": method, "seed": seed, "threshold": threshold, **_kept(best)})
    return pd.DataFrame(rows)


def _kept(row: pd.Series) -> dict[str, float]:
    return {name: float(row[name]) for name in ("gamma", "r2", "mse", "hscic", "vcf")}


def _lower_at_laxer(chosen: pd.DataFrame, method: str) -> Claim:
    values = [chosen.loc[chosen["threshold"] == threshold, "vcf"] for threshold in THRESHOLDS]
    means = [float(one.mean()) for one in values]
    level = LEVEL / (len(THRESHOLDS) - 1)
    falls = all(clearly_below(after, before, level) for before, after in pairwise(values))
    listed = ", ".join(f"{mean * 1e3:.3f}" for mean in means)
    return Claim(
        "A laxer threshold buys a lower VCF",
        f"mean VCF × 10³ at 90 %, 70 %, 1 %: {listed} (each below the last by Welch's test, level {LEVEL:.0%} shared "
        f"by {len(THRESHOLDS) - 1} steps)",
        falls,
        method,
        means[-1] / means[0] if means[0] else None,
    )


def _beside(chosen: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for threshold in THRESHOLDS:
        row = {"accuracy kept": f"{threshold:.0%}"}
        for measure, name in (("vcf", "VCF"), ("hscic", "HSCIC")):
            row[f"{name}, printed"] = _PAPER[threshold][measure]
            for method in METHODS:
                part = chosen[(chosen["method"] == method) & (chosen["threshold"] == threshold)]
                row[f"{name}, {method}"] = plus_minus(part[measure], 1e2)
        for method in METHODS:
            part = chosen[(chosen["method"] == method) & (chosen["threshold"] == threshold)]
            row[f"median γ, {method}"] = f"{part['gamma'].median():g}"
        rows.append(row)
    return pd.DataFrame(rows)


def _figure(chosen: pd.DataFrame) -> Figure:
    figure, axes = drawing.panels(1, width=6.0, height=3.8)
    ax = axes[0][0]
    for number, method in enumerate(METHODS):
        part = chosen[chosen["method"] == method].groupby("threshold")["vcf"]
        places = [THRESHOLDS.index(threshold) + (number - 0.5) * 0.36 for threshold in part.groups]
        drawing.bars(ax, places, part, 0.34, drawing.COLOURS[method], drawing.LABELS[method])
    ax.set_xticks(range(len(THRESHOLDS)), [f"at least {threshold:.0%}" for threshold in THRESHOLDS])
    ax.set_xlabel("share of variance that must be explained")
    ax.set_ylabel("variance of counterfactuals (VCF)")
    ax.legend(frameon=False)
    return figure


STUDY = Study(
    name="gamma-choice",
    title="The choice of gamma",
    presets=FIRST,
    measure=measure_first,
    judge=judge,
    paper={"times 1e-2": {f"{threshold:.0%} accuracy": numbers for threshold, numbers in _PAPER.items()}},
)
