"""How to train, and what training leaves: the choice of gamma, the model, and its scores on rows held out."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from sklearn.base import clone, is_classifier

from ciplearn._core.columns import TableEncoding
from ciplearn._core.errors import GraphError, InputError
from ciplearn.cli.options import choice, join_names
from ciplearn.cli.output import note, progress
from ciplearn.cli.training_table import LEAST_OF_A_LEVEL, TrainingTable
from ciplearn.estimators import CIPClassifier, CIPRegressor
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Judged
from ciplearn.estimators.gamma_search import GammaSearch
from ciplearn.estimators.networks import check_size
from ciplearn.estimators.preparation import INDEPENDENCE, LEFT_OUT, Prepared
from ciplearn.estimators.splits import split_rows
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point
from ciplearn.learning.settings import TrainingSettings, chosen_device
from ciplearn.penalties import CIRCE, HSCIC, HSIC, MMD, Penalty, ResidualHSCIC

if TYPE_CHECKING:
    from ciplearn.routes import Comparison, Goal

# Ends of the search for gamma, and the share of the training rows that judge it.
_LOW, _HIGH, _JUDGES = 1e-3, 1e4, 0.2

# What may be lost where nothing was said: a tenth of what an unconstrained predictor explains.
_TOLERANCE = 0.10

AUTO, REPAIR = "auto", "repair"

_PENALTIES: dict[str, Callable[..., Penalty]] = {
    "residual-hscic": ResidualHSCIC,
    "hscic": HSCIC,
    "hscic-paper": HSCIC.paper,
    "circe": CIRCE,
    "hsic": HSIC,
    "mmd": MMD,
}

# Squares of wider or narrower ranges are no numbers.
_NARROWEST, _WIDEST = 1e-150, 1e150

# Two halves judge each other: each is trained on once, and has one causal model.
_HALVES = 2

# Fewer held-out rows say little.
_LEAST_SCORED = 20


@dataclass(frozen=True)
class Plan:
    """How to train.

    Attributes
    ----------
    goal : Goal, optional
        What is asked of the predictor; None where a gamma is fixed or a tolerance searches for one.
    learner : str
        Which one learns without a constraint; "auto" compares all.
    gamma : float, optional
        A weight that is fixed; None searches for the largest within the tolerance.
    tolerance : float, optional
        The share of what an unconstrained predictor explains that may be lost.
    measure : str
        A key of `CRITERIA`.
    route : str
        "independence", "counterfactual", "line" or "left-out"; "auto" trains and judges all of them.
    penalty : str, optional
        As it is called on the command line; by default the estimator chooses.
    on_violation : str
        Where the graph does not certify the independence: "raise", or "warn" to enforce it all the same.
    compare : bool
        With a fixed gamma, also train without a penalty, to see what it costs.
    refit : bool
        Train once more on all training rows. Without, the model is the very one that was judged.
    trials : int
        The largest number of gammas to try.
    network : mapping
        Arguments of the estimator: epochs, batch_size, hidden, ...
    """

    goal: Goal | None
    learner: str
    gamma: float | None
    tolerance: float | None
    measure: str
    route: str
    penalty: str | None
    on_violation: str
    compare: bool
    refit: bool
    trials: int
    network: Mapping[str, Any] = field(default_factory=dict)

    @property
    def allowed(self) -> float | None:
        """What a search may lose; None where gamma is fixed, or another goal is set."""
        if self.gamma is not None or self.goal is not None:
            return None
        return _TOLERANCE if self.tolerance is None else self.tolerance


@dataclass(frozen=True, eq=False)
class Trained:
    """What training has left.

    Attributes
    ----------
    model : CIPEstimator
    models : mapping from gamma to CIPEstimator
        Trained on the rows that do not judge.
    trace : Frontier
        Loss, score and penalty of each of them on the rows that judge; empty where nothing was compared.
    remark : str
        What to know about the chosen gamma.
    scores : mapping
        Of the model on held-out rows; empty where too few were held out.
    comparison : Comparison, optional
        Of the routes, where they were compared.
    """

    model: CIPEstimator
    models: Mapping[float, CIPEstimator]
    trace: Frontier
    remark: str
    scores: Mapping[str, float]
    comparison: Comparison | None = None


def estimator(rows: TrainingTable, plan: Plan) -> CIPEstimator:
    """Return the estimator, not yet trained."""
    verdict = rows.verdict
    choice("--on-violation", plan.on_violation, ("raise", "warn"))
    choice("--measure", plan.measure, CRITERIA)
    if plan.penalty is not None:
        choice("--penalty", plan.penalty, _PENALTIES)
    if not verdict.holds and plan.on_violation == "raise" and plan.route == INDEPENDENCE:
        raise GraphError(
            f"The graph does not certify {verdict.independence}: {' '.join(verdict.reasons)} Change the roles "
            "(ciplearn check shows repairs), or pass --on-violation warn to enforce it all the same."
        )
    kind = CIPClassifier if rows.task == "classification" else CIPRegressor
    return kind(
        graph=rows.request.graph,
        outcome=rows.outcome,
        protected=list(verdict.protected),
        context=list(verdict.context),
        inputs=list(verdict.inputs),
        # As it was asked for, so that the graph is judged once; None is settled alike.
        adjustment=rows.request.adjustment,
        penalty=_penalty(plan.penalty, conditional=bool(verdict.independence.given)),
        # The paper prepares its penalty batch by batch.
        prepare_once=plan.penalty != "hscic-paper",
        on_violation=plan.on_violation,
        missing=rows.request.missing,
        random_state=rows.request.seed,
        **plan.network,
    )


def _penalty(name: str | None, *, conditional: bool) -> Penalty | None:
    """Return the penalty of a name, or None for the estimator's own choice."""
    if name is None or name == ("residual-hscic" if conditional else "hsic"):
        return None
    return _PENALTIES[name]()


