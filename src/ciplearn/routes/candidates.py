"""What a comparison compares: every route at several strengths, the straight line and the baselines, on some rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.baselines import CF1, CF2
from ciplearn.baselines.base import TRAINED_ALIKE
from ciplearn.causal.vector_columns import node_of
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import Allowance, Judged
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LEFT_OUT, LINE, Prepared
from ciplearn.estimators.roles import statement_on_columns
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.evaluation.auditing import known_by
from ciplearn.scm import EstimatedModel, fit_scm

ROUTES = (INDEPENDENCE, COUNTERFACTUAL, LINE, LEFT_OUT)
FREE, BASELINE = "unconstrained", "baseline"

# What VCF is measured on: enough to tell routes apart, few enough for many models.
_POINTS, _INTERVENTIONS, _DRAWS = 400, 24, 4

# What is said where no causal model of the rows that judge can be had.
NO_JUDGE = "VCF is not judged"

# Mechanisms are told apart well enough by so many rows, and many times as many take minutes.
_ROWS_OF_A_MODEL = 10_000

# What is lost, as a multiple of the tolerance, beyond which a route is followed no further.
_FAR_BEYOND = 3.0

# Models with another mechanism, where data cannot tell which is right.
_MOST_TIES = 2

_RESTS_ON = {
    INDEPENDENCE: "the graph alone",
    LINE: "the graph alone",
    LEFT_OUT: "nothing; proxies are still seen",
    COUNTERFACTUAL: "the graph and an estimated causal model",
    FREE: "nothing",
}


@dataclass(frozen=True)
class OnOtherRows:
    """What candidates say of rows that they were not trained on.

    Attributes
    ----------
    answers : mapping from name to Judged
    vcf : mapping from name to VCF and VCF relative to the variance of the predictions
    judge : EstimatedModel or None
        The causal model of these rows that VCF was measured under.
    """

    answers: dict[str, Judged]
    vcf: dict[str, tuple[float, float]]
    judge: EstimatedModel | None


@dataclass(frozen=True)
class Asked:
    """What is to be trained, and what may be lost of what an unconstrained predictor explains."""

    estimator: CIPEstimator
    routes: tuple[str, ...]
    gammas: Sequence[float]
    shares: Sequence[float]
    baselines: bool
    criterion: str
    tolerance: float
    seed: int
    bar: Any


class Candidates:
    """All candidates, trained on some rows.

    A route is followed from weak to strong penalties, until what is lost on the rows that judge is far beyond the
    tolerance: nothing further along could be taken.

    Parameters
    ----------
    asked : Asked
    rows, judging : pairs of table and outcome
        To train on, and to judge on.

    Attributes
    ----------
    models, about : mapping from name to model, and to what its row of the table says
    answers : mapping from name to Judged
    refused : mapping from route or baseline to the sentence that says why it is not offered
    notes : list of str
        What to know about the causal model.
    scm : EstimatedModel or None
    """

    def __init__(self, asked: Asked, rows: tuple[Any, Any], judging: tuple[Any, Any]) -> None:
        self.asked, self.rows, self.judging = asked, rows, judging
        self.models: dict[str, Any] = {}
        self.about: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, Judged] = {}
        self.prepared = self._prepared(rows)
        self.refused: dict[str, str] = {}
        self.notes: list[str] = []
        self.scm: EstimatedModel | None = None
        self.roles = self.prepared.roles
        verdict, graph = self.roles.verdict, asked.estimator.graph
        if verdict is None or graph is None:
            raise InputError("Routes are compared on a graph; pass an estimator with graph=.")
        self.verdict, self.graph = verdict, graph
        self._add(FREE, FREE, self.prepared.trained(0.0))
        if INDEPENDENCE in asked.routes:
            self._independence()
        if COUNTERFACTUAL in asked.routes:
            self._counterfactual()
        if LINE in asked.routes:
            for model in self.prepared.line(self.models[FREE], asked.shares):
                self._add(f"line, {100 * model.share_:.4g}% of VCF kept", LINE, model, share=model.share_)
        if LEFT_OUT in asked.routes:
            self._left_out()
        if asked.baselines:
            self._baselines()

    def on_all_rows(self, name: str, X: Any, y: Any) -> dict[str, Any]:
        """Train a candidate, the unconstrained predictor and the line from it once more, on more rows."""
        free = self._prepared((X, y))
        models = {FREE: free.trained(0.0)}
        if LINE in self.asked.routes:
            lines = {other: about["share"] for other, about in self.about.items() if about["kind"] == LINE}
            models |= dict(zip(lines, free.line(models[FREE], list(lines.values())), strict=True))
        if name not in models:
            about = self.about[name]
            models[name] = _trained(self._prepared((X, y), **about["settings"]), about["kind"], about["gamma"])
        return models

    def judged(self) -> OnOtherRows:
        """Judge all by VCF, as an audit does; where data leave open which mechanism is right, the larger VCF counts."""
        spread = dict.fromkeys(self.models, (np.nan, np.nan))
        judge = self._model_of(self.judging, seed=self.asked.seed + 1, use=NO_JUDGE)
        if judge is None:
            return OnOtherRows(self.answers, spread, None)
        table = self._table(self.judging)
        for number, model in enumerate([judge, *judge.ties(self._nodes_that_matter(judge))[:_MOST_TIES]]):
            found = variance_of_counterfactuals(
                self.models,
                model,
                table,
                self.verdict.protected,
                min(_POINTS, len(table)),
                _INTERVENTIONS,
                self.asked.seed,
                context=known_by(self.verdict, model, table),
                inputs=list(self.roles.inputs),
                n_draws=_DRAWS,
            )
            for name, own in found.items():
                if number == 0 or own.value > spread[name][0]:
                    spread[name] = own.value, own.relative
        return OnOtherRows(self.answers, spread, judge)

    def _add(self, name: str, kind: str, model: Any, **known: Any) -> None:
        self.models[name], self.answers[name] = model, Judged.of(model, *self.judging)
        self.about[name] = {"name": name, "kind": kind, "rests_on": _RESTS_ON.get(kind), **known}
        self.asked.bar.update()

    def _prepared(self, rows: tuple[Any, Any], **settings: Any) -> Prepared:
        asked = self.asked
        base = clone(asked.estimator).set_params(random_state=asked.seed, on_violation="warn")
        with warnings.catch_warnings():
            # A graph that does not certify the statement leaves the other routes open, and a note says so.
            warnings.filterwarnings("ignore", message="The graph does not certify")
            return Prepared.of(base.set_params(**{"counterfactuals": None, **settings}), *rows)

    def _along_gammas(self, name: str, kind: str, prepared: Prepared, settings: dict[str, Any]) -> None:
        """Train at one gamma after the other, as long as the tolerance is in sight."""
        allowance = Allowance(self.asked.criterion, _FAR_BEYOND * self.asked.tolerance, self.answers[FREE])
        for place, gamma in enumerate(sorted(self.asked.gammas)):
            named = f"{name}, gamma {gamma:g}"
            self._add(named, kind, _trained(prepared, kind, gamma), gamma=gamma, settings=settings)
            if allowance.excess(self.answers[named]) > 0:
                self.asked.bar.update(len(self.asked.gammas) - place - 1)
                return

    def _independence(self) -> None:
        """Dependence in the data is penalised: certified by the graph, or not offered."""
        if self.verdict.holds:
            self._along_gammas("independence", INDEPENDENCE, self.prepared, {})
        else:
            self.refused[INDEPENDENCE] = (
                "The independence route is not offered: the graph does not certify its statement."
            )
        if not self.verdict.context:
            return
        # A weaker statement, which leaves more to predict from. The question, and what VCF is given, stay as they are.
        verdict, names = self.verdict, tuple(pd.DataFrame(self.rows[0]).columns)
        alone = self.graph.criterion(verdict.outcome, verdict.protected, [], verdict.inputs)
        if alone.holds:
            settings: dict[str, Any] = {"independence": statement_on_columns(alone, names)}
            prepared = self._prepared(self.rows, **settings)
            self._along_gammas("independence of the protected alone", INDEPENDENCE, prepared, settings)

    def _counterfactual(self) -> None:
        """Differences between rows imagined by a model of the training rows are penalised."""
        scm = self.scm = self._model_of(self.rows, seed=self.asked.seed, use="the counterfactual route is not offered")
        if scm is None:
            return
        matters = self._nodes_that_matter(scm)
        open_about = [fit for fit in scm.report.nodes if fit.node in matters and fit.ambiguity]
        beyond = [fit for fit in open_about if fit.tie is None]
        if beyond:
            self.refused[COUNTERFACTUAL] = f"The counterfactual route is not offered: {beyond[0].ambiguity}"
            return
        ties = scm.ties(matters)[:_MOST_TIES]
        if ties:
            self.notes.append(
                f"{open_about[0].ambiguity} The counterfactual route is trained and judged against the worst of both."
            )
        self.notes += [finding.sentence for finding in scm.misfits if finding.node in matters]
        settings: dict[str, Any] = {"counterfactuals": [scm, *ties] if ties else scm}
        self._along_gammas("counterfactual", COUNTERFACTUAL, self._prepared(self.rows, **settings), settings)

    def _left_out(self) -> None:
        """Nothing is penalised, and the protected columns are not looked at."""
        nodes, protected = self.graph.nodes, set(self.verdict.protected)
        seen = [name for name in self.roles.inputs if node_of(name, nodes) not in protected]
        if not 0 < len(seen) < len(self.roles.inputs):
            return
        settings: dict[str, Any] = {"inputs": seen}
        model = _trained(self._prepared(self.rows, **settings), LEFT_OUT, 0.0)
        self._add("protected columns left out", LEFT_OUT, model, gamma=0.0, settings=settings)

    def _baselines(self) -> None:
        """CF1, and CF2 on parents."""
        one = self.asked.estimator
        roles: dict[str, Any] = {
            "graph": one.graph,
            "outcome": one.outcome,
            "protected": list(self.roles.protected),
            "inputs": list(self.roles.inputs),
            "task": "classification" if is_classifier(one) else "regression",
            "random_state": self.asked.seed,
        }
        roles |= {name: getattr(one, name) for name in TRAINED_ALIKE}
        made = {
            "CF1": (CF1(**roles), "the graph"),
            "CF2": (CF2(**roles, regress_on="parents"), "the graph and additive noise"),
        }
        for name, (model, rests_on) in made.items():
            try:
                self._add(name, BASELINE, model.fit(*self.rows), rests_on=rests_on)
            except CiplearnError as refusal:
                self.refused[name] = f"{name} is not offered: {refusal}"

    def _table(self, rows: tuple[Any, Any]) -> pd.DataFrame:
        table = pd.DataFrame(rows[0]).reset_index(drop=True)
        return table.assign(**{self.verdict.outcome: np.asarray(rows[1])}).dropna(subset=list(self.roles.used))

    def _model_of(self, rows: tuple[Any, Any], *, seed: int, use: str) -> EstimatedModel | None:
        table = self._table(rows)
        if len(table) > _ROWS_OF_A_MODEL:
            table = table.sample(_ROWS_OF_A_MODEL, random_state=seed)
        try:
            return fit_scm(self.graph, table, random_state=seed)
        except CiplearnError as refusal:
            self.refused[use] = f"No causal model could be estimated, so {use}: {refusal}"
            return None

    def _nodes_that_matter(self, scm: EstimatedModel) -> tuple[str, ...]:
        return scm.between(self.verdict.protected, self.roles.inputs)


def _trained(prepared: Prepared, kind: str, gamma: float) -> CIPEstimator:
    """Train; the model carries the route's name, which columns that were left out do not tell."""
    model = prepared.trained(gamma)
    model.route_ = kind
    return model
