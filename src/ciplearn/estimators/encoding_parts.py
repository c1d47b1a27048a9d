"""From blocks of a table to files of rows that training reads: what a worker does with its part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.column_sums import ColumnSum, TableSums
from ciplearn._core.columns import CATEGORY, CategoryColumn, TableEncoding, as_numbers
from ciplearn._core.errors import InputError
from ciplearn.estimators.penalty_terms import WorldsOfRows, imagine
from ciplearn.estimators.tables import statement_rows
from ciplearn.learning import TrainingRows
from ciplearn.learning.streamed_rows import RowLayout, store
from ciplearn.sources import Part
from ciplearn.sources.table_file import in_kinds

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator


@dataclass(frozen=True)
class PartReading:
    """Which columns are read, and what becomes of gaps."""

    columns: tuple[str, ...]  # those of which every row needs a value, unless gaps are filled
    outcome: str
    policy: str
    categories: tuple[str, ...] = ()  # columns that hold labels, whatever they look like
    also: tuple[str, ...] = ()  # columns that only a causal model looks at

    def sums(self) -> TableSums:
        """What is to be found out, before any row is read."""
        return TableSums((*self.columns, *self.also), self.categories, medians=self.policy == "impute")

    def blocks(self, part: Part, labels: Sequence[str] = ()) -> Iterator[tuple[pd.DataFrame, int]]:
        """Blocks of a part without rows that are to be dropped, and how many rows each had."""
        for block in part.chunks((*self.columns, *self.also), (*self.categories, *labels)):
            needed = [self.outcome] if self.policy == "impute" else list(self.columns)
            whole = block[needed].notna().all(axis=1)
            if self.policy == "error" and not whole.all():
                gaps = block[needed].isna().any()
                raise InputError(
                    f"{part.where} misses a value of {gaps.idxmax()!r} in row {int(whole.idxmin()) + 1}; fill it, or "
                    f'pass missing="impute" or missing="drop".'
                )
            yield block[whole], len(block)


@dataclass(frozen=True)
class EncodingJob:
    """A part to encode: where to, and which of its rows are kept from training, or looked at."""

    part: Part
    start: int
    path: Path
    judging: np.ndarray
    looked_at: np.ndarray
    left_out: np.ndarray


@dataclass(frozen=True)
class Encoder:
    """Blocks of a table as rows to train on."""

    estimator: CIPEstimator
    columns: Mapping[str, ColumnSum]  # what was found in all rows
    read: PartReading
    models: Sequence[Any] = ()  # causal models that say what a row would be in other worlds
    worlds: WorldsOfRows | None = None  # which ones

    def layout(self) -> RowLayout:
        """How a row stands in a file."""
        right, given = self._statement or (TableEncoding(()), TableEncoding(()))
        classes = hasattr(self.estimator, "classes_")
        return RowLayout(
            self.estimator.encoding_.width,
            None if classes else 1,
            classes,
            len(right.columns),
            len(given.columns),
            0 if self.worlds is None else len(self.models) * len(self.worlds),
        )

    def rows(self, block: pd.DataFrame, start: int = 0) -> TrainingRows:
        """Encode a block of a part that begins at a row."""
        block = in_kinds(block, {name: column.kind for name, column in self.columns.items()}, "the table")
        right, given = statement_rows(self._statement, block) if self._statement else (None, None)
        inputs = torch.from_numpy(self.estimator.encoding_.features(block))
        target = self._target(block[self.read.outcome])
        imagined = None if self.worlds is None else self._imagined(block, self.worlds, start + int(block.index[0]))
        return TrainingRows((inputs,), target, right, given, imagined=imagined)

    def written(self, job: EncodingJob) -> tuple[int, TrainingRows | None, TrainingRows | None]:
        """Write the rows of a part; return how many, those that say when to stop, and those that are looked at."""
        judging: list[TrainingRows] = []
        looked_at: list[TrainingRows] = []
        labels = [name for name, column in self.columns.items() if column.kind == CATEGORY]

        def pieces() -> Iterator[TrainingRows]:
            for block, _ in self.read.blocks(job.part, labels):
                if not len(block):
                    continue
                rows, places = self.rows(block, job.start), block.index.to_numpy()
                judged = np.isin(places, job.judging)
                kept = ~judged & ~np.isin(places, job.left_out)
                looked = kept & np.isin(places, job.looked_at)
                for side, chosen in ((judging, judged), (looked_at, looked)):
                    if chosen.any():
                        side.append(rows.take(torch.from_numpy(np.flatnonzero(chosen))))
                if kept.any():
                    yield rows if kept.all() else rows.take(torch.from_numpy(np.flatnonzero(kept)))

        n_rows = store(job.path, pieces(), self.layout())
        return n_rows, joined_rows(judging), joined_rows(looked_at)

    @property
    def _statement(self) -> tuple[TableEncoding, TableEncoding] | None:
        """What a penalty on dependence needs of a row."""
        known = self.estimator.statement_encodings_
        return known[0] if known and not self.models else None

    def _imagined(self, block: pd.DataFrame, worlds: WorldsOfRows, number: int) -> Tensor:  # (n, worlds, width)
        """The rows in other worlds, one causal model after the other; draws depend on the number of the first row."""
        one, name = self.estimator, self.read.outcome
        outcome = None if one.outcome is None else (name, block[name].to_numpy())
        seed = int(np.random.default_rng([one.preparation_seed_, number]).integers(2**31))
        rows = block.drop(columns=name).reset_index(drop=True)
        about = rows, one.roles_.protected, one.encoding_, outcome, seed, worlds
        return torch.cat([imagine(model, *about).inputs[0] for model in self.models], dim=1)

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
        imagined=side("imagined"),
    )
