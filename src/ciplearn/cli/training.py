"""How to train, and what training leaves: the choice of gamma, the model, and its scores on rows held out.

Of a table beyond memory everything is chosen on rows drawn from all files, then one training sees all rows.
"""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone, is_classifier

from ciplearn._core.arguments import one_of
from ciplearn._core.column_sums import ColumnSum, TableSums
from ciplearn._core.columns import CATEGORY, in_kinds, read_numbers
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import (
    CopiesWarning,
    GraphError,
    InputError,
    NotCertifiedWarning,
    NothingGainedWarning,
    OddRowsWarning,
)
from ciplearn._core.rows import Array, RowsDrawn, TrainedRows, digested, row_digests, smallest
from ciplearn._core.workers import Engine, give_back_what_is_free, give_back_what_is_freed
from ciplearn.cli.commands import AUTO, INDEPENDENCE, REPAIR, Plan
from ciplearn.cli.options import join_names
from ciplearn.cli.output import note, progress, tell_listener
from ciplearn.cli.training_table import (
    LEAST_OF_A_LEVEL,
    FitRequest,
    TrainingTable,
    nodes_in,
    refuse_beyond_floats,
    stray_text,
)
from ciplearn.estimators import CIPClassifier, CIPRegressor
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Judged, split_rows
from ciplearn.estimators.gamma_search import GammaSearch
from ciplearn.estimators.networks import check_size
from ciplearn.estimators.preparation import Prepared
from ciplearn.estimators.streaming import fit_stream
from ciplearn.estimators.tables import OddRows
from ciplearn.learning.frontier import Point
from ciplearn.learning.invariance import Invariance
from ciplearn.learning.settings import TrainingSettings, chosen_device
from ciplearn.penalties import PENALTIES
from ciplearn.sources import Part, TableFiles

if TYPE_CHECKING:
    from ciplearn.routes import Comparison

_LOW, _HIGH, _JUDGES = 1e-3, 1e4, 0.2  # ends of the search for gamma, and the share of the training rows that judge it
_NARROWEST, _WIDEST = 1e-150, 1e150  # squares of wider or narrower ranges are no numbers
_HALVES = 2  # two halves judge each other: each is trained on once, and has one causal model
_LEAST_SCORED = 20  # fewer held-out rows say little
_ROWS_TO_CHOOSE = 40_000  # of a table beyond memory: rows that gamma is chosen on, and that are kept for the audit
_BY_CHANCE = 0.05  # of rows that chance repeats more often copies are not told from others

# The training on all rows takes so many times the steps of one on these rows, and goes through all rows so often.
_MORE_STEPS, _LEAST_EPOCHS = 3, 3


@dataclass(frozen=True, eq=False)
class Trained:
    """What training has left."""

    model: Any
    models: Mapping[float, CIPEstimator] = field(default_factory=dict)  # by gamma, trained on rows that do not judge
    trace: tuple[Point, ...] = ()  # measures of each of them on the rows that judge
    remark: str = ""  # what to know about the chosen gamma
    scores: Mapping[str, float] = field(default_factory=dict)  # of the model on held-out rows, unless these are too few
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
            "trials": [{"gamma": one.gamma, **one.measures} for one in sorted(self.trace, key=lambda one: one.gamma)],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }


def estimator(rows: TrainingTable, plan: Plan) -> CIPEstimator:
    """Return the estimator, not yet trained."""
    verdict = rows.verdict
    one_of(plan.on_violation, "--on-violation", ("raise", "warn"))
    one_of(plan.measure or "loss", "--measure", CRITERIA)
    if plan.penalty is not None:
        one_of(plan.penalty, "--penalty", PENALTIES)
    if not verdict.holds and plan.on_violation == "raise" and plan.route == INDEPENDENCE:
        raise GraphError(
            f"The graph does not certify {verdict.independence}: {' '.join(verdict.reasons)} Change the roles "
            "(ciplearn check shows repairs), or pass --on-violation warn to enforce it all the same."
        )
    usual = "residual-hscic" if verdict.independence.given else "hsic"
    kind = CIPClassifier if rows.task == "classification" else CIPRegressor
    return kind(
        graph=rows.request.graph,
        outcome=rows.outcome,
        protected=list(verdict.protected),
        context=list(verdict.context),
        inputs=list(verdict.inputs),
        # As it was asked for, so that the graph is judged once; None is settled alike.
        adjustment=rows.request.adjustment,
        # The estimator's own choice is named there.
        penalty=None if plan.penalty in (None, usual) else PENALTIES[plan.penalty](),
        # The paper prepares its penalty batch by batch.
        prepare_once=plan.penalty != "hscic-paper",
        on_violation=plan.on_violation,
        missing=rows.request.missing,
        random_state=rows.request.seed,
        **plan.network(len(rows.training()[0])),
    )


