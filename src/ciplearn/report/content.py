"""`Report`: everything that the page says, in data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ciplearn._core.arguments import finite, of_kind, one_of, several
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import as_data
from ciplearn._core.wording import as_list
from ciplearn.evaluation import Audit, GroupScores, PairedEffects
from ciplearn.evaluation.conclusion import Conclusion
from ciplearn.evaluation.scores import FREE, Unit, percent, scores_in_words, short
from ciplearn.learning import Frontier
from ciplearn.report.charts import Dot
from ciplearn.report.sections import Individual, asked_about, in_short, scores_by_group

_MOST_INDIVIDUALS = 6
PROFILES = ("decision", "bias-audit", "model-card")


@dataclass(frozen=True, eq=False)
class Report:
    """What an audit has found, arranged for the person who signs; `Report.of` makes one.

    Parameters
    ----------
    audit, title
        With the model, the rows and the limits; what stands beside it is what the page compares with.
    comparison : optional
        The answer of `compare_routes`: a frame ``table`` with ``name``, ``kind``, ``loss`` and ``vcf``, the name that
        was ``chosen``, a ``reason`` and ``notes``. It was measured on the rows that judged, before the audit.
    frontier, chosen : Frontier, float, optional
        The gammas that were tried, with ``loss``, ``score``, ``penalty``, and ``vcf`` where it was measured; and the
        gamma of the model.
    baselines : mapping of name to (vcf, loss), optional
        Predictors to compare with, where there is no ``comparison``.
    rule, penalty : str
        How the model was trained and chosen, in a few sentences; and the name of the penalty.
    groups, individuals : sequence, optional
        Columns by which scores are shown, the protected ones by default; and labels of rows to show, by default of
        those that are affected most.
    doubts : mapping of question to answer
        Results of `graph.falsify`, `sensitivity` and their like.
    unknown : mapping of column to int
        How many rows of the table were left out because they have no value there.
    about_rows, settings, next_steps
        Which rows these are, per command the options to repeat it with, and per state of the conclusion what to do.
    remedy : str
        What is known of the next step where the model does not pass: that it passes, or that nothing useful does.

    Examples
    --------
    >>> from ciplearn import Report, audit, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> found = audit(lambda frame: 2 * frame["training"] + 15, world, people, "income", ["sex"], n_points=50)
    >>> Report.of(found).to_html().startswith("<!doctype html>")
    True
    """

    audit: Audit
    title: str
    comparison: Any = None
    frontier: Frontier | None = None
    chosen: float | None = None
    baselines: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    rule: str = ""
    penalty: str = "penalty"
    groups: Sequence[str] | None = None
    individuals: Sequence[Any] | None = None
    doubts: Mapping[str, Any] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    about_rows: str = ""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    next_steps: Mapping[str, str] = field(default_factory=dict)
    remedy: str = ""

    @classmethod
    def of(cls, audit: Audit, comparison: Any = None, doubts: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """Arrange an audit, with the comparison that chose the model and the doubts about graph and causal model.

        All that `Report` takes may follow; the title is a question about the protected variables by default.
        """
        report = cls(audit, comparison=comparison, doubts=doubts or {}, **{"title": "", **more})
        return report if report.title else replace(report, title=report.question)

    def __post_init__(self) -> None:
        of_kind(self.audit, Audit, "audit", "pass what audit(...) returns")
        if self.chosen is not None:
            finite(self.chosen, "chosen")
        if self.frontier is not None:
            of_kind(self.frontier, Frontier, "frontier", "pass what frontier(...) returns")
        groups = several(() if self.groups is None else self.groups, "groups")
        absent = [name for name in groups if name not in self.rows.columns]
        if absent:
            columns = ", ".join(map(str, self.rows.columns))
            asked = f"Groups were asked for by {absent[0]!r}, which is no column of the rows"
            raise InputError(f"{asked}; name one of {columns}.")
        labels, index = several(() if self.individuals is None else self.individuals, "individuals"), self.rows.index
        strangers = [label for label in labels if not isinstance(label, Hashable) or label not in index]
        if strangers:
            stranger = f"Row {strangers[0]!r} is not among the {len(index)} audited rows"
            raise InputError(f"{stranger}; name one of these, such as {index[0]!r}.")

    @property
    def rows(self) -> pd.DataFrame:
        """The audited rows."""
        return self.audit.rows

    @property
    def model(self) -> Any:
        """The audited predictor."""
        return self.audit.model

    @property
    def free_name(self) -> str:
        """What that one is called."""
        return next(iter(self.audit.beside), FREE)

    def to_html(self, profile: str = "decision") -> str:
        """Return the whole page, which needs nothing from a network, in one of its profiles.

        They are ``"decision"``, ``"bias-audit"`` (selection rates and impact ratios) and ``"model-card"``.
        """
        from ciplearn.report.page import render

        one_of(profile, "profile", PROFILES)
        return render(self, profile)

    def to_dict(self) -> dict[str, Any]:
        """Return every number of the page as JSON-ready data."""
        trials = self.trials()
        told = {
            "summary": self.summary(),
            "verdict": self.audit.verdict,
            "effects": self.effects,
            "trials": [] if trials is None else trials,
            "candidates": self.candidates,
            "groups": [] if self.by_group is None else self.by_group.table,
            "individuals": self.shown_individuals,
            "doubts": {question: str(answer) for question, answer in self.doubts.items()},
            "how_wrong": self.how_wrong,
            "unknown": self.unknown,
        }
        return {**self.audit.to_dict(), **as_data(told)}

    @property
    def answer(self) -> str:
        """What the predictor says, in words: the outcome, or the probability of a class."""
        outputs, outcome = list(self.audit.vcf.per_output), self.audit.verdict.outcome
        if not self.audit.is_classifier:
            return outcome
        return f"probabilities of {outcome}" if len(outputs) > 1 else f"probability that {outcome} is “{outputs[0]}”"

    @property
    def question(self) -> str:
        """What the page answers."""
        does = "Do" if len(self.audit.vcf.per_output) > 1 else "Does"
        return f"{does} the predicted {self.answer} depend on {as_list(self.audit.verdict.protected)}?"

    @property
    def unit(self) -> Unit:
        """How amounts of a prediction are written."""
        return self.audit.unit

    @property
    def conclusion(self) -> Conclusion:
        """Passes, fails, or useless."""
        return self.audit.conclusion

    @property
    def effects(self) -> PairedEffects | None:
        """Paired effects of protected values."""
        return self.audit.effects

    @cached_property
    def by_group(self) -> GroupScores | None:
        """Scores by group and crossing, one class after the other where there are several."""
        outcome, columns = self.audit.verdict.outcome, self.group_columns
        return scores_by_group(self.audit.predictors, self.rows, outcome, columns) if columns else None

    @property
    def group_columns(self) -> list[str]:
        """The columns by which scores are shown."""
        return list(self.groups) if self.groups is not None else self._columns(self.audit.verdict.protected)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """What can be had: ``name``, ``kind``, ``loss``, ``vcf``, ``typical`` (√(2 VCF)), ``chosen``, ``alone``.

        Alone is what lies on no path with others of its kind.
        """
        if self.comparison is not None:
            table = self.comparison.table
            rows = table[[name for name in _CANDIDATE if name in table]].assign(
                chosen=table["name"] == self.comparison.chosen
            )
            if "learner" in table and table["learner"].nunique() > 1:
                # A path is that of one learner's model.
                rows["kind"] = table["kind"].where(table["kind"] == "baseline", table["learner"] + ", " + table["kind"])
            # A route may have several, by how it is made: "linear, repaired at ..." and "linear, corrected at ...".
            rows["kind"] = table["name"].str.extract("(.+) at ", expand=False).fillna(rows["kind"])
        else:
            columns, trials = ["name", "kind", "loss", "vcf", "gamma", "chosen"], self.trials()
            measured = [] if trials is None or "vcf" not in trials else trials[["gamma", "loss", "vcf"]].to_numpy()
            tried = [
                (f"gamma = {short(gamma)}" if gamma else FREE, "penalty", loss, vcf, gamma, gamma == self._nearest)
                for gamma, loss, vcf in measured
            ]
            alone = [(name, "baseline", loss, vcf, math.nan, False) for name, (vcf, loss) in self.baselines.items()]
            rows = pd.DataFrame([*tried, *alone], columns=columns)
        vcf = rows["vcf"].astype(np.float64)
        alone = rows["kind"].str.startswith("baseline") | ~rows["kind"].duplicated(keep=False)
        return rows.assign(vcf=vcf, typical=np.sqrt(2 * vcf.clip(lower=0.0)), alone=alone.astype(bool))

    @property
    def _nearest(self) -> float | None:
        """The gamma that was tried nearest to that of the model."""
        trials = self.trials()
        if trials is None or self.chosen is None:
            return None
        return float(trials["gamma"].iloc[(trials["gamma"] - self.chosen).abs().argmin()])

    @cached_property
    def shown_individuals(self) -> list[Individual]:
        """The rows that were asked for, or those whose prediction depends most on the protected variables."""
        verdict, vcf = self.audit.verdict, self.audit.vcf
        places = self.individuals
        if places is None:
            places = list(vcf.per_row.sort_values("vcf", ascending=False, kind="stable").index[:_MOST_INDIVIDUALS])
        nodes = dict.fromkeys((*verdict.protected, *verdict.inputs, *verdict.context, *verdict.adjustment))
        return asked_about(self.audit, places, self._columns(nodes))

    def summary(self) -> list[str]:
        """Say in a few sentences what was found."""
        conclusion = self.conclusion
        sentences = [f"{conclusion.state.capitalize()}: {conclusion.headline}"]
        sentences += [f"{check.name} {check.sentence}" for check in conclusion.checks]
        more = (self.against_free, self.remedy or conclusion.advice)
        return [*sentences, *(sentence for sentence in more if sentence), *self.how_wrong, self.rests_on]

    @property
    def against_free(self) -> str:
        """What the penalty buys, and what it costs, on the audited rows."""
        if self.effects is None or self.audit.before is None:
            return ""
        before = self.effects.largest(self.free_name)
        whose = "Trained for accuracy alone, its" if self.free_name == FREE else f"For {self.free_name} the"
        return (
            f"{whose} largest effect is {self.unit.amount(before['effect'], signed=True)} "
            f"(from {before['first']} to {before['second']})."
        )

    @cached_property
    def how_wrong(self) -> list[str]:
        """What the rows say of the graph, wrong arrows, what was not measured, and what could not be asked."""
        return in_short(self)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in a sentence."""
        report = getattr(self.audit.scm, "report", None)
        model = "a causal model " + ("estimated from data" if self.audit.model_based else "that was given")
        if self.audit.model_based and report is not None:
            nodes = sorted({finding.node for finding in self.audit.vcf.doubts})
            doubt = f" (in doubt about {as_list(nodes)})" if nodes else ""
            model = f"a causal model estimated from {report.n_rows} rows{doubt}"
        graph = self.audit.verdict.graph
        return (
            f"This rests on a graph of {len(graph.nodes)} nodes that no data can prove, on {model}, and on "
            f"{self.audit.n_rows} audited rows."
        )

    def scores(self, *, before: bool = False) -> dict[str, str]:
        """Names and values of the predictive scores, the more telling first; or of the model before."""
        measured = self.audit.before if before else self.audit
        return {} if measured is None else scores_in_words(measured.scores, self.unit)

    def trials(self) -> pd.DataFrame | None:
        """One row per gamma, means over seeds; None where nothing was compared."""
        if self.frontier is None or len(self.frontier.points) < 2:
            return None
        return self.frontier.summary()[["gamma", *self.frontier.measures]]

    def dots(self, x: str, y: str) -> list[Dot]:
        """The trials as points of a chart."""
        table = self.trials()
        if table is None or x not in table or y not in table:
            return []
        rows = table.to_dict(orient="records")
        return [Dot(row[x], row[y], row["gamma"], row["gamma"] == self._nearest) for row in rows]

    def agreement(self) -> float | None:
        """Rank correlation of penalty and VCF over the trials; None for fewer than three or for ties only."""
        table = self.trials()
        if table is None or not {"vcf", "penalty"} <= set(table) or len(table) < 3:
            return None
        if table["vcf"].nunique() < 2 or table["penalty"].nunique() < 2:
            return None
        return float(spearmanr(table["penalty"], table["vcf"]).statistic)

    @property
    def outside(self) -> str:
        """Which share of the imagined rows lies where there are no data."""
        return percent(self.audit.vcf.overlap.share_outside)

    def _columns(self, nodes: Sequence[str] | Mapping[str, Any]) -> list[str]:
        return [column for column in self.audit.scm.columns(tuple(nodes)) if column in self.rows.columns]


_CANDIDATE = ("name", "kind", "loss", "vcf", "gamma", "rests_on", "allowed", "keeps")