def refuse_before_training(rows: TrainingTable, plan: Plan) -> None:
    """Refuse what cannot be trained while no time is lost yet, and note what people should look at."""
    X, y = rows.training()
    chosen_device(plan.network["device"])
    TrainingSettings(
        gamma=plan.gamma or 0.0,
        batch_size=plan.network["batch_size"],
        learning_rate=plan.network["learning_rate"],
    )
    encoding = TableEncoding.of(X, rows.roles.used)
    widths = (encoding.width, *plan.network["hidden"], y.nunique() if rows.task == "classification" else 1)
    check_size(widths, f"--hidden {join_names(plan.network['hidden'])}")
    counts = y.value_counts()
    if rows.task == "classification" and len(counts) < 2:
        raise InputError(
            f"The outcome {rows.outcome!r} is {counts.index[0]!r} in all {len(y)} training rows; pass more rows "
            "of other labels."
        )
    if rows.task == "classification" and counts.min() < 2:
        raise InputError(
            f"The outcome {rows.outcome!r} is {counts.idxmin()!r} in a single training row; group rare labels, or pass "
            "more rows."
        )
    span = y.max() - y.min() if rows.task == "regression" else 1.0
    if span > _WIDEST or 0 < span < _NARROWEST:
        far = "too far" if span > _WIDEST else "too little"
        raise InputError(f"The outcome spans {y.min():g} to {y.max():g}, {far} for squared errors; rescale it.")
    if rows.task == "regression" and len(counts) < 2:
        raise InputError(f"The outcome {rows.outcome!r} is constant among the training rows; pass more rows.")
    if not rows.verdict.holds and plan.route == INDEPENDENCE:
        note(f"the graph does not certify {rows.roles.independence}; enforced all the same.")
    if not rows.roles.unchanged and rows.verdict.holds:
        note("every input descends from the protected columns: the strict end of the statement is a constant.")
    codes = rows.perhaps_codes()
    if codes:
        note(
            f"{', '.join(codes)} may hold codes of categories, and {'is' if len(codes) == 1 else 'are'} taken for "
            f"numbers; if they are codes, pass --categories {shlex.quote(join_names(codes))}."
        )
    for name, levels in rows.mostly_rare().items():
        note(
            f"most of the {levels} categories of {name} stand in fewer than {LEAST_OF_A_LEVEL} of {len(X)} training "
            "rows, which say little about them; group them, by the first digits of a code for example."
        )


def train(base: CIPEstimator, rows: TrainingTable, plan: Plan) -> Trained:
    """Choose gamma, train, and score on the rows held out."""
    # Two threads on two busy cores are many times slower than one.
    torch.set_num_threads(1)
    X, y = rows.training()
    with warnings.catch_warnings(), progress(*_planned(plan)) as bar:
        # Said before training, or after it, in one line each.
        warnings.filterwarnings("ignore", message="The graph does not certify|Even |.* rows are copies")
        comparison = None
        if plan.goal is not None or (plan.route != INDEPENDENCE and plan.allowed is not None):
            comparison = _routes_compared(base, X, y, rows, plan, bar)
            model, remark = comparison.model, comparison.reason
            # A line has no gamma, and the predictor without a penalty keeps its place.
            models = {getattr(model, "gamma_", math.inf): model, 0.0: comparison.models[comparison.free]}
            trace = _trace(comparison, models)
        elif plan.allowed is not None:
            search = GammaSearch(
                base,
                plan.allowed,
                plan.measure,
                low=_LOW,
                high=_HIGH,
                max_trials=plan.trials,
                validation_fraction=_JUDGES,
                refit=plan.refit,
                verbose=bar,
                random_state=rows.request.seed,
            ).fit(X, y)
            model, models, trace, remark = search.best_estimator_, search.models_, search.frontier_, search.remark_
        else:
            model, models, trace = _at_a_fixed_gamma(base, X, y, plan, rows.request.seed, bar)
            remark = ""
    return Trained(model, models, trace, remark, scored(model, rows), comparison)


