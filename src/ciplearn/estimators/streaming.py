"""A fit on a table beyond memory: two passes over the source, then training from files of encoded rows.

The first pass finds what the columns hold, as sums; the second encodes the rows, imagines them in other worlds where a
causal model was passed, and keeps them, in single precision, in files that training reads in blocks. Parts of the table
go through each pass alone, in whatever process: what comes out does not depend on the engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from torch import Tensor
from tqdm import tqdm

from ciplearn._core.choices import one_of
from ciplearn._core.column_sums import TableSums
from ciplearn._core.columns import CATEGORY, TableEncoding
from ciplearn._core.engine import Engine
from ciplearn._core.errors import InputError, NothingProtectedWarning
from ciplearn._core.memory import give_back_what_is_free
from ciplearn._core.rows import RowsDrawn, sampled_numbers
from ciplearn.causal.vector_columns import node_of
from ciplearn.estimators.criteria import stopping_count
from ciplearn.estimators.encoding_parts import Encoder, EncodingJob, PartReading, joined_rows
from ciplearn.estimators.penalty_terms import (
    WorldsOfRows,
    checked_models,
    compared,
    counterfactual_scale,
    is_relative,
    outcome_scale,
)
from ciplearn.estimators.preparation import (
    COUNTERFACTUAL,
    NO_ROUTE,
    Prepared,
    Split,
    certified_roles,
    preparation_seed,
    worst,
)
from ciplearn.estimators.tables import MISSING_POLICIES, going_on, naming_inputs
from ciplearn.learning import StreamedRows, TrainingRows, Validation
from ciplearn.learning.invariance import PER_STEP, Dependence, StreamedVariance
from ciplearn.learning.settings import chosen_device
from ciplearn.learning.streamed_rows import StoredPart
from ciplearn.sources import Part, Source
from ciplearn.sources.table_file import in_kinds

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

# Rows that say when to stop: more do not say it better, and they are judged after every epoch.
_MOST_VALIDATION_ROWS = 1 << 12

# Rows that the pieces of numbers' ranges and the unit of gamma are read off.
_ROWS_LOOKED_AT = 1 << 14

# Rows that tell how the protected columns are distributed.
_LAW_ROWS = 1 << 14

# More than a part has: rows are told apart before anyone knows how many there are.
_MOST_IN_A_PART = 1 << 40

_CHECKPOINT = "training.checkpoint"


def fit_stream(
    estimator: CIPEstimator,
    source: Source,
    y: Any,
    engine: Engine,
    sample_weight: Any = None,
    tensors: Sequence[Any] = (),
    imagined: Any = None,
    left_out: np.ndarray | None = None,
    categories: Sequence[str] = (),
    share: float | None = None,
) -> CIPEstimator:
    """Train an estimator on a table that streams; what belongs to rows in memory is refused.

    ``left_out``: numbers of rows that training must not see. ``categories``: columns that hold labels, whatever they
    look like. ``share``: of the variance of counterfactuals; the estimator is then trained at gamma 0, and what is
    returned lies on the straight line from the predictor on unchanged inputs to it.
    """
    for name, given in (("sample_weight", sample_weight), ("imagined", imagined)):
        if given is not None:
            raise InputError(f"A table that streams is trained on without {name}; leave it out, or pass a frame.")
    if len(tensors):
        raise InputError("A table that streams is trained on without tensors; pass a frame.")
    with engine.folder() as folder, going_on(estimator) as refuse_others:
        with source.unchanged():
            # Training itself reads the files in the folder.
            prepared = prepare_stream(estimator, source, y, engine, folder, left_out, categories)
        refuse_others()
        own = estimator.checkpoint
        if own is None and engine.workers > 1:
            # A worker that is lost must not cost the whole training.
            estimator.checkpoint = folder / _CHECKPOINT
        try:
            with naming_inputs(estimator.encoding_, 0):
                trained = prepared.train(estimator)
                return trained if share is None else prepared.line(trained, [share])[0]
        finally:
            estimator.checkpoint = own


def prepare_stream(
    estimator: CIPEstimator,
    source: Source,
    y: Any,
    engine: Engine,
    folder: Path,
    left_out: np.ndarray | None = None,
    categories: Sequence[str] = (),
) -> Prepared:
    """Find out what the columns hold, encode the rows into files in a folder, and prepare the penalty."""
    names = source.names
    outcome = _outcome_name(estimator, y, names)
    others = [name for name in names if name != outcome]
    one_of(estimator.missing, "missing", MISSING_POLICIES)
    if hasattr(estimator, "array_names_"):
        del estimator.array_names_
    estimator.n_features_in_, estimator.feature_names_in_ = len(others), np.asarray(others, dtype=object)
    estimator.preparation_seed_ = preparation_seed(estimator.random_state)
    estimator.roles_ = roles = certified_roles(estimator, pd.DataFrame(columns=others), None)
    models = checked_models(estimator.counterfactuals) if estimator.route_ == COUNTERFACTUAL else ()
    if len(roles.statements) > 1 and not models:
        raise InputError("Of a table that streams one independence is kept, got several; pass one, or pass a frame.")
    parts, policy = source.parts(), estimator.missing
    used = (*roles.used, outcome)
    # A causal model may look at the nodes of its graph; one without a graph may look at all columns.
    graphs = [getattr(model, "graph", None) for model in models]
    also = tuple(
        name
        for name in others
        if name not in used and any(one is None or node_of(name, one.nodes) in one.observed for one in graphs)
    )
    known = tuple(name for name in categories if name in (*used, *also))
    read = PartReading(used, outcome, policy, known, also)
    law = roles.protected if models else ()
    total, drawn, found = _first_pass(read, law, parts, engine, bool(estimator.verbose))
    columns = total.finalise()
    values = [columns[name] for name in roles.protected]
    if values and all(len(one.labels) <= 1 if one.kind == CATEGORY else one.low == one.high for one in values):
        sentence = f"{roles.nothing_protected(total.rows)}, or pass rows that differ."
        warnings.warn(sentence, NothingProtectedWarning, stacklevel=4)
    estimator._learn_summed_target(columns[outcome])
    estimator.encoding_ = _encoding(columns, roles.inputs, total.rows)
    estimator.statement_encodings_ = tuple(
        (_encoding(columns, one.right, total.rows), _encoding(columns, one.given, total.rows))
        for one in roles.statements
    )
    worlds = None
    if models:
        kinds = {name: columns[name].kind for name in law}
        worlds = WorldsOfRows.of(in_kinds(drawn.finalise(), kinds, source.shown), PER_STEP)
    encoder = Encoder(estimator, columns, read, models, worlds)
    numbers = _drawn_numbers(estimator, int(sum(found)), left_out)
    jobs = [
        EncodingJob(part, start, folder / f"{place:06d}.rows", *(_within(each, start, size) for each in numbers))
        for place, (part, size, start) in enumerate(zip(parts, found, _starts(found), strict=True))
    ]
    stored, judging, looked_at = _second_pass(encoder, jobs, engine, bool(estimator.verbose))
    give_back_what_is_free()
    layout = encoder.layout()
    rows = StreamedRows(
        tuple(
            StoredPart(str(job.path), size, start, layout)
            for job, size, start in zip(jobs, stored, _starts(stored), strict=True)
            if size
        ),
        layout,
        chosen_device(estimator.setting("device")),
        looked_at,
    )
    if len(rows) < 2:
        raise InputError(f"{source.shown} has {len(rows)} rows to train on, and training needs 2; pass more rows.")
    return _prepared(estimator, rows, judging, looked_at, engine, worlds, len(models))


def blocks_to_predict(estimator: CIPEstimator, source: Source) -> Iterator[pd.DataFrame]:
    """The inputs' columns of a table that streams, block by block, in the kinds of the training; one block at least."""
    kinds = {column.name: column.kind for column in estimator.encoding_.columns}
    labels = [name for name, kind in kinds.items() if kind == CATEGORY]
    is_empty = True
    for part in source.parts():
        for block in part.chunks(list(kinds), labels):
            is_empty = False
            yield in_kinds(block, kinds, part.where, int(block.index[0]) + 1)
    if is_empty:
        yield pd.DataFrame(columns=list(kinds))


