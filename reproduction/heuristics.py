"""The comparison with data augmentation, plain and along the graph, and with the naive predictor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from ciplearn.baselines import Augmented, CausallyAugmented, NaivePredictor
from ciplearn.datasets import first_synthetic
from reproduction import drawing
from reproduction.cases import Case, Judge
from reproduction.first_case import FrontierSettings
from reproduction.methods import METHODS, paper_baseline
from reproduction.statistics import LEVEL, apart, beaten, clearly_below, plus_minus
from reproduction.study import Claim, Comparison, Conditions, Findings, Study, Unmatched
from reproduction.trainings import BaselineTraining, begin_fits, frontiers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AUGMENTED, CAUSALLY, NAIVE = "data augmentation", "causal data augmentation", "naive prediction"
BASELINES = (AUGMENTED, CAUSALLY, NAIVE)
_CIP = "CIP, γ = "

# The settings of a predictor that is no method of ours.
_NONE = "—"

# The paper has the first two; the others show what a baseline's VCF costs CIP.
_GAMMAS = (0.5, 1.0, 2.0, 3.0, 5.0)

# VCF and MSE × 10³, as printed.
_PAPER = {
    AUGMENTED: ("3.12 ± 0.16", "0.03 ± 0.01"),
    CAUSALLY: ("3.04 ± 0.16", "0.13 ± 0.12"),
    f"{_CIP}0.5": ("1.05 ± 0.13", "1.64 ± 0.22"),
    f"{_CIP}1": ("0.35 ± 0.19", "2.50 ± 0.72"),
    NAIVE: ("9.01 ± 0.02", "3.01 ± 0.91"),
}


# The study `reasons` computes the best function of Z and L.
_REASONS = {
    "vcf": "not known",
    "mse": "A drawn anew tells nothing of Y, and no function of Z and L comes near the printed errors of augmentation.",
}


@dataclass(frozen=True)
class HeuristicSettings(FrontierSettings):
    """The frontier's, and how often augmentation shows a row."""

    copies: int = 50


def measure(settings: HeuristicSettings, conditions: Conditions) -> dict[str, pd.DataFrame]:
    """Train CIP and the heuristics."""
    case = Case.draw(first_synthetic(), settings.rows, conditions.seed)
    judge = Judge(case, settings.points, settings.interventions, conditions.seed, conditions.device)
    seeds = conditions.seeds(settings.seeds)
    files = {f"heuristics-{name}".replace(" ", "-"): name for name in BASELINES}
    finish = begin_fits(
        [
            BaselineTraining(file, settings, case, judge, partial(_heuristic, name, case.scm.graph, settings))
            for file, name in files.items()
        ],
        seeds,
        conditions,
    )
    cip = frontiers("heuristics", settings, case, judge, settings.gammas, seeds, settings.training, conditions)
    parts = [cip.assign(predictor=[f"{_CIP}{gamma:g}" for gamma in cip["gamma"]])]
    parts += [found.assign(predictor=files[file], method=_NONE) for file, found in finish().items()]
    return {"heuristics": pd.concat(parts, ignore_index=True)}


def judge(tables: Mapping[str, pd.DataFrame], settings: HeuristicSettings) -> Findings:
    """Judge CIP against the heuristics."""
    table = tables["heuristics"]
    return Findings(
        comparisons=(Comparison("On test rows, × 10³, mean ± standard deviation over seeds.", _beside(table)),),
        claims=_claims(table),
        figure=_figure(table),
        caption="What each predictor loses and leaves: CIP over γ, mean and standard error; baselines, a dot per seed",
        unmatched=_unmatched(table),
        notes=(
            f"Augmentation draws A anew whenever a row is shown, {settings.copies} times per epoch. The causal kind "
            "re-predicts L from A and Z without the row's own residual, as the paper describes it.",
            "The same gamma weighs the paper's penalty and the default's differently: compare at equal VCF, not at "
            "equal gamma.",
        ),
    )


