"""The idea at work on the bank's applicants: what ``ciplearn fit`` and ``audit`` do, and a look at ten of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ciplearn._core.files import make_folder, whole_file, write_file
from ciplearn.cli.audit import audited
from ciplearn.cli.commands import AUTO, Audit, Fit
from ciplearn.cli.fit import fitted
from ciplearn.datasets.synthetic import applicants, people_of_the_story
from ciplearn.display.frontier import bare
from ciplearn.evaluation.scores import percent
from ciplearn.report import Report
from ciplearn.routes import Comparison

OUTCOME, PROTECTED = "income", "sex"
USUAL, OURS = "trained as usual", "trained with ciplearn"
_AS_SHE_IS, _HAD_SHE_BEEN, _BETWEEN = "#1b7ab8", "#c8553d", "#8a8f98"


@dataclass(frozen=True)
class Demo:
    """What the demo has shown."""

    report: Report  # the audit of the chosen model on people whom it has never seen
    comparison: Comparison  # what was compared, and what was taken
    truth: dict[str, float]  # by the equations that drew the people: what women would gain, had they been men
    files: tuple[Path, ...]  # what was written

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


def run_demo(folder: Path, *, rows: int = 4000, learner: str = AUTO, say: Callable[[str], None] = print) -> Demo:
    """Write the table and the graph of the story, fit and audit as the commands do, and draw ten people.

    ``learner``: the only one to compare. ``say``: takes what a person should read as it happens.
    """
    make_folder(folder)
    table, graph, model, page, picture = files = tuple(
        folder / name for name in ("people.csv", "graph.txt", "model", "report.html", "applicants.png")
    )
    world, people = applicants(), people_of_the_story(rows)
    write_file(table, people.to_csv(index=False))
    write_file(graph, world.graph.to_dagitty())
    say("A bank predicts the income of people who apply for a loan; their sex must not influence the prediction.")
    roles: dict[str, Any] = {"graph": str(graph), "outcome": OUTCOME, "protected": PROTECTED}
    asked = Fit(table=table, out=model, overwrite=True, learner=learner, as_json=True, **roles)
    say(f"ciplearn fit compares models on {rows} made-up people, as they are and repaired, and takes one.")
    done = fitted(asked)
    assert done is not None
    understood, trained, _ = done
    say(f"ciplearn audit asks it about the {len(understood.held_out)} of them whom it has never seen.")
    report = audited(Audit(model=model, table=table, out=page, doubt=0))
    assert trained.comparison is not None
    models = {USUAL: trained.comparison.models[trained.comparison.free], OURS: trained.model}
    others = people.loc[understood.held_out]
    women = others[others["sex"] == "f"]
    men = world.counterfactual(women, {"sex": ["m"] * len(women)})
    truth = {name: float(np.mean(each.predict(men) - each.predict(women))) for name, each in models.items()}
    with whole_file(picture) as stream:
        draw_people(models, women.head(10), men.head(10)).savefig(stream, dpi=150)
    return Demo(report, trained.comparison, truth, files)


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