def _prepared(
    estimator: CIPEstimator,
    rows: StreamedRows,
    judging: TrainingRows | None,
    looked_at: TrainingRows,
    engine: Engine,
    worlds: WorldsOfRows | None,
    n_models: int,
) -> Prepared:
    """Prepare what is penalised: differences between imagined rows, which every row brings, or dependence.

    Given several causal models, the worst counts.
    """
    invariance = judge = None
    scale, _ = compared(estimator, [])
    relative, (outcome, constant_loss) = is_relative(estimator), estimator._outcome(looked_at.target)
    if worlds is not None:
        parts = [StreamedVariance(place * len(worlds), len(worlds), worlds.weights) for place in range(n_models)]
        about = looked_at, outcome, constant_loss
        scales = [counterfactual_scale(one, *about) if relative else scale for one in parts]
        scale, units = compared(estimator, scales)
        invariance = judge = worst(parts, units)
    elif estimator.route_ != NO_ROUTE and estimator._effective_gamma() > 0:
        if not estimator.prepare_once:
            raise InputError("A table that streams is prepared once, got prepare_once=False; leave it out.")
        penalty = estimator._bound_penalty(estimator.statement_encodings_[0])
        operator = penalty.prepare_parts(rows.parts, engine)
        invariance = Dependence(operator)
        if judging is not None:
            judge = Dependence(penalty.prepare(judging.right, judging.given).to(rows.device))

        def on_sample(y_hat: Tensor, rows: Tensor) -> Tensor:
            given = None if looked_at.given is None else looked_at.given[rows]
            return operator(y_hat, looked_at.right[rows], given)  # type: ignore[index]

        if relative:
            scale = outcome_scale(on_sample, outcome, looked_at.right, constant_loss)  # type: ignore[arg-type]
    validation = None if judging is None else Validation(judging.to(rows.device), judge)
    return Prepared(estimator, (Split(rows, validation, invariance),), scale, engine)