def _heuristic(name: str, graph: Any, settings: HeuristicSettings, seed: int) -> Any:
    kinds = {NAIVE: NaivePredictor, AUGMENTED: Augmented, CAUSALLY: CausallyAugmented}
    more = {
        NAIVE: {},
        AUGMENTED: {"copies": settings.copies},
        CAUSALLY: {"copies": settings.copies, "keep_residuals": False},
    }
    return paper_baseline(kinds[name], graph, 2 if name == NAIVE else 3, settings.training, seed, **more[name])


def _claims(table: pd.DataFrame) -> tuple[Claim, ...]:
    found = [
        _leaves_more(table, heuristic, name, method)
        for heuristic in (AUGMENTED, CAUSALLY)
        for name in _PAPER
        if name.startswith(_CIP)
        for method in METHODS
    ]
    for method in METHODS:
        ours = table[table["method"] == method]
        found += [beaten(ours, table[table["predictor"] == baseline], baseline, method) for baseline in BASELINES]
    return tuple(found)


def _leaves_more(table: pd.DataFrame, heuristic: str, name: str, method: str) -> Claim:
    left = table.loc[table["predictor"] == heuristic, "vcf"]
    ours = table.loc[(table["predictor"] == name) & (table["method"] == method), "vcf"]
    return Claim(
        f"{heuristic.capitalize()} leaves more VCF than {name}",
        f"mean VCF × 10³: {left.mean() * 1e3:.3f} against {ours.mean() * 1e3:.3f} (more by Welch's test, level "
        f"{LEVEL:.0%})",
        clearly_below(ours, left),
        method,
        float(left.mean() / ours.mean()) if ours.mean() else None,
    )


def _beside(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name, group in table.groupby("predictor", sort=False):
        printed = _PAPER.get(str(name), ("—", "—"))
        for method, part in group.groupby("method", sort=False):
            rows.append(
                {
                    "predictor": str(name),
                    "settings": str(method),
                    "VCF, printed": printed[0],
                    "VCF, ours": plus_minus(part["vcf"], 1e3),
                    "MSE, printed": printed[1],
                    "MSE, ours": plus_minus(part["mse"], 1e3),
                }
            )
    return pd.DataFrame(rows)


def _unmatched(table: pd.DataFrame) -> tuple[Unmatched, ...]:
    chosen = table[table["method"].isin((METHODS[0], _NONE))]
    ours = {str(name): part for name, part in chosen.groupby("predictor")}
    found: list[Unmatched] = []
    for place, measure in enumerate(("vcf", "mse")):
        found += apart(
            f"{measure.upper()} × 10³",
            {name: numbers[place] for name, numbers in _PAPER.items()},
            {name: part[measure] for name, part in ours.items()},
            1e3,
            _REASONS[measure],
        )
    return tuple(found)


def _figure(table: pd.DataFrame) -> Figure:
    figure, axes = drawing.panels(1, width=7.0, height=4.2)
    ax = axes[0][0]
    for method in METHODS:
        drawing.curve(ax, table[table["method"] == method], "vcf", "mse", method)
    for baseline, marker in zip(BASELINES, "D^v", strict=True):
        part = table[table["predictor"] == baseline]
        ax.scatter(part["vcf"], part["mse"], s=42, alpha=0.8, color="#6b7a3a", marker=marker, label=baseline)
    drawing.trade_off(ax)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


STUDY = Study(
    name="heuristics",
    title="Against data augmentation",
    presets={
        "quick": HeuristicSettings(
            rows=1500,
            gammas=_GAMMAS,
            seeds=2,
            epochs=100,
            batch_size=128,
            learning_rate=2e-3,
            points=300,
            interventions=100,
            copies=6,
        ),
        "paper": HeuristicSettings(
            rows=3000, gammas=_GAMMAS, seeds=5, epochs=100, points=500, interventions=500, copies=50
        ),
    },
    measure=measure,
    judge=judge,
    paper={"times 1e-3": {name: dict(zip(("VCF", "MSE"), numbers, strict=True)) for name, numbers in _PAPER.items()}},
)
