"""Routes to invariance side by side: what each costs, what it buys, and what it rests on.

Training sees some of the rows. The others judge: by the loss, and by the variance of counterfactuals under a causal
model that is estimated on them alone, so that no route is judged by the model it was trained with.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from tqdm import tqdm

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.numbers import non_negative
from ciplearn._core.random import as_seed
from ciplearn._core.wording import as_list
from ciplearn.baselines import CF1, CF2, NaivePredictor
from ciplearn.causal.vector_columns import node_of
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Allowance, Judged, checked_criterion, rows_of
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LINE, Prepared
from ciplearn.estimators.tables import split_rows
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.scm import EstimatedModel, fit_scm

ROUTES = (INDEPENDENCE, COUNTERFACTUAL, LINE)
FREE, BASELINE = "unconstrained", "baseline"

GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SHARES = (0.8, 0.6, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)

# What VCF is measured on: enough to tell routes apart, few enough for many models.
_POINTS, _INTERVENTIONS, _DRAWS = 400, 50, 20

# A route that rests on more has to be better by more than this share of VCF.
_CLEARLY = 0.9

# Below this share of the unconstrained predictor's VCF, less is not worth a loss.
_NEXT_TO_NOTHING = 0.01

_RESTS_ON = {
    INDEPENDENCE: "the graph alone",
    LINE: "the graph alone",
    COUNTERFACTUAL: "the graph and an estimated causal model",
    FREE: "nothing",
    BASELINE: "the graph",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare_routes` found.

    Attributes
    ----------
    table : DataFrame
        One row per candidate: ``name``, ``kind``, ``gamma`` or ``share``, ``loss``, ``score``, the criterion, ``vcf``,
        ``relative``, ``allowed`` (whether the tolerance allows it) and ``rests_on``.
    models : mapping from name to model
        As trained on the rows that do not judge.
    chosen : str
        The name of the route to take.
    reason : str
        Why, in one sentence.
    notes : tuple of str
        Routes that could not be taken, and why; what the causal model misfits; baselines that do better in both.
    scm : EstimatedModel or None
        What the counterfactual route was trained with.
    judge : EstimatedModel or None
        What VCF was measured under.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets
    >>> from ciplearn.routes import compare_routes
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(200, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=3, random_state=0)
    >>> found = compare_routes(model, table.drop(columns="Y"), table["Y"], gammas=(1,), shares=(0.2,), baselines=False)
    >>> found.chosen in found.models
    True
    """

    table: pd.DataFrame
    models: dict[str, Any]
    chosen: str
    reason: str
    notes: tuple[str, ...] = ()
    scm: EstimatedModel | None = None
    judge: EstimatedModel | None = None

    @property
    def model(self) -> Any:
        """The chosen model."""
        return self.models[self.chosen]

    def __str__(self) -> str:
        shown = self.table.drop(columns=["kind", "gamma", "share"]).round(4).to_string(index=False)
        return "\n".join([shown, *self.notes, self.reason])


def compare_routes(
    estimator: CIPEstimator,
    X: Any,
    y: Any,
    tolerance: float = 0.10,
    measure: str | None = None,
    *,
    routes: Iterable[str] = ROUTES,
    gammas: Sequence[float] = GAMMAS,
    shares: Sequence[float] = SHARES,
    baselines: bool = True,
    validation_fraction: float = 0.3,
    random_state: Any = 0,
    verbose: Any = False,
) -> Comparison:
    """Train each route, judge all of them on other rows, and recommend one within a tolerance.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With a graph and its roles; gamma and counterfactuals are replaced.
    X, y
        The rows, as `fit` of the estimator takes them.
    tolerance : float
        The share of what the unconstrained predictor explains that may be lost, see `GammaSearch`.
    measure : "loss", "auc", "score" or "balanced_accuracy", optional
        What the tolerance is about.
    routes : iterable of str
        Of "independence", "counterfactual" and "line".
    gammas, shares : sequence of float
        Of the penalties, and of the straight line.
    baselines : bool
        Also train CF1, CF2 on parents, and the predictor that leaves the protected columns out.
    validation_fraction : float
        Share of the rows that judge.
    random_state : int, Generator, RandomState or None
    verbose : bool or progress bar

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets
    >>> from ciplearn.routes import compare_routes
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(200, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=3, random_state=0)
    >>> found = compare_routes(
    ...     model, table.drop(columns="Y"), table["Y"], tolerance=0.9, gammas=(1,), shares=(0.2,), baselines=False
    ... )
    >>> found.table["name"].tolist()
    ['unconstrained', 'independence, gamma 1', 'counterfactual, gamma 1', 'line, 20% of VCF kept']
    """
    routes = tuple(routes)
    unknown = [route for route in routes if route not in ROUTES]
    if unknown or not routes:
        raise InputError(f"routes must be of {as_list(ROUTES)}, got {unknown or 'none'}; name some of these.")
    if not isinstance(estimator, CIPEstimator) or estimator.graph is None:
        raise InputError("Routes are compared for a CIPRegressor or CIPClassifier with a graph; pass one with graph=.")
    criterion = checked_criterion(measure, classifier=is_classifier(estimator))
    seed = as_seed(random_state)
    run = _Run(estimator, X, y, validation_fraction, seed, _bar(verbose, routes, gammas, baselines))
    run.add(FREE, FREE, run.prepared.trained(0.0))
    if INDEPENDENCE in routes:
        run.independence(gammas)
    if COUNTERFACTUAL in routes:
        run.counterfactual(gammas)
    if LINE in routes:
        for model in run.prepared.line(run.models[FREE], shares):
            run.add(f"line, {model.share_:.0%} of VCF kept", LINE, model, share=model.share_)
    if baselines:
        run.baselines()
    run.measure_vcf()
    table = run.table(criterion, Allowance(criterion, non_negative(tolerance, "tolerance"), run.judged[FREE]))
    chosen, reason = _recommendation(table, tolerance)
    notes = (*run.notes, *_better_baselines(table, chosen))
    return Comparison(table, run.models, chosen, reason, notes, run.scm, run.judge)