def _routes_compared(base: CIPEstimator, X: Any, y: Any, rows: TrainingTable, plan: Plan, bar: Any) -> Comparison:
    """Compare the routes that a goal or a tolerance chooses among."""
    # Where routes are not compared, nothing asks a causal model.
    from ciplearn.learners import LEARNERS
    from ciplearn.routes import TRAINED_ROUTES, compare_routes

    seed = rows.request.seed
    if plan.goal is None:
        routes = TRAINED_ROUTES if plan.route == AUTO else (plan.route,)
        return compare_routes(
            base, X, y, plan.allowed or 0.0, plan.measure, routes=routes, random_state=seed, verbose=bar
        )
    names = list(LEARNERS) if plan.learner == AUTO else [plan.learner]
    # The network is that of the options.
    learners = {name: None if name == "network" else LEARNERS[name]() for name in names}
    few = {"learners": learners, "baselines": False, "cv": _HALVES, "random_state": seed, "verbose": bar}
    return compare_routes(base, X, y, plan.goal, routes=(REPAIR, LEFT_OUT), **few)


def scored(model: Any, rows: TrainingTable) -> dict[str, float]:
    """Score a model on the rows held out; nothing where they are too few."""
    held_X, held_y = rows.judging()
    if model.route_ == REPAIR:
        # The worlds of a row that misses a value are unknown.
        held_X = held_X.dropna(subset=list(model.inputs_))
        held_y = held_y.loc[held_X.index]
    if rows.task == "classification":
        # No probability was learnt for a class that training has not seen.
        seen = held_y.isin(list(model.classes_))
        held_X, held_y = held_X[seen], held_y[seen]
    return _measures(model, held_X, held_y) if len(held_X) >= _LEAST_SCORED else {}


def _trace(comparison: Comparison, models: Mapping[float, CIPEstimator]) -> Frontier:
    """What was measured of the models that are kept; all candidates are in the comparison's table."""
    known = comparison.table.set_index("name")
    names = {id(model): name for name, model in comparison.models.items()}
    points = []
    for gamma, model in models.items():
        if not math.isfinite(gamma):
            continue
        row = known.loc[names[id(model)]]
        points.append(Point(gamma, 0, {name: float(row[name]) for name in ("loss", "score")}))
    return Frontier(tuple(points))


def _planned(plan: Plan) -> tuple[str, str, int | None]:
    """What is done, in which unit, and how often; a comparison of routes says itself how many trainings it takes."""
    if plan.goal is not None or (plan.route != INDEPENDENCE and plan.allowed is not None):
        return "comparing routes", "training", None
    if plan.gamma is None:
        return "choosing gamma", "training", plan.trials + 1
    return "training", "training", len(_compared(plan)) + _is_trained_on_all(plan)


def _compared(plan: Plan) -> list[float]:
    """The gammas that are judged beside each other where one was named."""
    return sorted({0.0, float(plan.gamma or 0.0)}) if plan.compare else []


def _is_trained_on_all(plan: Plan) -> bool:
    """Whether the model of a named gamma also sees the rows that would judge it."""
    return plan.refit or not plan.compare


def _at_a_fixed_gamma(
    base: CIPEstimator, X: Any, y: Any, plan: Plan, seed: int, bar: Any
) -> tuple[CIPEstimator, dict[float, CIPEstimator], Frontier]:
    """Train at the gamma that was named and, to compare, without a penalty."""
    gamma = float(plan.gamma or 0.0)
    models: dict[float, CIPEstimator] = {}
    trace = Frontier(())
    if plan.compare:
        train_on, judge_on = split_rows(X, y, _JUDGES, seed, y if is_classifier(base) else None)
        prepared = Prepared.of(base, X.iloc[train_on], y.iloc[train_on])
        for other in _compared(plan):
            models[other] = prepared.trained(other)
            bar.update()
        judging = X.iloc[judge_on], y.iloc[judge_on]
        trace = Frontier(tuple(Point(other, 0, _measures(one, *judging)) for other, one in models.items()))
    if not _is_trained_on_all(plan):
        return models[gamma], models, trace
    model = clone(base).set_params(gamma=gamma).fit(X, y)
    bar.update()
    return model, models, trace


def _measures(model: Any, X: Any, y: Any) -> dict[str, float]:
    judged = Judged.of(model, X, y)
    found = {name: CRITERIA[name](judged) for name in ("loss", "score")}
    return found | ({"penalty": model.penalty_value(X)} if model.route_ == INDEPENDENCE else {})
