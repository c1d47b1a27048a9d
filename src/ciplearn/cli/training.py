"""How to train, and what training leaves: the choice of gamma, the model, and its scores on rows held out."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from sklearn.base import clone, is_classifier

from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import CopiesWarning, GraphError, InputError, NotCertifiedWarning, NothingGainedWarning
from ciplearn.cli.output import note, progress, tell_listener
from ciplearn.cli.parsing import choice, join_names
from ciplearn.cli.plan import AUTO, INDEPENDENCE, REPAIR, Plan
from ciplearn.cli.training_table import LEAST_OF_A_LEVEL, TrainingTable
from ciplearn.estimators import CIPClassifier, CIPRegressor
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Judged, split_rows
from ciplearn.estimators.gamma_search import GammaSearch
from ciplearn.estimators.networks import check_size
from ciplearn.estimators.preparation import LEFT_OUT, Prepared
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point
from ciplearn.learning.settings import TrainingSettings, chosen_device
from ciplearn.penalties import PENALTIES, Penalty

if TYPE_CHECKING:
    from ciplearn.routes import Comparison

# Ends of the search for gamma, and the share of the training rows that judge it.
_LOW, _HIGH, _JUDGES = 1e-3, 1e4, 0.2

# Squares of wider or narrower ranges are no numbers.
_NARROWEST, _WIDEST = 1e-150, 1e150

# Two halves judge each other: each is trained on once, and has one causal model.
_HALVES = 2

# Fewer held-out rows say little.
_LEAST_SCORED = 20


@dataclass(frozen=True, eq=False)
class Trained:
    """What training has left."""

    model: Any
    models: Mapping[float, CIPEstimator]  # by gamma, trained on the rows that do not judge
    trace: Frontier  # loss, score and penalty of each of them on the rows that judge; empty where nothing was compared
    remark: str  # what to know about the chosen gamma
    scores: Mapping[str, float]  # of the model on held-out rows; empty where too few were held out
    comparison: Comparison | None = None  # of the routes, where they were compared
    tolerance: float | None = None  # what a search may lose, by this measure
    measure: str = "loss"

    def to_dict(self) -> dict[str, Any]:
        """Return what training has come to as JSON-ready data."""
        return {
            "gamma": getattr(self.model, "gamma_", None),
            "tolerance": self.tolerance,
            "measure": self.measure,
            "remark": self.remark,
            "scores": dict(self.scores),
            "trials": self.trace.table.drop(columns="seed").to_dict(orient="records") if self.trace.points else [],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }


def estimator(rows: TrainingTable, plan: Plan) -> CIPEstimator:
    """Return the estimator, not yet trained."""
    verdict = rows.verdict
    choice("--on-violation", plan.on_violation, ("raise", "warn"))
    choice("--measure", plan.measure or "loss", CRITERIA)
    if plan.penalty is not None:
        choice("--penalty", plan.penalty, PENALTIES)
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
        **plan.network(len(rows.training()[0])),
    )


def _penalty(name: str | None, *, conditional: bool) -> Penalty | None:
    """Return the penalty of a name, or None for the estimator's own choice."""
    if name is None or name == ("residual-hscic" if conditional else "hsic"):
        return None
    return PENALTIES[name]()