@dataclass
class _Run:
    """The moving parts of a comparison."""

    estimator: CIPEstimator
    X: Any
    y: Any
    validation_fraction: float
    seed: int
    bar: Any
    models: dict[str, Any] = field(default_factory=dict)
    judged: dict[str, Judged] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    scm: EstimatedModel | None = None
    judge: EstimatedModel | None = None

    def __post_init__(self) -> None:
        labels = self.y if is_classifier(self.estimator) else None
        train, judge = split_rows(self.X, self.y, self.validation_fraction, self.seed, labels)
        self.train, self.judging = rows_of(self.X, self.y, train), rows_of(self.X, self.y, judge)
        base = clone(self.estimator).set_params(counterfactuals=None, random_state=self.seed)
        with warnings.catch_warnings():
            # A graph that does not certify the statement leaves the other routes open, and a note says so.
            warnings.filterwarnings("ignore", message="The graph does not certify")
            self.prepared = Prepared.of(base.set_params(on_violation="warn"), *self.train)
        verdict, graph = self.prepared.roles.verdict, self.estimator.graph
        if verdict is None or graph is None:
            raise InputError("Routes are compared on a graph; pass an estimator with graph=.")
        self.verdict, self.graph = verdict, graph

    def add(self, name: str, kind: str, model: Any, **known: float) -> None:
        """Judge a trained model by its loss."""
        self.models[name], self.judged[name] = model, Judged.of(model, *self.judging)
        self.rows.append({"name": name, "kind": kind, "rests_on": _RESTS_ON[kind], **known})
        self.bar.update()

    def independence(self, gammas: Sequence[float]) -> None:
        """Dependence in the data is penalised: certified by the graph, or not offered."""
        if not self.verdict.holds:
            self.notes.append("The independence route is not offered: the graph does not certify its statement.")
            return
        for gamma in gammas:
            self.add(f"independence, gamma {gamma:g}", INDEPENDENCE, self.prepared.trained(gamma), gamma=gamma)

    def counterfactual(self, gammas: Sequence[float]) -> None:
        """Differences between rows imagined by a model of the training rows are penalised."""
        self.scm = self._model_of(*self.train, seed=self.seed, use="the counterfactual route is not offered")
        if self.scm is None:
            return
        matters = self._nodes_that_matter()
        unclear = [finding for finding in self.scm.ambiguities if finding.node in matters]
        if unclear:
            self.notes.append(f"The counterfactual route is not offered: {unclear[0].sentence}")
            return
        self.notes += [finding.sentence for finding in self.scm.misfits if finding.node in matters]
        own = clone(self.estimator).set_params(counterfactuals=self.scm, random_state=self.seed)
        prepared = Prepared.of(own, *self.train)
        for gamma in gammas:
            self.add(f"counterfactual, gamma {gamma:g}", COUNTERFACTUAL, prepared.trained(gamma), gamma=gamma)

    def baselines(self) -> None:
        """CF1, CF2 on parents and leaving the protected columns out."""
        one = self.estimator
        roles: dict[str, Any] = {
            "graph": one.graph,
            "outcome": one.outcome,
            "protected": list(self.prepared.roles.protected),
            "inputs": list(self.prepared.roles.inputs),
            "task": "classification" if is_classifier(one) else "regression",
            "random_state": self.seed,
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
                self.add(name, BASELINE, model.fit(*self.train))
            except CiplearnError as refusal:
                self.notes.append(f"{name} is not offered: {refusal}")

    def measure_vcf(self) -> None:
        """Measure all models under a causal model of the rows that judge."""
        self.judge = self._model_of(*self.judging, seed=self.seed + 1, use="VCF is not judged")
        for row in self.rows:
            row |= {"vcf": np.nan, "relative": np.nan}
        if self.judge is None:
            return
        table = self._table(*self.judging)
        found = variance_of_counterfactuals(
            self.models,
            self.judge,
            table,
            self.verdict.protected,
            min(_POINTS, len(table)),
            _INTERVENTIONS,
            self.seed,
            inputs=list(self.prepared.roles.inputs),
            n_draws=_DRAWS,
        )
        for row in self.rows:
            row |= {"vcf": found[row["name"]].value, "relative": found[row["name"]].relative}

    def table(self, criterion: str, allowance: Allowance) -> pd.DataFrame:
        """One row per candidate."""
        for row in self.rows:
            judged = self.judged[row["name"]]
            row |= {name: CRITERIA[name](judged) for name in dict.fromkeys(("loss", "score", criterion))}
            row["allowed"] = row["kind"] == FREE or allowance.allows(judged)
        columns = ["name", "kind", "gamma", "share", "loss", "score", "vcf", "relative", "allowed", "rests_on"]
        table = pd.DataFrame(self.rows)
        return table.reindex(columns=[*columns, *(name for name in table.columns if name not in columns)])

    def _table(self, X: Any, y: Any) -> pd.DataFrame:
        table = pd.DataFrame(X).reset_index(drop=True)
        return table.assign(**{self.verdict.outcome: np.asarray(y)}).dropna(subset=list(self.prepared.roles.used))

    def _model_of(self, X: Any, y: Any, *, seed: int, use: str) -> EstimatedModel | None:
        try:
            return fit_scm(self.graph, self._table(X, y), random_state=seed)
        except CiplearnError as refusal:
            self.notes.append(f"No causal model could be estimated, so {use}: {refusal}")
            return None

    def _nodes_that_matter(self) -> frozenset[str]:
        """Inputs that the protected variables act on, and what lies between: where imagined values differ."""
        graph = self.graph
        protected = {node_of(name, graph.nodes) for name in self.prepared.roles.protected}
        inputs = {node_of(name, graph.nodes) for name in self.prepared.roles.inputs}
        return (graph.descendants(sorted(protected)) - protected) & graph.ancestors(sorted(inputs))


def _recommendation(table: pd.DataFrame, tolerance: float) -> tuple[str, str]:
    """The allowed route of least VCF, of several with next to none the most accurate.

    A route that rests on an estimated model has to be clearly better than those that rest on the graph alone.
    """
    free = table[table["kind"] == FREE].iloc[0]
    allowed = table[table["allowed"] & table["kind"].isin(ROUTES)]
    if allowed.empty:
        return FREE, (
            f"No route loses at most {tolerance:.0%} of what is explained; raise the tolerance, or choose a smaller "
            f"context."
        )
    if allowed["vcf"].isna().all():
        first = allowed.sort_values("share").iloc[0]
        return first["name"], f"Taken: {first['name']}, which keeps to the graph; no causal model could judge VCF."
    known = allowed.assign(left=np.maximum(allowed["vcf"], _NEXT_TO_NOTHING * free["vcf"]))
    order = known.sort_values(["left", "loss"])
    best = order.iloc[0]
    safe = order[order["kind"] != COUNTERFACTUAL]
    if best["kind"] == COUNTERFACTUAL and len(safe) and best["left"] > _CLEARLY * safe.iloc[0]["left"]:
        best = safe.iloc[0]
    left = best["vcf"] / free["vcf"] if free["vcf"] > 0 else 0.0
    return best["name"], (
        f"Taken: {best['name']}. Of the routes that lose at most {tolerance:.0%} of what is explained it varies least "
        f"with the protected variables: {_percent(left)} of the unconstrained predictor's VCF is left (loss "
        f"{best['loss']:.4g} against {free['loss']:.4g}). It rests on {best['rests_on']}."
    )


def _better_baselines(table: pd.DataFrame, chosen: str) -> list[str]:
    """Baselines that are more accurate and vary less than what was taken, which people should know."""
    taken = table[table["name"] == chosen].iloc[0]
    rows = table[(table["kind"] == BASELINE) & (table["loss"] < taken["loss"]) & (table["vcf"] < taken["vcf"])]
    return [
        f"{row['name']} does better in both: loss {row['loss']:.4g} and VCF {row['vcf']:.3g}, against "
        f"{taken['loss']:.4g} and {taken['vcf']:.3g}."
        for _, row in rows.iterrows()
    ]


def _percent(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * share:.2g} %"


def _bar(verbose: Any, routes: tuple[str, ...], gammas: Sequence[float], baselines: bool) -> Any:
    if hasattr(verbose, "update"):
        return verbose
    planned = 1 + len(gammas) * len({INDEPENDENCE, COUNTERFACTUAL} & set(routes)) + 3 * baselines
    return tqdm(total=planned, disable=not verbose, unit="training")