def refuse_untrainable(rows: TrainingTable, plan: Plan) -> None:
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
                f"The outcome {rows.outcome!r} is {counts.idxmin()!r} in a single training row; group them or add rows."
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
    with warnings.catch_warnings():
        for said_elsewhere in (NotCertifiedWarning, NothingGainedWarning, CopiesWarning, OddRowsWarning):
            # Before training, or after it, in one line each; what only rows that judge show is in the table.
            warnings.simplefilter("ignore", said_elsewhere)
        by_gamma = _gamma_searched if plan.gamma is None else _at_a_fixed_gamma
        follow = by_gamma if plan.route == INDEPENDENCE else _routes_compared
        trained = follow(base, *rows.training(), rows.request.seed, plan)
    scores, measure = scored(trained.model, rows), plan.measure or "loss"
    trained = replace(trained, scores=scores, tolerance=plan.allowed, measure=measure)
    tell_listener(trained=trained)
    return trained


def _routes_compared(base: CIPEstimator, X: Any, y: Any, seed: int, plan: Plan) -> Trained:
    """Compare the routes that a goal or a tolerance chooses among."""
    # Where routes are not compared, nothing asks a causal model.
    from ciplearn.learners import LEARNERS
    from ciplearn.routes import TRAINED_ROUTES, compare_routes
    from ciplearn.routes.left_out import LEFT_OUT

    goal: Any = plan.goal() if plan.by_goal else plan.allowed or 0.0
    how: dict[str, Any] = {"routes": TRAINED_ROUTES if plan.route == AUTO else (plan.route,), "scoring": plan.measure}
    if plan.by_goal:
        names = list(LEARNERS) if plan.learner == AUTO else [plan.learner]
        learners = {name: None if name == "network" else LEARNERS[name]() for name in names}  # None: by the options
        how = {"routes": (REPAIR, LEFT_OUT), "learners": learners, "baselines": False, "cv": _HALVES}
    # The comparison says itself how many trainings it takes.
    with progress("comparing routes", "training") as bar:
        comparison = compare_routes(base, X, y, goal, **how, random_state=seed, verbose=bar)
        bar.total = bar.n  # not every learner needs all of its trainings
    # A line has no gamma, and the predictor without a penalty keeps its place.
    kept = {getattr(comparison.model, "gamma_", math.inf): comparison.chosen, 0.0: comparison.free}
    measured = comparison.table.set_index("name")[["loss", "score"]].astype(float)
    points = (Point(gamma, 0, measured.loc[name].to_dict()) for gamma, name in kept.items() if math.isfinite(gamma))
    models = {gamma: comparison.models[name] for gamma, name in kept.items()}
    return Trained(comparison.model, models, tuple(points), comparison.reason, comparison=comparison)


def _gamma_searched(base: CIPEstimator, X: Any, y: Any, seed: int, plan: Plan) -> Trained:
    """Search for the largest gamma within the tolerance."""
    with progress("choosing gamma", "training", plan.trials + 1) as bar:
        asked: dict[str, Any] = {"low": _LOW, "high": _HIGH, "max_trials": plan.trials, "refit": plan.refit}
        asked |= {"validation_fraction": _JUDGES, "verbose": bar, "random_state": seed}
        search = GammaSearch(base, plan.allowed or 0.0, plan.measure, **asked).fit(X, y)
        bar.total = bar.n  # what is found early needs no more trials
    return Trained(search.best_estimator_, search.models_, search.frontier_.points, search.remark_)