def refuse_before_training(rows: TrainingTable, plan: Plan) -> None:
    """Refuse what cannot be trained while no time is lost yet, and note what people should look at."""
    X, y = rows.training()
    chosen_device(plan.device)
    TrainingSettings(gamma=plan.gamma or 0.0, batch_size=plan.batch_size, learning_rate=plan.learning_rate)
    encoding = TableEncoding.of(X, rows.roles.used)
    widths = (encoding.width, *plan.widths, y.nunique() if rows.task == "classification" else 1)
    check_size(widths, f"--hidden {join_names(plan.widths)}")
    counts = y.value_counts()
    if len(counts) < 2:
        raise InputError(
            f"The outcome {rows.outcome!r} is {counts.index[0]!r} in all {len(y)} training rows; pass more rows, with "
            "other values of it."
        )
    if rows.task == "classification":
        if counts.min() < 2:
            raise InputError(
                f"The outcome {rows.outcome!r} is {counts.idxmin()!r} in a single training row; group rare labels, or "
                "pass more rows."
            )
    elif not _NARROWEST <= (span := y.max() - y.min()) <= _WIDEST:
        far = "too far" if span > _WIDEST else "too little"
        raise InputError(f"The outcome spans {y.min():g} to {y.max():g}, {far} for squared errors; rescale it.")
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
    comparison, remark = None, ""
    with warnings.catch_warnings(), progress(*_planned(plan)) as bar:
        for said_elsewhere in (NotCertifiedWarning, NothingGainedWarning, CopiesWarning):
            # Before training, or after it, in one line each.
            warnings.simplefilter("ignore", said_elsewhere)
        if plan.route != INDEPENDENCE:
            comparison = _routes_compared(base, X, y, rows, plan, bar)
            model, remark = comparison.model, comparison.reason
            # A line has no gamma, and the predictor without a penalty keeps its place.
            models = {getattr(model, "gamma_", math.inf): model, 0.0: comparison.models[comparison.free]}
            trace = _trace(comparison, models)
        elif plan.gamma is None:
            search = GammaSearch(
                base,
                plan.allowed or 0.0,
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
    scores, measure = scored(model, rows), plan.measure or "loss"
    trained = Trained(model, models, trace, remark, scores, comparison, plan.allowed, measure)
    tell_listener(trained=trained)
    return trained


def _planned(plan: Plan) -> tuple[str, str, int | None]:
    """What is done, in which unit, and how often; a comparison of routes says itself how many trainings it takes."""
    if plan.route != INDEPENDENCE:
        return "comparing routes", "training", None
    if plan.gamma is None:
        return "choosing gamma", "training", plan.trials + 1
    return "training", "training", len(_compared(plan)) + (plan.refit or not plan.compare)


def _routes_compared(base: CIPEstimator, X: Any, y: Any, rows: TrainingTable, plan: Plan, bar: Any) -> Comparison:
    """Compare the routes that a goal or a tolerance chooses among."""
    # Where routes are not compared, nothing asks a causal model.
    from ciplearn.learners import LEARNERS
    from ciplearn.routes import TRAINED_ROUTES, compare_routes

    common: dict[str, Any] = {"random_state": rows.request.seed, "verbose": bar}
    if not plan.by_goal:
        routes = TRAINED_ROUTES if plan.route == AUTO else (plan.route,)
        return compare_routes(base, X, y, plan.allowed or 0.0, plan.measure, routes=routes, **common)
    names = list(LEARNERS) if plan.learner == AUTO else [plan.learner]
    # The network is that of the options.
    learners = {name: None if name == "network" else LEARNERS[name]() for name in names}
    few: dict[str, Any] = {"learners": learners, "baselines": False, "cv": _HALVES}
    return compare_routes(base, X, y, plan.goal(), routes=(REPAIR, LEFT_OUT), **few, **common)


def _trace(comparison: Comparison, models: Mapping[float, CIPEstimator]) -> Frontier:
    """What was measured of the models that are kept; all candidates are in the comparison's table."""
    rows = comparison.table.set_index("name")[["loss", "score"]]
    names = {id(model): name for name, model in comparison.models.items()}
    kept = {gamma: rows.loc[names[id(model)]] for gamma, model in models.items() if math.isfinite(gamma)}
    return Frontier(tuple(Point(gamma, 0, measured.astype(float).to_dict()) for gamma, measured in kept.items()))


def _compared(plan: Plan) -> list[float]:
    """The gammas that are judged beside each other where one was named."""
    return sorted({0.0, float(plan.gamma or 0.0)}) if plan.compare else []


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
    if plan.compare and not plan.refit:
        return models[gamma], models, trace
    model = clone(base).set_params(gamma=gamma).fit(X, y)
    bar.update()
    return model, models, trace


def scored(model: Any, rows: TrainingTable) -> dict[str, float]:
    """Score a model on the rows held out; nothing where they are too few."""
    held_X, held_y = rows.training(held_out=True)
    if model.route_ == REPAIR:
        # The worlds of a row that misses a value are unknown.
        held_X = held_X.dropna(subset=list(model.inputs_))
        held_y = held_y.loc[held_X.index]
    if rows.task == "classification":
        # No probability was learnt for a class that training has not seen.
        seen = held_y.isin(list(model.classes_))
        held_X, held_y = held_X[seen], held_y[seen]
    return _measures(model, held_X, held_y) if len(held_X) >= _LEAST_SCORED else {}


def _measures(model: Any, X: Any, y: Any) -> dict[str, float]:
    judged = Judged.of(model, X, y)
    found = {name: CRITERIA[name](judged) for name in ("loss", "score")}
    return found | ({"penalty": model.penalty_value(X)} if model.route_ == INDEPENDENCE else {})
