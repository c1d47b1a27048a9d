"""A fit on a table beyond memory: two passes over the source, then training from files of encoded rows.

The first pass finds what the columns hold, as sums; the second encodes the rows and keeps them, in single precision, in
files that training reads in blocks. Parts of the table go through each pass alone, in whatever process: what comes out
does not depend on the engine.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from ciplearn._core.column_sums import ColumnSum, TableSums
from ciplearn._core.columns import CATEGORY, CategoryColumn, TableEncoding, as_numbers
from ciplearn._core.engine import Engine
from ciplearn._core.errors import InputError
from ciplearn._core.random import as_seed
from ciplearn._core.sampled_numbers import sampled_numbers
from ciplearn.estimators.gamma_scale import fixed_scale, is_relative, outcome_scale
from ciplearn.estimators.networks import naming_inputs
from ciplearn.estimators.preparation import COUNTERFACTUAL, NO_ROUTE, Prepared, certified_roles, statement_rows
from ciplearn.estimators.tables import MISSING_POLICIES
from ciplearn.learning import StreamedRows, TrainingRows, Validation
from ciplearn.learning.invariance import Dependence, StreamedDependence
from ciplearn.learning.settings import chosen_device
from ciplearn.learning.streamed_rows import RowLayout, StoredPart, store
from ciplearn.sources import Part, Source

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

# Rows that say when to stop: more do not say it better, and they are judged after every epoch.
_MOST_VALIDATION_ROWS = 1 << 14

# Rows that the unit of gamma is read off.
_SCALE_ROWS = 4096

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
) -> CIPEstimator:
    """Train an estimator on a table that streams.

    Parameters
    ----------
    estimator, y, engine
        As `fit` takes them.
    source : Source
    sample_weight, tensors, imagined
        Refused: they belong to rows in memory.
    left_out : array of int, optional
        Numbers of rows that training must not see.
    """
    for name, given in (("sample_weight", sample_weight), ("imagined", imagined)):
        if given is not None:
            raise InputError(f"A table that streams is trained on without {name}; leave it out, or pass a frame.")
    if len(tensors):
        raise InputError("A table that streams is trained on without tensors; pass a frame.")
    with tempfile.TemporaryDirectory(dir=engine.scratch, prefix="ciplearn-") as folder:
        prepared = prepare_stream(estimator, source, y, engine, Path(folder), left_out)
        own = estimator.checkpoint
        if own is None and engine.workers > 1:
            # A worker that is lost must not cost the whole training.
            estimator.checkpoint = Path(folder) / _CHECKPOINT
        try:
            with naming_inputs(estimator.encoding_, 0):
                return prepared.train(estimator)
        finally:
            estimator.checkpoint = own


def prepare_stream(
    estimator: CIPEstimator, source: Source, y: Any, engine: Engine, folder: Path, left_out: np.ndarray | None = None
) -> Prepared:
    """Find out what the columns hold, encode the rows into files in a folder, and prepare the penalty."""
    names = source.names
    outcome = _outcome_name(estimator, y, names)
    others = [name for name in names if name != outcome]
    if estimator.missing not in MISSING_POLICIES:
        raise InputError(
            f"missing must be one of {', '.join(MISSING_POLICIES)}, got {estimator.missing!r}; pass one of these."
        )
    if hasattr(estimator, "array_names_"):
        del estimator.array_names_
    estimator.n_features_in_, estimator.feature_names_in_ = len(others), np.asarray(others, dtype=object)
    estimator.preparation_seed_ = 0 if estimator.random_state is None else as_seed(estimator.random_state)
    estimator.roles_ = roles = certified_roles(estimator, pd.DataFrame(columns=others), None)
    if estimator.route_ == COUNTERFACTUAL:
        raise InputError("Counterfactuals are imagined for rows in memory, got a table that streams; pass a frame.")
    if len(roles.statements) > 1:
        raise InputError("Of a table that streams one independence is kept, got several; pass one, or pass a frame.")
    parts, policy = source.parts(), estimator.missing
    read = _Reading((*roles.used, outcome), outcome, policy)
    total, found = _first_pass(read, parts, engine, bool(estimator.verbose))
    columns = total.finalise()
    if roles.protected and all(_is_constant(columns[name]) for name in roles.protected):
        warnings.warn(
            f"The protected {', '.join(roles.protected)} has the same value in all {total.rows} rows, so there is "
            f"nothing to be invariant in; name another column, or pass rows that differ.",
            UserWarning,
            stacklevel=4,
        )
    estimator._learn_summed_target(columns[outcome])
    estimator.encoding_ = _encoding(columns, roles.inputs, total.rows)
    estimator.statement_encodings_ = tuple(
        (_encoding(columns, one.right, total.rows), _encoding(columns, one.given, total.rows))
        for one in roles.statements
    )
    encoder = _Encoder(estimator, columns[outcome], read)
    numbers = _drawn_numbers(estimator, int(sum(found)), left_out)
    jobs = [
        _Job(part, start, folder / f"{place:06d}.rows", *(_within(each, start, size) for each in numbers))
        for place, (part, size, start) in enumerate(zip(parts, found, _starts(found), strict=True))
    ]
    stored, judging, looked_at = _second_pass(encoder, jobs, engine, bool(estimator.verbose))
    layout = encoder.layout()
    rows = StreamedRows(
        tuple(
            StoredPart(str(job.path), size, start, layout)
            for job, size, start in zip(jobs, stored, _starts(stored), strict=True)
            if size
        ),
        layout,
        chosen_device(estimator.device),
    )
    if len(rows) < 2:
        raise InputError(f"{source.shown} has {len(rows)} rows to train on, and training needs 2; pass more rows.")
    return _penalised(estimator, rows, judging, looked_at, engine)


def _penalised(
    estimator: CIPEstimator, rows: StreamedRows, judging: TrainingRows | None, looked_at: TrainingRows, engine: Engine
) -> Prepared:
    scale = 1.0 if is_relative(estimator) else fixed_scale(estimator.gamma_scale)
    validation = None if judging is None else Validation(judging.to(rows.device))
    if estimator.route_ == NO_ROUTE or estimator._effective_gamma() == 0:
        return Prepared(estimator, rows, validation, None, scale, engine)
    if not estimator.prepare_once:
        raise InputError("A table that streams is prepared once, got prepare_once=False; leave it out.")
    penalty = estimator._bound_penalty(estimator.statement_encodings_[0])
    operator = penalty.prepare_parts(rows.parts, engine)
    if judging is not None:
        judge = Dependence(penalty.prepare(judging.right, judging.given).to(rows.device))
        validation = Validation(judging.to(rows.device), judge)
    if is_relative(estimator):
        outcome, constant_loss = estimator._outcome(looked_at.target)

        def on_sample(y_hat: Tensor, rows: Tensor) -> Tensor:
            given = None if looked_at.given is None else looked_at.given[rows]
            return operator(y_hat, looked_at.right[rows], given)  # type: ignore[index]

        scale = outcome_scale(on_sample, outcome, looked_at.right, constant_loss)  # type: ignore[arg-type]
    return Prepared(estimator, rows, validation, StreamedDependence(operator), scale, engine)


@dataclass(frozen=True)
class _Reading:
    """Which columns are read, and what becomes of gaps."""

    columns: tuple[str, ...]
    outcome: str
    policy: str

    def blocks(self, part: Part, labels: Sequence[str] = ()) -> Iterator[tuple[pd.DataFrame, int]]:
        """Blocks of a part without rows that are to be dropped, and how many rows each had."""
        for block in part.chunks(self.columns, labels):
            needed = [self.outcome] if self.policy == "impute" else list(self.columns)
            whole = block[needed].notna().all(axis=1)
            if self.policy == "error" and not whole.all():
                gaps = block[needed].isna().any()
                raise InputError(
                    f"{part.where} misses a value of {gaps.idxmax()!r} in row {int(whole.idxmin()) + 1}; fill it, or "
                    f'pass missing="impute" or missing="drop".'
                )
            yield block[whole], len(block)


def _sum_part(read: _Reading, part: Part) -> tuple[TableSums, int]:
    sums, n_rows = TableSums(read.columns, medians=read.policy == "impute"), 0
    for block, size in read.blocks(part):
        sums.update(block, part.where)
        n_rows += size
    return sums, n_rows


def _first_pass(read: _Reading, parts: Sequence[Part], engine: Engine, shown: bool) -> tuple[TableSums, list[int]]:
    """What the columns hold, and how many rows each part has."""
    total = TableSums(read.columns, medians=read.policy == "impute")
    found = []
    for sums, n_rows in _bar(engine.each(partial(_sum_part, read), parts), len(parts), "reading", shown):
        total.merge(sums)
        found.append(n_rows)
    return total, found


@dataclass(frozen=True)
class _Encoder:
    """Blocks of a table as rows to train on."""

    estimator: CIPEstimator
    outcome: ColumnSum
    read: _Reading

    def layout(self) -> RowLayout:
        """How a row stands in a file."""
        statement = self.estimator.statement_encodings_
        right, given = statement[0] if statement else (TableEncoding(()), TableEncoding(()))
        classes = hasattr(self.estimator, "classes_")
        return RowLayout(
            self.estimator.encoding_.width,
            None if classes else 1,
            classes,
            len(right.columns),
            len(given.columns),
        )

    def rows(self, block: pd.DataFrame) -> TrainingRows:
        """Encode a block."""
        block = self._in_kinds(block)
        statement = self.estimator.statement_encodings_
        right, given = statement_rows(statement[0], block) if statement else (None, None)
        inputs = torch.from_numpy(self.estimator.encoding_.features(block))
        return TrainingRows((inputs,), self._target(block[self.outcome.name]), right, given)

    def _target(self, column: pd.Series) -> Tensor:
        labels = self.outcome.encoding()
        if hasattr(self.estimator, "classes_") and isinstance(labels, CategoryColumn):
            return torch.from_numpy(labels.encode(column))
        values = as_numbers(column).to_numpy()
        return self.estimator._encode_target(values if hasattr(self.estimator, "classes_") else values[:, None])

    def _in_kinds(self, block: pd.DataFrame) -> pd.DataFrame:
        kinds = {column.name: column.kind for column in self._columns()} | {self.outcome.name: self.outcome.kind}
        return in_kinds_of(block, kinds)

    def _columns(self) -> Iterator[Any]:
        yield from self.estimator.encoding_.columns
        for right, given in self.estimator.statement_encodings_:
            yield from (*right.columns, *given.columns)


@dataclass(frozen=True)
class _Job:
    """A part to encode: where to, and which of its rows are kept from training, or looked at."""

    part: Part
    start: int
    path: Path
    judging: np.ndarray
    looked_at: np.ndarray
    left_out: np.ndarray


def _encode_part(encoder: _Encoder, job: _Job) -> tuple[int, TrainingRows | None, TrainingRows | None]:
    judging, looked_at = [], []
    labels = [column.name for column in encoder._columns() if column.kind == CATEGORY]
    if encoder.outcome.kind == CATEGORY:
        labels.append(encoder.outcome.name)

    def pieces() -> Iterator[TrainingRows]:
        for block, _ in encoder.read.blocks(job.part, labels):
            if not len(block):
                continue
            rows, places = encoder.rows(block), block.index.to_numpy()
            judged = np.isin(places, job.judging)
            kept = ~judged & ~np.isin(places, job.left_out)
            if judged.any():
                judging.append(rows.take(torch.from_numpy(np.flatnonzero(judged))))
            looked = kept & np.isin(places, job.looked_at)
            if looked.any():
                looked_at.append(rows.take(torch.from_numpy(np.flatnonzero(looked))))
            yield rows if kept.all() else rows.take(torch.from_numpy(np.flatnonzero(kept)))

    n_rows = store(job.path, pieces(), encoder.layout())
    return n_rows, joined_rows(judging), joined_rows(looked_at)


def _second_pass(
    encoder: _Encoder, jobs: Sequence[_Job], engine: Engine, shown: bool
) -> tuple[list[int], TrainingRows | None, TrainingRows]:
    """Rows of each file; rows that say when to stop; some of the others."""
    sizes, judging, looked_at = [], [], []
    for size, judged, looked in _bar(engine.each(partial(_encode_part, encoder), jobs), len(jobs), "encoding", shown):
        sizes.append(size)
        judging += [judged] if judged is not None else []
        looked_at += [looked] if looked is not None else []
    some = joined_rows(looked_at)
    if some is None:
        raise InputError("No row has all values that training needs; fill some, or use fewer columns.")
    return sizes, joined_rows(judging), some


def joined_rows(pieces: Sequence[TrainingRows]) -> TrainingRows | None:
    """One below the other."""
    if not pieces:
        return None

    def side(name: str) -> Tensor | None:
        parts = [getattr(piece, name) for piece in pieces]
        return None if parts[0] is None else torch.cat(parts)

    return TrainingRows(
        (torch.cat([piece.inputs[0] for piece in pieces]),),
        torch.cat([piece.target for piece in pieces]),
        side("right"),
        side("given"),
    )


def in_kinds_of(block: pd.DataFrame, kinds: dict[str, str]) -> pd.DataFrame:
    """Text that reads as numbers in all blocks, as numbers."""
    columns = {
        name: block[name]
        if kind == CATEGORY or pd.api.types.is_numeric_dtype(block[name].dtype)
        else pd.to_numeric(block[name])
        for name, kind in kinds.items()
    }
    return pd.DataFrame(columns, index=block.index)


def _encoding(columns: Any, names: Sequence[str], n_rows: int) -> TableEncoding:
    return TableEncoding(
        tuple(columns[name].encoding(with_missing=columns[name].known < n_rows) for name in dict.fromkeys(names))
    )


def _is_constant(column: ColumnSum) -> bool:
    return len(column.labels) <= 1 if column.kind == CATEGORY else column.low == column.high


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
    count = 0
    if estimator.early_stopping:
        count = min(max(2, round(estimator.validation_fraction * n)), _MOST_VALIDATION_ROWS)
    kept = np.empty(0, dtype=np.int64) if left_out is None else np.asarray(left_out, dtype=np.int64)
    drawn = sampled_numbers(n, count + _SCALE_ROWS + len(kept), estimator.preparation_seed_)
    drawn = drawn[~np.isin(drawn, kept)]
    return np.sort(drawn[:count]), np.sort(drawn[count : count + _SCALE_ROWS]), np.sort(kept)


def _within(numbers: np.ndarray, start: int, size: int) -> np.ndarray:
    """Those of some sorted numbers that belong to a part, counted from its first row."""
    first, last = np.searchsorted(numbers, [start, start + size])
    return numbers[first:last] - start


def _starts(sizes: Sequence[int]) -> list[int]:
    return [int(end) - size for end, size in zip(np.cumsum(sizes), sizes, strict=True)]


def _bar(results: Iterator[Any], total: int, what: str, shown: bool) -> Iterator[Any]:
    return iter(tqdm(results, total=total, desc=what, unit="part", disable=not shown))