def _sum_part(read: PartReading, law: Sequence[str], job: tuple[int, Part]) -> tuple[TableSums, RowsDrawn, int]:
    place, part = job
    sums, drawn, n_rows = read.sums(), RowsDrawn(_LAW_ROWS), 0
    for block, size in read.blocks(part):
        sums.update(block, part.where)
        if law:
            drawn.update(block[list(law)].set_axis(block.index + place * _MOST_IN_A_PART))
        n_rows += size
    return sums, drawn, n_rows


def _first_pass(
    read: PartReading, law: Sequence[str], parts: Sequence[Part], engine: Engine, shown: bool
) -> tuple[TableSums, RowsDrawn, list[int]]:
    """What the columns hold, rows of the columns whose joint law is asked for, and how many rows each part has."""
    total, drawn, found = read.sums(), RowsDrawn(_LAW_ROWS), []
    work, jobs = partial(_sum_part, read, law), list(enumerate(parts))
    for sums, some, n_rows in _bar(engine.each(work, jobs), len(parts), "reading", shown):
        total.merge(sums)
        drawn.merge(some)
        found.append(n_rows)
    return total, drawn, found


def _second_pass(
    encoder: Encoder, jobs: Sequence[EncodingJob], engine: Engine, shown: bool
) -> tuple[list[int], TrainingRows | None, TrainingRows]:
    """Rows of each file; rows that say when to stop; some of the others."""
    sizes, judging, looked_at = [], [], []
    for size, judged, looked in _bar(engine.each(encoder.written, jobs), len(jobs), "encoding", shown):
        sizes.append(size)
        judging += [judged] if judged is not None else []
        looked_at += [looked] if looked is not None else []
    some = joined_rows(looked_at)
    if some is None:
        raise InputError("No row has all values that training needs; fill some, or use fewer columns.")
    return sizes, joined_rows(judging), some


def _encoding(columns: Any, names: Sequence[str], n_rows: int) -> TableEncoding:
    return TableEncoding(
        tuple(columns[name].encoding(with_missing=columns[name].known < n_rows) for name in dict.fromkeys(names))
    )


def _outcome_name(estimator: CIPEstimator, y: Any, names: Sequence[str]) -> str:
    named = y if y is not None else estimator.outcome
    if named is None and estimator.graph is not None and len(estimator.graph.outcomes) == 1:
        named = estimator.graph.outcomes[0]
    if not isinstance(named, str):
        raise InputError(
            f"Of a table that streams y is the name of the outcome's column, got {type(named).__name__}; pass for "
            f"example y='income'."
        )
    if named not in names:
        raise InputError(f"The outcome {named!r} is no column of the table; it has {', '.join(names[:12])}.")
    return named


def _drawn_numbers(
    estimator: CIPEstimator, n: int, left_out: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the rows that say when to stop, of those that are looked at, and of those that are left out."""
    kept = np.empty(0, dtype=np.int64) if left_out is None else np.asarray(left_out, dtype=np.int64)
    count = 0
    if estimator.setting("early_stopping"):
        count = stopping_count(n, estimator.setting("validation_fraction"), _MOST_VALIDATION_ROWS, len(kept))
    drawn = sampled_numbers(n, count + _ROWS_LOOKED_AT + len(kept), estimator.preparation_seed_)
    drawn = drawn[~np.isin(drawn, kept)]
    return np.sort(drawn[:count]), np.sort(drawn[count : count + _ROWS_LOOKED_AT]), np.sort(kept)


def _within(numbers: np.ndarray, start: int, size: int) -> np.ndarray:
    """Those of some sorted numbers that belong to a part, counted from its first row."""
    first, last = np.searchsorted(numbers, [start, start + size])
    return numbers[first:last] - start


def _starts(sizes: Sequence[int]) -> list[int]:
    return [int(end) - size for end, size in zip(np.cumsum(sizes), sizes, strict=True)]


def _bar(results: Iterator[Any], total: int, what: str, shown: bool) -> Iterator[Any]:
    return iter(tqdm(results, total=total, desc=what, unit="part", disable=not shown))
