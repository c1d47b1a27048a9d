"""What a comparison compares: every route at several strengths, the straight line and the baselines, on some rows.

Training sees some of the rows. The others judge: by the loss, and by the variance of counterfactuals under a causal
model that is estimated on them alone, so that no route is judged by the model it was trained with.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.baselines import CF1, CF2, NaivePredictor
from ciplearn.causal.vector_columns import node_of
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import Judged
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LINE, Prepared
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.scm import EstimatedModel, fit_scm

ROUTES = (INDEPENDENCE, COUNTERFACTUAL, LINE)
FREE, BASELINE = "unconstrained", "baseline"

# What VCF is measured on: enough to tell routes apart, few enough for many models.
_POINTS, _INTERVENTIONS, _DRAWS = 400, 24, 4

# Models with another mechanism, where data cannot tell which is right.
_MOST_RIVALS = 2

_RESTS_ON = {
    INDEPENDENCE: "the graph alone",
    LINE: "the graph alone",
    COUNTERFACTUAL: "the graph and an estimated causal model",
    FREE: "nothing",
    BASELINE: "the graph",
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
    """What is to be trained."""

    estimator: CIPEstimator
    routes: tuple[str, ...]
    gammas: Sequence[float]
    shares: Sequence[float]
    baselines: bool
    seed: int
    bar: Any


class Candidates:
    """All candidates, trained on some rows.

    Attributes
    ----------
    models, about : mapping from name to model, and to what its row of the table says
    notes : list of str
    scm : EstimatedModel or None
    """

    def __init__(self, asked: Asked, X: Any, y: Any) -> None:
        self.asked, self.rows = asked, (X, y)
        self.models: dict[str, Any] = {}
        self.about: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self.scm: EstimatedModel | None = None
        self.prepared = self._prepared()
        verdict, graph = self.prepared.roles.verdict, asked.estimator.graph
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
                self._add(f"line, {model.share_:.0%} of VCF kept", LINE, model, share=model.share_)
        if asked.baselines:
            self._baselines()

    def judged(self, X: Any, y: Any) -> OnOtherRows:
        """Judge all on other rows; where data leave open which mechanism is right, the larger VCF counts."""
        answers = {name: Judged.of(model, X, y) for name, model in self.models.items()}
        spread = dict.fromkeys(self.models, (np.nan, np.nan))
        judge = self._model_of(X, y, seed=self.asked.seed + 1, use="VCF is not judged")
        if judge is None:
            return OnOtherRows(answers, spread, None)
        table = self._table(X, y)
        for number, model in enumerate([judge, *judge.rivals(self._nodes_that_matter())[:_MOST_RIVALS]]):
            found = variance_of_counterfactuals(
                self.models,
                model,
                table,
                self.verdict.protected,
                min(_POINTS, len(table)),
                _INTERVENTIONS,
                self.asked.seed,
                inputs=list(self.prepared.roles.inputs),
                n_draws=_DRAWS,
            )
            for name, own in found.items():
                if number == 0 or own.value > spread[name][0]:
                    spread[name] = own.value, own.relative
        return OnOtherRows(answers, spread, judge)

    def _add(self, name: str, kind: str, model: Any, **known: float) -> None:
        self.models[name] = model
        self.about[name] = {"name": name, "kind": kind, "rests_on": _RESTS_ON[kind], **known}
        self.asked.bar.update()

    def _prepared(self, **settings: Any) -> Prepared:
        asked = self.asked
        base = clone(asked.estimator).set_params(random_state=asked.seed, on_violation="warn")
        with warnings.catch_warnings():
            # A graph that does not certify the statement leaves the other routes open, and a note says so.
            warnings.filterwarnings("ignore", message="The graph does not certify")
            return Prepared.of(base.set_params(**{"counterfactuals": None, **settings}), *self.rows)

    def _independence(self) -> None:
        """Dependence in the data is penalised: certified by the graph, or not offered."""
        names = {"independence": self.prepared}
        if self.verdict.context:
            # A weaker statement, which leaves more to predict from: had the protected variables alone been different.
            names["independence of the protected alone"] = self._prepared(context=[])
        for name, prepared in names.items():
            verdict = prepared.roles.verdict
            if verdict is None or not verdict.holds:
                if name == "independence":
                    self.notes.append(
                        "The independence route is not offered: the graph does not certify its statement."
                    )
                continue
            for gamma in self.asked.gammas:
                self._add(f"{name}, gamma {gamma:g}", INDEPENDENCE, prepared.trained(gamma), gamma=gamma)

    def _counterfactual(self) -> None:
        """Differences between rows imagined by a model of the training rows are penalised."""
        scm = self.scm = self._model_of(*self.rows, seed=self.asked.seed, use="the counterfactual route is not offered")
        if scm is None:
            return
        matters = self._nodes_that_matter()
        open_about = [fit for fit in scm.report.nodes if fit.node in matters and fit.ambiguity]
        beyond = [fit for fit in open_about if fit.rival is None]
        if beyond:
            self.notes.append(f"The counterfactual route is not offered: {beyond[0].ambiguity}")
            return
        rivals = scm.rivals(matters)[:_MOST_RIVALS]
        if rivals:
            self.notes.append(
                f"{open_about[0].ambiguity} The counterfactual route is trained and judged against the worst of both."
            )
        self.notes += [finding.sentence for finding in scm.misfits if finding.node in matters]
        prepared = self._prepared(counterfactuals=[scm, *rivals] if rivals else scm)
        for gamma in self.asked.gammas:
            self._add(f"counterfactual, gamma {gamma:g}", COUNTERFACTUAL, prepared.trained(gamma), gamma=gamma)

    def _baselines(self) -> None:
        """CF1, CF2 on parents and leaving the protected columns out."""
        one = self.asked.estimator
        roles: dict[str, Any] = {
            "graph": one.graph,
            "outcome": one.outcome,
            "protected": list(self.prepared.roles.protected),
            "inputs": list(self.prepared.roles.inputs),
            "task": "classification" if is_classifier(one) else "regression",
            "random_state": self.asked.seed,
        }
        same = ("missing", "hidden", "epochs", "batch_size", "learning_rate", "weight_decay", "schedule", "device")
        stopping = ("early_stopping", "validation_fraction", "patience")
        roles |= {name: getattr(one, name) for name in (*same, *stopping)}
        made = {
            "CF1": CF1(**roles),
            "CF2": CF2(**roles, regress_on="parents"),
            "protected columns left out": NaivePredictor(**roles),
        }
        for name, model in made.items():
            try:
                self._add(name, BASELINE, model.fit(*self.rows))
            except CiplearnError as refusal:
                self.notes.append(f"{name} is not offered: {refusal}")

    def _table(self, X: Any, y: Any) -> pd.DataFrame:
        table = pd.DataFrame(X).reset_index(drop=True)
        return table.assign(**{self.verdict.outcome: np.asarray(y)}).dropna(subset=list(self.prepared.roles.used))

    def _model_of(self, X: Any, y: Any, *, seed: int, use: str) -> EstimatedModel | None:
        try:
            return fit_scm(self.graph, self._table(X, y), random_state=seed)
        except CiplearnError as refusal:
            self.notes.append(f"No causal model could be estimated, so {use}: {refusal}")
            return None

    def _nodes_that_matter(self) -> tuple[str, ...]:
        """Inputs that the protected variables act on, and what lies between: where imagined values differ."""
        graph = self.graph
        protected = {node_of(name, graph.nodes) for name in self.prepared.roles.protected}
        inputs = {node_of(name, graph.nodes) for name in self.prepared.roles.inputs}
        matter = (graph.descendants(sorted(protected)) - protected) & graph.ancestors(sorted(inputs))
        return tuple(node for node in graph.topological_order() if node in matter)
