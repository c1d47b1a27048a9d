"""The idea at work on the paper's first synthetic case: graph, verdict, frontier, choice of gamma, counterfactuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from tqdm import tqdm

from ciplearn._core.files import make_folder, whole_file, write_file
from ciplearn.baselines import CF1, CF2, NaivePredictor
from ciplearn.causal import Verdict
from ciplearn.datasets import MinMaxScaling, first_synthetic
from ciplearn.display import FrontierDisplay
from ciplearn.estimators import CIPRegressor, frontier
from ciplearn.evaluation import Audit, audit, variance_of_counterfactuals
from ciplearn.evaluation.wording import FREE
from ciplearn.learning import Frontier
from ciplearn.report import Report
from ciplearn.scm import StructuralCausalModel, fit_scm

GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 10.0)
SEEDS = (0, 1)

# Which share of R² may be lost. One of the error would not do: without a penalty there is next to none.
TOLERANCE = 0.3

# The other route, on rows imagined by a model that is estimated from the training rows, and its gamma.
IMAGINED, _GAMMA = "imagined rows", 1.0

_INPUTS = ["Z", "A", "L"]
_BASELINES: dict[str, Any] = {"CF1": CF1, "CF2": CF2, "naive": NaivePredictor}


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    verdict: Verdict
    # loss, score and penalty over gammas on validation rows, variance of counterfactuals on test rows; all columns are
    # scaled to [0, 1]
    frontier: Frontier
    chosen: float  # the largest gamma within the tolerance
    # CF1, which sees non-descendants of A only; CF2, which sees residuals of descendants; the naive predictor, which is
    # denied A; and the counterfactual route at one gamma
    baselines: dict[str, tuple[float, float]]
    audit: Audit  # of the model at the chosen gamma, under the known causal model, on test rows
    files: tuple[Path, ...]  # what was written

    def sentences(self) -> list[str]:
        """Say in six lines what was seen."""
        table = self.frontier.summary().set_index("gamma")
        free, chosen = table.loc[0.0], table.loc[self.chosen]
        cf1, cf2, naive, other = (self.baselines[name] for name in ("CF1", "CF2", "naive", IMAGINED))
        better = table[(table["vcf"] <= naive[0]) & (table["loss"] < naive[1])]["loss"]
        beside = "" if better.empty else f" Gamma = {better.idxmin():g} leaves less, with {better.min():.1e}."
        return [
            f"Without a penalty the predictor explains {free['score']:.0%} of the variance, and its answer for the "
            f"same person moves with A: VCF {free['vcf']:.1e}.",
            f"From gamma 0 to {table.index[-1]:g} the VCF falls to {table['vcf'].iloc[-1]:.1e}, and so does the "
            f"penalty, which needs no counterfactuals to be computed.",
            f"Gamma = {self.chosen:g} is the largest tried that loses at most {TOLERANCE:g} of what is explained: it "
            f"explains {chosen['score']:.0%}, with a VCF of {chosen['vcf']:.1e}, {chosen['vcf'] / free['vcf']:.0%} of "
            f"that without a penalty.",
            f"CF1, which never looks at A or its effects, has VCF {cf1[0]:.1e} and error {cf1[1]:.1e}; CF2, on "
            f"residuals, VCF {cf2[0]:.1e} and error {cf2[1]:.1e}; at the chosen gamma the error is "
            f"{chosen['loss']:.1e}.",
            f"Leaving A out of the inputs is not enough: through L the naive predictor moves, VCF {naive[0]:.1e}, "
            f"with an error of {naive[1]:.1e}.{beside}",
            f"The other route asks an estimated causal model what each row would have been under other values of A and "
            f"penalises differences: at gamma {_GAMMA:g} VCF {other[0]:.1e}, with an error of {other[1]:.1e}. It keeps "
            f"what A did not cause, and is as good as that model.",
        ]


def run_demo(
    folder: Path,
    *,
    rows: int = 4000,
    epochs: int = 60,
    say: Callable[[str], None] = lambda text: None,
    verbose: bool = False,
) -> Demo:
    """Run the demo and write its report, its picture, its table and the graph.

    ``folder``: where to write ``frontier.png``, ``report.html``, ``frontier.csv`` and ``graph.svg``. ``rows``,
    ``epochs``: rows of the table and epochs of each training. ``say``: takes what a person should read as it happens.
    ``verbose``: show progress bars.
    """
    make_folder(folder)
    torch.set_num_threads(1)
    scm = first_synthetic()
    verdict = scm.graph.criterion(outcome="Y", protected=["A"])
    say(f"The graph: {scm.graph.to_edges()}.\n{verdict}\n")
    case = _Case.draw(scm, rows)
    say(f"Training {len(GAMMAS) * len(SEEDS)} networks on {len(case.train)} rows, gamma from 0 to {GAMMAS[-1]:g}.")
    settings = {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "epochs": epochs, "learning_rate": 2e-3}
    measured = frontier(
        CIPRegressor(**settings),
        case.train[_INPUTS],
        case.train["Y"],
        GAMMAS,
        SEEDS,
        test=(case.validation[_INPUTS], case.validation["Y"]),
        measures={"vcf": case.vcf},
        verbose=verbose,
    )
    chosen = _chosen(measured)
    say("Training the baselines, and measuring the chosen model against the known causal model.")
    others: dict[str, Any] = {name: kind(**settings, random_state=0) for name, kind in _BASELINES.items()}
    estimated = fit_scm(scm.graph, case.train, random_state=0)
    others[IMAGINED] = CIPRegressor(**settings, counterfactuals=estimated, gamma=_GAMMA, random_state=0)
    baselines = case.baselines(others, verbose)
    model, free = (
        CIPRegressor(**settings, gamma=gamma, random_state=SEEDS[0]).fit(case.train[_INPUTS], case.train["Y"])
        for gamma in (chosen, 0.0)
    )
    found = audit(model, case.scm, case.test, n_points=500, n_interventions=200, random_state=0, beside={FREE: free})
    report = Report.of(
        found,
        title="The first synthetic case of the paper",
        frontier=measured,
        chosen=chosen,
        baselines=baselines,
        rule=f"Training adds gamma times ResidualHSCIC, a measure of the contrary, to the loss; here gamma = "
        f"{chosen:g}. It is the largest tried that loses at most {TOLERANCE:g} of what is explained.",
        penalty="ResidualHSCIC",
        about_rows=f"Audited on: {len(case.test)} test rows, drawn from the known model; columns are scaled to [0, 1].",
        settings={"ciplearn demo": {"rows": rows, "epochs": epochs, "gammas": GAMMAS, "seeds": SEEDS}},
    )
    return Demo(verdict, measured, chosen, baselines, found, _written(folder, report, measured, chosen, baselines))


@dataclass(frozen=True)
class _Case:
    """Scaled rows of the case, and the causal model they come from."""

    scm: StructuralCausalModel
    train: pd.DataFrame
    validation: pd.DataFrame
    test: pd.DataFrame

    @classmethod
    def draw(cls, scm: StructuralCausalModel, rows: int) -> _Case:
        raw = scm.sample(rows, random_state=0)
        scaling = MinMaxScaling.fit(raw)
        scaled = scaling.transform(raw)
        first, second = int(0.64 * rows), int(0.8 * rows)
        return cls(scaling.model(scm), scaled.iloc[:first], scaled.iloc[first:second], scaled.iloc[second:])

    def vcf(self, model: Any) -> float:
        return float(self._spread(model).value)

    def baselines(self, models: dict[str, Any], verbose: bool) -> dict[str, tuple[float, float]]:
        """Train baselines on the same rows and judge them on the same rows: VCF and error."""
        for model in tqdm(models.values(), disable=not verbose, unit="baseline"):
            model.fit(self.train[_INPUTS], self.train["Y"])
        spreads = self._spread(models)
        truth = self.validation["Y"]
        return {
            name: (spreads[name].value, float(np.mean((model.predict(self.validation[_INPUTS]) - truth) ** 2)))
            for name, model in models.items()
        }

    def _spread(self, models: Any) -> Any:
        return variance_of_counterfactuals(
            models, self.scm, self.test, protected=["A"], n_points=500, n_interventions=100, inputs=_INPUTS
        )


def _chosen(measured: Frontier) -> float:
    """The largest gamma that loses at most the tolerance, a share of R² without a penalty; the bound is left out."""
    table = measured.summary().set_index("gamma")["score"]
    return float(max(table.index[table >= (1 - TOLERANCE) * table.loc[0.0]]))


def _written(
    folder: Path, report: Report, measured: Frontier, chosen: float, baselines: dict[str, tuple[float, float]]
) -> tuple[Path, ...]:
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    display = FrontierDisplay.from_frontier(measured, baselines=baselines, chosen=chosen).plot(ax=figure.subplots())
    display.ax_.set_title("What invariance in A costs: first synthetic case", loc="left")
    display.ax_.set_ylabel("mean squared error on held-out rows")
    picture, page, table, graph = (
        folder / name for name in ("frontier.png", "report.html", "frontier.csv", "graph.svg")
    )
    with whole_file(picture) as stream:
        figure.savefig(stream, dpi=150)
    write_file(page, report.to_html())
    write_file(table, measured.table.to_csv(index=False))
    write_file(graph, report.audit.verdict.graph.to_svg(report.audit.verdict))
    return picture, page, table, graph