def _at_a_fixed_gamma(base: CIPEstimator, X: Any, y: Any, seed: int, plan: Plan) -> Trained:
    """Train at the gamma that was named and, to compare, without a penalty."""
    gamma = float(plan.gamma or 0.0)
    compared = sorted({0.0, gamma}) if plan.compare else []
    models: dict[float, CIPEstimator] = {}
    trace: tuple[Point, ...] = ()
    with progress("training", "training", len(compared) + (plan.refit or not compared)) as bar:
        if compared:
            train_on, judge_on = split_rows(X, y, _JUDGES, seed, y if is_classifier(base) else None)
            prepared = Prepared.of(base, X.iloc[train_on], y.iloc[train_on])
            for other in compared:
                models[other] = prepared.trained(other)
                bar.update()
            X_judging, y_judging = X.iloc[judge_on], y.iloc[judge_on]
            penalty = prepared.judge(X_judging)
            trace = tuple(Point(at, 0, _measures(one, X_judging, y_judging, penalty)) for at, one in models.items())
        if compared and not plan.refit:
            return Trained(models[gamma], models, trace)
        model = clone(base).set_params(gamma=gamma).fit(X, y)
        bar.update()
    return Trained(model, models, trace)


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
    if len(held_X) < _LEAST_SCORED:
        return {}
    for sentence in OddRows.of(model, held_X).sentences(model):
        note(sentence)
    with warnings.catch_warnings(action="ignore", category=OddRowsWarning):
        return _measures(model, held_X, held_y)


def _measures(model: Any, X: Any, y: Any, penalty: Invariance | None = None) -> dict[str, float]:
    """Measure a model; ``penalty``: prepared on these rows, where several models are measured on them."""
    judged = Judged.of(model, X, y)
    measures = {name: CRITERIA[name](judged) for name in ("loss", "score")}
    kept = model.route_ == INDEPENDENCE
    return measures | ({"penalty": model.penalty_value(X, penalty=penalty)} if kept else {})


def _sums(columns: tuple[str, ...], categories: frozenset[str], part: Part) -> TableSums:
    """What the columns of a part hold."""
    sums = TableSums(columns, categories)
    for chunk in part.chunks(columns, categories):
        sums.update(chunk, part.where)
    return sums


def _drawn(columns: tuple[str, ...], labels: tuple[str, ...], job: tuple[Part, int]) -> RowsDrawn:
    """Some rows of a part, drawn at random."""
    part, start = job
    drawn = RowsDrawn(_ROWS_TO_CHOOSE)
    numbers = [name for name in columns if name not in labels]
    for chunk in part.chunks(columns, labels):
        # As numbers they take a tenth of the memory of their text.
        rows = chunk.assign(**{name: read_numbers(chunk[name]) for name in numbers})
        drawn.update(rows.set_axis(rows.index + start))
    return drawn


def sampled_table(source: TableFiles, request: FitRequest, engine: Engine) -> TrainingTable:
    """Settle kinds on all rows, and everything else on rows that are drawn from all files."""
    give_back_what_is_freed()
    nodes = tuple(nodes_in(request, source.names))
    parts = source.parts()
    total = TableSums(nodes, request.categories)
    sizes = []
    with source.unchanged(), progress("reading", "part", 2 * len(parts)) as bar:
        identity = source.identity()
        for sums in engine.each(partial(_sums, nodes, frozenset(request.categories)), parts):
            total.merge(sums)
            sizes.append(sums.rows)
            bar.update()
        categories = _categories(total.finalise(), request)
        drawn = RowsDrawn(_ROWS_TO_CHOOSE)
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        for some in engine.each(partial(_drawn, nodes, tuple(categories)), list(zip(parts, starts, strict=True))):
            drawn.merge(some)
            bar.update()
    # What is a category in one file is one in all, also among the rows that were drawn.
    settled = replace(request, categories=tuple(dict.fromkeys((*request.categories, *categories))))
    return TrainingTable.understood(drawn.finalise(), source.names, identity, settled, total.rows)


