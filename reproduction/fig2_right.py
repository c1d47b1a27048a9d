"""Figure 2, right, and table 1: scenarios 1 and 2 against CF1, CF2 and the naive predictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from ciplearn.baselines import CF1, CF2, NaivePredictor
from ciplearn.datasets import scenario_1, scenario_2
from ciplearn.display.frontier import baseline_points
from reproduction import drawing, table1
from reproduction.cases import Case, Judge
from reproduction.first_case import FrontierSettings
from reproduction.methods import METHODS, Training, paper_baseline
from reproduction.study import Conditions, Findings, Study
from reproduction.trainings import BaselineTraining, begin_fits, frontiers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROCESSES = {"scenario 1": scenario_1, "scenario 2": scenario_2}

# Each sees Z; the naive predictor L too, CF2 the residual of L, by regression on A alone as in the paper.
_BASELINES: dict[str, tuple[Callable[..., Any], int]] = {
    "CF1": (CF1, 1),
    "CF2": (partial(CF2, regress_on="protected"), 2),
    "naive": (NaivePredictor, 2),
}


@dataclass(frozen=True)
class ScenarioSettings(FrontierSettings):
    """Of both scenarios; baselines are trained in their own way."""

    baseline_epochs: int = 200
    baseline_batch_size: int = 64


def measure(settings: ScenarioSettings, conditions: Conditions) -> dict[str, pd.DataFrame]:
    """Train the methods and the baselines on both scenarios."""
    return {"table1": _trained(settings, conditions)}


def judge(tables: Mapping[str, pd.DataFrame], settings: ScenarioSettings) -> Findings:
    """Judge the methods against the baselines."""
    table = tables["table1"]
    return Findings(
        comparisons=table1.comparisons(table),
        claims=table1.claims(table),
        figure=_figure(table),
        caption="MSE against VCF, with CF1, CF2 and the naive predictor; bars are standard errors over seeds",
        unmatched=table1.unmatched(table),
        notes=(
            "A = exp(−Z²/2) sin(2Z) + ε: the plus that the paper prints gives A no mean, and one outlier flattens all "
            "scaled columns.",
            "All seeds share one sample of the process; they differ in initial weights.",
        ),
    )


def _trained(settings: ScenarioSettings, conditions: Conditions) -> pd.DataFrame:
    seeds = conditions.seeds(settings.seeds)
    cases = {name: Case.draw(process(), settings.rows, conditions.seed) for name, process in _PROCESSES.items()}
    judges = {
        name: Judge(case, settings.points, settings.interventions, conditions.seed, conditions.device)
        for name, case in cases.items()
    }
    baselines = {f"{name}-{baseline}".replace(" ", "-"): (name, baseline) for name in cases for baseline in _BASELINES}
    finish = begin_fits(
        [
            BaselineTraining(
                file, settings, cases[name], judges[name], partial(_baseline, baseline, cases[name].scm.graph, settings)
            )
            for file, (name, baseline) in baselines.items()
        ],
        seeds,
        conditions,
    )
    parts = [
        frontiers(
            name.replace(" ", "-"), settings, case, judges[name], settings.gammas, seeds, settings.training, conditions
        ).assign(scenario=name)
        for name, case in cases.items()
    ]
    for file, found in finish().items():
        name, baseline = baselines[file]
        parts.append(found.assign(scenario=name, method=baseline))
    return pd.concat(parts, ignore_index=True)


def _baseline(name: str, graph: Any, settings: ScenarioSettings, seed: int) -> Any:
    kind, width = _BASELINES[name]
    return paper_baseline(kind, graph, width, Training(settings.baseline_epochs, settings.baseline_batch_size), seed)


def _figure(table: pd.DataFrame) -> Figure:
    figure, axes = drawing.panels(2, width=5.2, height=4.2)
    for ax, (scenario, part) in zip(axes[0], table.groupby("scenario"), strict=True):
        for method in METHODS:
            drawing.curve(ax, part[part["method"] == method], "vcf", "mse", method)
        means = part[part["method"].isin(list(_BASELINES))].groupby("method", sort=False)[["vcf", "mse"]].mean()
        baseline_points(ax, {str(name): (row["vcf"], row["mse"]) for name, row in means.iterrows()})
        ax.set_title(str(scenario), loc="left")
        ax.set_xlabel("variance of counterfactuals (VCF)")
    axes[0][0].set_ylabel("mean squared error on test rows")
    drawing.legend_below(figure, axes[0][0], 5)
    return figure


_GAMMAS = (0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

STUDY = Study(
    name="fig2-right",
    title="Figure 2, right, and table 1: against CF1, CF2 and the naive predictor",
    presets={
        "quick": ScenarioSettings(
            rows=2500,
            gammas=(0.001, 0.1, 0.3, 0.5, 1.0, 5.0),
            seeds=2,
            epochs=60,
            batch_size=128,
            learning_rate=2e-3,
            points=300,
            interventions=100,
            baseline_epochs=40,
        ),
        # Beyond the paper's gammas, so that there is an end near VCF 0 to judge.
        "paper": ScenarioSettings(rows=10_000, gammas=(*_GAMMAS, 2.0, 5.0, 10.0), seeds=9, epochs=1000),
    },
    measure=measure,
    judge=judge,
    paper=table1.PAPER,
)
