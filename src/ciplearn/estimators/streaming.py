"""A fit on a table beyond memory: two passes over the source, then training from files of encoded rows.

The first pass finds what the columns hold, as sums; the second encodes the rows, imagines them in other worlds where a
causal model was passed, and keeps them, in single precision, in files that training reads in blocks. Parts of the table
go through each pass alone, in whatever process: what comes out does not depend on the engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from ciplearn._core.arguments import one_of
from ciplearn._core.column_sums import ColumnSum, TableSums
from ciplearn._core.columns import CATEGORY, as_numbers, in_kinds
from ciplearn._core.encoding import CategoryColumn, TableEncoding
from ciplearn._core.errors import InputError, NothingProtectedWarning
from ciplearn._core.rows import RowsDrawn, sampled_numbers
from ciplearn._core.workers import Engine, give_back_what_is_free
from ciplearn.causal.names import node_of
from ciplearn.estimators.criteria import stopping_count
from ciplearn.estimators.imagined import WorldsOfRows, checked_models, imagine
from ciplearn.estimators.preparation import (
    COUNTERFACTUAL,
    NO_ROUTE,
    Prepared,
    Split,
    certified_roles,
    compared,
    is_relative,
    preparation_seed,
    worst,
)
from ciplearn.estimators.tables import MISSING_POLICIES, going_on, naming_inputs, statement_rows
from ciplearn.learning import StreamedRows, TrainingRows, Validation
from ciplearn.learning.invariance import (
    PER_STEP,
    Dependence,
    StreamedVariance,
    counterfactual_scale,
    outcome_scale,
)
from ciplearn.learning.settings import chosen_device
from ciplearn.learning.streamed_rows import RowLayout, StoredPart, store
from ciplearn.sources import Part, Source

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

# Rows that say when to stop, at most: more do not say it better, and they are judged after every epoch.
_MOST_VALIDATION_ROWS = 1 << 12

# Rows that the pieces of numbers' ranges and the unit of gamma are read off, and that tell the protected columns' law.
_ROWS_LOOKED_AT = _LAW_ROWS = 1 << 14
_MOST_IN_A_PART = 1 << 40  # more than a part has: rows are told apart before anyone knows how many there are


@dataclass(frozen=True)
class PartReading:
    """Which columns are read, and what becomes of gaps."""

    columns: tuple[str, ...]  # those of which every row needs a value, unless gaps are filled
    outcome: str
    policy: str
    categories: tuple[str, ...]  # columns that hold labels, whatever they look like
    also: tuple[str, ...]  # columns that only a causal model looks at
    law: tuple[str, ...]  # columns whose joint law is asked for

    def blocks(self, part: Part, labels: Sequence[str] = ()) -> Iterator[tuple[pd.DataFrame, int]]:
        """Blocks of a part without rows that are to be dropped, and how many rows each had."""
        for block in part.chunks((*self.columns, *self.also), (*self.categories, *labels)):
            needed = [self.outcome] if self.policy == "impute" else list(self.columns)
            whole = block[needed].notna().all(axis=1)
            if self.policy == "error" and not whole.all():
                gaps = block[needed].isna().any()
                why = f"{part.where} misses a value of {gaps.idxmax()!r} in row {int(whole.idxmin()) + 1}"
                raise InputError(f'{why}; fill it, or pass missing="impute" or missing="drop".')
            yield block[whole], len(block)

    def sums(self) -> TableSums:
        """What is to be found out, before any row is read."""
        return TableSums((*self.columns, *self.also), self.categories, medians=self.policy == "impute")

    def summed(self, job: tuple[int, Part]) -> tuple[TableSums, RowsDrawn, int]:
        """The first pass over a part: what its columns hold, rows drawn for the joint law, and how many rows it has."""
        number, part = job
        sums, drawn, n_rows = self.sums(), RowsDrawn(_LAW_ROWS), 0
        for block, size in self.blocks(part):
            sums.update(block, part.where)
            if self.law:
                drawn.update(block[list(self.law)].set_axis(block.index + number * _MOST_IN_A_PART))
            n_rows += size
        return sums, drawn, n_rows


@dataclass(frozen=True)
class EncodingJob:
    """A part to encode: where to, and which of its rows are kept from training, or looked at."""

    part: Part
    start: int
    path: Path
    stopping: np.ndarray
    looked_at: np.ndarray
    left_out: np.ndarray


@dataclass(frozen=True)
class Encoder:
    """Blocks of a table as rows to train on."""

    estimator: CIPEstimator
    columns: Mapping[str, ColumnSum]  # what all rows hold
    read: PartReading
    models: Sequence[Any]  # causal models that say what a row would be in other worlds
    worlds: WorldsOfRows | None  # which ones

    def layout(self) -> RowLayout:
        """How a row stands in a file."""
        right, given = self._statement or (TableEncoding(()), TableEncoding(()))
        classes = hasattr(self.estimator, "classes_")
        worlds = 0 if self.worlds is None else len(self.models) * len(self.worlds)
        widths = len(right.columns), len(given.columns), worlds
        return RowLayout(self.estimator.encoding_.width, None if classes else 1, classes, *widths)

    def written(self, job: EncodingJob) -> tuple[int, list[TrainingRows], list[TrainingRows]]:
        """The second pass: write a part's rows; return how many, those that say when to stop, some of the others."""
        stopping, looked_at = list[TrainingRows](), list[TrainingRows]()
        labels = [name for name, column in self.columns.items() if column.kind == CATEGORY]

        def pieces() -> Iterator[TrainingRows]:
            for block, _ in self.read.blocks(job.part, labels):
                if not len(block):
                    continue
                rows, numbers = self._rows(block, job.start), block.index.to_numpy()
                stops = np.isin(numbers, job.stopping)
                trained = ~stops & ~np.isin(numbers, job.left_out)
                for side, chosen in ((stopping, stops), (looked_at, trained & np.isin(numbers, job.looked_at))):
                    if chosen.any():
                        side.append(rows.take(torch.from_numpy(np.flatnonzero(chosen))))
                if trained.any():
                    yield rows if trained.all() else rows.take(torch.from_numpy(np.flatnonzero(trained)))

        return store(job.path, pieces(), self.layout()), stopping, looked_at

    @property
    def _statement(self) -> tuple[TableEncoding, TableEncoding] | None:
        statements = self.estimator.statement_encodings_
        return statements[0] if statements and not self.models else None

    def _rows(self, block: pd.DataFrame, start: int) -> TrainingRows:
        block = in_kinds(block, {name: column.kind for name, column in self.columns.items()}, "the table")
        right, given = statement_rows(self._statement, block) if self._statement else (None, None)
        inputs = torch.from_numpy(self.estimator.encoding_.features(block))
        target = self._target(block[self.read.outcome])
        if self.worlds is None:
            return TrainingRows((inputs,), target, right, given)
        one, name = self.estimator, self.read.outcome
        outcome = None if one.outcome is None else (name, block[name].to_numpy())
        # Draws depend on the number of the first row alone.
        seed = int(np.random.default_rng([one.preparation_seed_, start + int(block.index[0])]).integers(2**31))
        rows = block.drop(columns=name).reset_index(drop=True)
        about = rows, one.roles_.protected, one.encoding_, outcome, seed, self.worlds
        imagined = torch.cat([imagine(model, *about).inputs[0] for model in self.models], dim=1)
        return TrainingRows((inputs,), target, right, given, imagined=imagined)

    def _target(self, column: pd.Series) -> Tensor:
        labels = self.columns[self.read.outcome].encoding()
        classes = getattr(self.estimator, "classes_", None)
        if classes is not None and isinstance(labels, CategoryColumn):
            return torch.from_numpy(labels.encode(column))
        values = as_numbers(column).to_numpy()
        if classes is not None:
            # Classes of numbers that are not whole are text, in the order of text.
            return torch.from_numpy(pd.Index(classes.astype(float)).get_indexer(values))
        return self.estimator._encode_target(values[:, None])


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
        named = estimator.checkpoint
        if named is None and engine.workers > 1:
            # A worker that is lost must not cost the whole training.
            estimator.checkpoint = folder / "training.checkpoint"
        try:
            with naming_inputs(estimator.encoding_, 0):
                trained = prepared.train(estimator)
                return trained if share is None else prepared.line(trained, [share])[0]
        finally:
            estimator.checkpoint = named


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
    estimator.__dict__.pop("array_names_", None)
    estimator.n_features_in_, estimator.feature_names_in_ = len(others), np.asarray(others, dtype=object)
    estimator.preparation_seed_ = preparation_seed(estimator.random_state)
    estimator.roles_ = roles = certified_roles(estimator, pd.DataFrame(columns=others), None)
    models = checked_models(estimator.counterfactuals) if estimator.route_ == COUNTERFACTUAL else ()
    if len(roles.statements) > 1 and not models:
        raise InputError("A table that streams keeps one independence, got several; pass one, or pass a frame.")
    used = (*roles.used, outcome)
    # A causal model may look at the nodes of its graph; one without a graph may look at all columns.
    graphs = [getattr(model, "graph", None) for model in models]
    rest = (name for name in others if name not in used)
    also = tuple(name for name in rest if any(g is None or node_of(name, g.nodes) in g.observed for g in graphs))
    labelled = tuple(name for name in categories if name in (*used, *also))
    law = roles.protected if models else ()
    read = PartReading(used, outcome, estimator.missing, labelled, also, law)

    def shown(results: Iterator[Any], what: str) -> Iterator[Any]:
        return iter(tqdm(results, total=len(parts), desc=what, unit="part", disable=not estimator.verbose))

    parts = source.parts()
    total, drawn, sizes = read.sums(), RowsDrawn(_LAW_ROWS), list[int]()
    for sums, some, n_rows in shown(engine.each(read.summed, list(enumerate(parts))), "reading"):
        total.merge(sums)
        drawn.merge(some)
        sizes.append(n_rows)
    columns = total.finalise()
    values = [columns[name] for name in roles.protected]
    if values and all(len(one.labels) <= 1 if one.kind == CATEGORY else one.low == one.high for one in values):
        sentence = f"{roles.nothing_protected(total.rows)}, or pass rows that differ."
        warnings.warn(sentence, NothingProtectedWarning, stacklevel=4)

    def encoding(names: Sequence[str]) -> TableEncoding:
        held = [columns[name] for name in dict.fromkeys(names)]
        return TableEncoding(tuple(column.encoding(with_missing=column.known < total.rows) for column in held))

    estimator._learn_summed_target(columns[outcome])
    estimator.encoding_ = encoding(roles.inputs)
    estimator.statement_encodings_ = tuple((encoding(one.right), encoding(one.given)) for one in roles.statements)
    worlds = None
    if models:
        kinds = {name: columns[name].kind for name in law}
        worlds = WorldsOfRows.of(in_kinds(drawn.finalise(), kinds, source.shown), PER_STEP)
    encoder = Encoder(estimator, columns, read, models, worlds)
    drawn_rows = _drawn_numbers(estimator, sum(sizes), left_out)
    jobs = []
    for number, (part, size, start) in enumerate(zip(parts, sizes, _starts(sizes), strict=True)):
        # Rows that were drawn are sorted, and counted from the part's first row.
        within = [each[slice(*np.searchsorted(each, [start, start + size]))] - start for each in drawn_rows]
        jobs.append(EncodingJob(part, start, folder / f"{number:06d}.rows", *within))
    written, stopping, looked_at = list[int](), list[TrainingRows](), list[TrainingRows]()
    for size, stops, looked in shown(engine.each(encoder.written, jobs), "encoding"):
        written.append(size)
        stopping += stops
        looked_at += looked
    if not looked_at:
        raise InputError("No row has all values that training needs; fill some, or use fewer columns.")
    give_back_what_is_free()
    layout, sample = encoder.layout(), TrainingRows.joined(looked_at)
    stored = zip(jobs, written, _starts(written), strict=True)
    files = tuple(StoredPart(str(job.path), size, start, layout) for job, size, start in stored if size)
    rows = StreamedRows(files, layout, chosen_device(estimator.setting("device")), sample)
    if len(rows) < 2:
        raise InputError(f"{source.shown} has {len(rows)} rows to train on, and training needs 2; pass more rows.")
    stops_on = TrainingRows.joined(stopping) if stopping else None
    return _prepared(estimator, rows, stops_on, sample, engine, worlds, len(models))


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
    stopping: TrainingRows | None,
    sample: TrainingRows,
    engine: Engine,
    worlds: WorldsOfRows | None,
    n_models: int,
) -> Prepared:
    """Prepare what is penalised: differences between imagined rows, which every row brings, or dependence."""
    invariance = when_stopping = None
    scale, _ = compared(estimator, [])
    relative, (outcome, constant_loss) = is_relative(estimator), estimator._outcome(sample.target)
    if worlds is not None:
        parts = [StreamedVariance(number * len(worlds), len(worlds), worlds.weights) for number in range(n_models)]
        scales = [counterfactual_scale(part, sample, outcome, constant_loss) if relative else scale for part in parts]
        scale, units = compared(estimator, scales)
        invariance = when_stopping = worst(parts, units)
    elif estimator.route_ != NO_ROUTE and estimator._effective_gamma() > 0:
        if not estimator.prepare_once:
            raise InputError("A table that streams is prepared once, got prepare_once=False; leave it out.")
        penalty = estimator._bound_penalty(estimator.statement_encodings_[0])
        operator = penalty.prepare_parts(rows.parts, engine)
        invariance = Dependence(operator)
        if stopping is not None:
            when_stopping = Dependence(penalty.prepare(stopping.right, stopping.given).to(rows.device))

        def on_sample(y_hat: Tensor, rows: Tensor) -> Tensor:
            given = None if sample.given is None else sample.given[rows]
            return operator(y_hat, sample.right[rows], given)  # type: ignore[index]

        if relative:
            scale = outcome_scale(on_sample, outcome, sample.right, constant_loss)  # type: ignore[arg-type]
    validation = None if stopping is None else Validation(stopping.to(rows.device), when_stopping)
    return Prepared(estimator, (Split(rows, validation, invariance),), scale, engine)