def _told(kinds: Mapping[str, str], held_out: Array, part: Part) -> tuple[Array, Array, int]:
    """The digests of the rows of a part, all or the smallest, and the places of rows that are like those held out."""
    labels = [name for name, kind in kinds.items() if kind == CATEGORY]
    digests, copies, n_rows = np.empty(0, dtype=np.uint64), [np.empty(0, dtype=np.int64)], 0
    for chunk in part.chunks(list(kinds), labels):
        rows = row_digests(in_kinds(chunk, kinds, part.where), list(kinds))
        held = np.isin(rows, held_out)
        digests = smallest(np.concatenate([digests, rows[~held]]))
        copies.append(n_rows + np.flatnonzero(held))
        n_rows += len(chunk)
    return digests, np.concatenate(copies), n_rows


def told_apart(rows: TrainingTable, source: TableFiles, engine: Engine) -> TrainingTable:
    """Keep copies of held-out rows from training wherever they are, and what the rows that train are known by.

    Where chance repeats rows like those that were drawn, as it does those of a few categories, nothing is told.
    """
    digests, repeats = digested(rows.table, rows.told_by)
    # As often more as there are more rows.
    chance = float(np.minimum(1, repeats * rows.n_rows / len(digests)).mean())
    if chance > _BY_CHANCE:
        return replace(rows, trained=TrainedRows.of(tuple(rows.told_by), digests[:0], repeats[:0]))
    held_out = np.unique(digests[rows.table.index.isin(rows.held_out)])
    parts = source.parts()
    trained, copies, start = np.empty(0, dtype=np.uint64), [rows.held_out], 0
    with source.unchanged(), progress("telling rows apart", "part", len(parts)) as bar:
        for of_part, like_held_out, n_rows in engine.each(partial(_told, rows.told_by, held_out), parts):
            trained = smallest(np.concatenate([trained, of_part]))
            copies.append(start + like_held_out)
            start += n_rows
            bar.update()
    told = TrainedRows.of(tuple(rows.told_by), trained, np.full(len(trained), chance))
    return replace(rows, held_out=np.unique(np.concatenate(copies)), trained=told)


def _categories(kinds: Mapping[str, ColumnSum], request: FitRequest) -> list[str]:
    """Columns that hold labels; a stray one among numbers is named with its file."""
    categories = {name: column for name, column in kinds.items() if column.kind == CATEGORY}
    for name, column in categories.items():
        confirmed = name in request.categories or (name == request.outcome and request.task is not None)
        if column.stray is None or confirmed:
            continue
        labels = pd.Series(list(column.labels), name=name)
        if name != request.outcome or len(labels) != 2:
            refuse_beyond_floats(labels, "--task classification" if name == request.outcome else f"--categories {name}")
        if stray_text(labels) is not None:
            cell, where = column.stray
            raise InputError(
                f"Column {name!r} holds mostly numbers, but also cells like {cell!r} in {where}; correct these, name "
                f"them with --na, or pass --categories {name}."
            )
    return list(categories)


def train_stream(base: CIPEstimator, rows: TrainingTable, plan: Plan, source: TableFiles, engine: Engine) -> Trained:
    """Choose route and gamma on the rows that were drawn, then train on all rows but those kept for the audit."""
    torch.set_num_threads(1)
    give_back_what_is_free()
    some, size = len(rows.training()[0]), base.batch_size
    steps = _MORE_STEPS * base.epochs * math.ceil(some / size)
    count = plan.epochs or max(_LEAST_EPOCHS, math.ceil(steps / math.ceil(rows.n_rows / size)))
    if plan.gamma is not None and not plan.compare:
        # Nothing is left to choose.
        trained, how = Trained(clone(base).set_params(gamma=plan.gamma)), ""
    else:
        trained, how = train(base, rows, plan), f"chosen on {some} rows drawn from all; now "
    if source.identity() != rows.identity:
        raise InputError(f"{source.path} was changed since rows were drawn from it; run again when it is written.")
    note(f"{how}training on {rows.n_rows} rows, {count} epochs.")
    model = fit_stream(
        clone(trained.model).set_params(epochs=count, verbose=True),
        source,
        rows.outcome,
        engine,
        left_out=rows.held_out,
        categories=[name for name, kind in rows.kinds.items() if kind == CATEGORY],
        share=getattr(trained.model, "share_", None),
    )
    # What was chosen knows its route; where nothing was, the fit has found it.
    model.route_ = getattr(trained.model, "route_", model.route_)
    give_back_what_is_free()
    return replace(trained, model=model.set_params(verbose=False), scores=scored(model, rows))
