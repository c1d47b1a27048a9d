"""The idea at work on the bank's applicants: compare, choose, audit on other people, and look at ten of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from ciplearn._core.files import make_folder, whole_file, write_file
from ciplearn.datasets import applicants
from ciplearn.display.frontier import bare
from ciplearn.estimators import CIPRegressor
from ciplearn.evaluation import audit
from ciplearn.evaluation.scores import FREE, percent
from ciplearn.learners import LEARNERS
from ciplearn.report import Report
from ciplearn.routes import Comparison, WithinLimits, compare_routes
from ciplearn.scm import fit_scm

OUTCOME, PROTECTED = "income", ["sex"]
USUAL, OURS = "trained as usual", "trained with ciplearn"
_AS_SHE_IS, _HAD_SHE_BEEN, _BETWEEN = "#1b7ab8", "#c8553d", "#8a8f98"


@dataclass(frozen=True)
class Demo:
    """What the demo has shown."""

    report: Report  # the audit of the chosen model on other people, and the comparison that chose it
    truth: dict[str, float]  # by the equations that drew the people: what women would gain, had they been men
    files: tuple[Path, ...]  # what was written

    @property
    def comparison(self) -> Comparison:
        """What was compared, and what was taken."""
        comparison: Comparison = self.report.comparison
        return comparison

    def sentences(self) -> list[str]:
        """Say in six lines what was seen; every figure but the second and the last is the audit's."""
        conclusion = self.report.conclusion
        use, effect = (next(check for check in conclusion.checks if check.asks == asks) for asks in ("use", "effect"))
        unit, table = self.report.unit, self.comparison.table
        blind = table[table["kind"] == "left-out"]
        return [
            f"A model trained as usual explains {percent(use.before)} of the variance of income. Had the same woman "
            f"been a man, it would have predicted {unit.amount(effect.before)} thousand a year more, on average.",
            f"A model that does not see sex still moves by {unit.amount(blind['effect'].min())} thousand: training and "
            "hours tell of it.",
            f"The model that ciplearn took moves by {unit.amount(effect.value, signed=True)} thousand; at most "
            f"{unit.amount(effect.limit)} is allowed, a tenth of the standard deviation of income.",
            f"The price is accuracy: it explains {percent(use.value)}. What it gave up is the part of income that sex "
            "brings about.",
            f"The audit on {self.report.audit.n_rows} people whom no model has seen says “{conclusion.state}”. "
            f"{conclusion.headline}",
            f"The audit had to estimate what sex does. These people are made up, so the truth is known: "
            f"{unit.amount(self.truth[OURS], signed=True)} thousand, and {unit.amount(self.truth[USUAL], signed=True)} "
            "for the usual model.",
        ]


def run_demo(
    folder: Path, *, rows: int = 8000, say: Callable[[str], None] = lambda text: None, verbose: bool = False
) -> Demo:
    """Run the demo, and write its report, its picture, its tables and the graph.

    ``rows``: how many people train; half as many are audited. ``say``: takes what a person should read as it happens.
    ``verbose``: show progress bars.
    """
    make_folder(folder)
    torch.set_num_threads(1)
    world = applicants()
    people, others = world.sample(rows, random_state=0), world.sample(rows // 2, random_state=1)
    say("A bank predicts the income of people who apply for a loan; their sex must not influence the prediction.")
    say(f"Comparing networks, boosted trees and linear models on {rows} made-up people, as they are and repaired.")
    estimator = CIPRegressor(graph=world.graph, outcome=OUTCOME, protected=PROTECTED, random_state=0)
    comparison = compare_routes(
        estimator,
        people.drop(columns=OUTCOME),
        people[OUTCOME],
        WithinLimits(),
        routes=("repair", "left-out"),
        # The network is the estimator's.
        learners={name: None if name == "network" else learner() for name, learner in LEARNERS.items()},
        baselines=False,
        cv=2,
        verbose=verbose,
    )
    models = {USUAL: comparison.models[comparison.free], OURS: comparison.model}
    say(f"Auditing what was chosen on {len(others)} other people.")
    # The equations stay secret until the end: a causal model is estimated, as of real people.
    scm = fit_scm(world.graph, others, random_state=0)
    beside, floor = {FREE: models[USUAL]}, comparison.floor
    measured = audit(models[OURS], scm, others, OUTCOME, PROTECTED, beside=beside, floor=floor)
    report = Report.of(
        measured,
        comparison,
        rule=comparison.reason,
        about_rows=f"Audited on: {len(others)} people drawn after the {rows} that trained.",
        settings={"ciplearn demo": {"rows": rows}},
    )
    women = others[others["sex"] == "f"]
    men = world.counterfactual(women, {"sex": ["m"] * len(women)})
    truth = {name: float(np.mean(model.predict(men) - model.predict(women))) for name, model in models.items()}
    page, picture, compared, table, graph = files = tuple(
        folder / name for name in ("report.html", "applicants.png", "comparison.csv", "applicants.csv", "graph.svg")
    )
    write_file(page, report.to_html())
    with whole_file(picture) as stream:
        draw_people(models, women.head(10), men.head(10)).savefig(stream, dpi=150)
    write_file(compared, comparison.table.to_csv(index=False))
    write_file(table, people.to_csv(index=False))
    write_file(graph, world.graph.to_svg(measured.verdict))
    return Demo(report, truth, files)


def draw_people(models: Mapping[str, Any], women: pd.DataFrame, men: pd.DataFrame, *, stacked: bool = False) -> Figure:
    """Draw what each model says of the same people as women and as men; ``stacked`` for a narrow page."""
    figure = Figure(figsize=(4.4, 6.2) if stacked else (9, 3.8), layout="constrained")
    shape = (len(models), 1) if stacked else (1, len(models))
    panels = figure.subplots(*shape, sharex=True, sharey=True)
    places = np.arange(len(women))
    for panel, (title, model) in zip(panels, models.items(), strict=True):
        here, there = model.predict(women), model.predict(men)
        panel.hlines(places, here, there, color=_BETWEEN, lw=2)
        panel.scatter(here, places, color=_AS_SHE_IS, s=60, zorder=3, label="as she is")
        panel.scatter(there, places, color=_HAD_SHE_BEEN, s=24, zorder=4, label="had she been a man")
        panel.set(title=title, xlabel="predicted income, thousands a year", yticks=[])
        panel.label_outer()
        bare(panel)
    panels[0].set_ylabel(f"{len(women)} applicants")
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, ncols=2, loc="outside upper center")
    return figure