def _outcome_name(estimator: CIPEstimator, y: Any, names: Sequence[str]) -> str:
    named = y if y is not None else estimator.outcome
    if named is None and estimator.graph is not None and len(estimator.graph.outcomes) == 1:
        named = estimator.graph.outcomes[0]
    if not isinstance(named, str):
        why = f"y names the outcome's column where a table streams, got {type(named).__name__}"
        raise InputError(f"{why}; pass for example y='income'.")
    if named not in names:
        raise InputError(f"The outcome {named!r} is no column of the table; it has {', '.join(names[:12])}.")
    return named


def _drawn_numbers(estimator: CIPEstimator, n: int, left_out: np.ndarray | None) -> list[np.ndarray]:
    """Numbers of the rows that say when to stop, of those that are looked at, and of those that are left out."""
    hidden = np.empty(0, dtype=np.int64) if left_out is None else np.asarray(left_out, dtype=np.int64)
    count = 0
    if estimator.setting("early_stopping"):
        count = stopping_count(n, estimator.setting("validation_fraction"), _MOST_VALIDATION_ROWS, len(hidden))
    drawn = sampled_numbers(n, count + _ROWS_LOOKED_AT + len(hidden), estimator.preparation_seed_)
    drawn = drawn[~np.isin(drawn, hidden)]
    return [np.sort(each) for each in (drawn[:count], drawn[count : count + _ROWS_LOOKED_AT], hidden)]


def _starts(sizes: Sequence[int]) -> list[int]:
    return [int(end) - size for end, size in zip(np.cumsum(sizes), sizes, strict=True)]
