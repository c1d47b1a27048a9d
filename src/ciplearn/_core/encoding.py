"""How the columns of a table become numbers, as learnt on training rows.

A label that training never saw is looked up once more as a number, so that codes survive a program that writes ``1``
as ``1.0`` or ``01``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from ciplearn._core.columns import (
    CATEGORY,
    MISSING,
    NUMBER,
    Array,
    as_numbers,
    distinct_labels,
    holds_numbers,
    written_number,
)
from ciplearn._core.errors import InputError

MOST_LEVELS = 1000  # a column with more levels is no category that a model could learn from

# In ranges of the training rows: a number is that far outside where its unit is another, and hardly otherwise.
_FAR = 100

_LARGEST = float(np.finfo(np.float32).max)  # networks compute in single precision


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, encoded so that the training rows span [0, 1]; missing values become the median."""

    kind: ClassVar[str] = NUMBER
    width: ClassVar[int] = 1  # how many network inputs the column becomes

    name: str
    low: float
    high: float
    median: float

    @classmethod
    def of(cls, column: pd.Series) -> Self:
        """Read range and median off training rows."""
        values = as_numbers(column).to_numpy()
        values = values[~np.isnan(values)]
        if not len(values):
            raise _empty(column.name)
        return cls.spanning(str(column.name), float(values.min()), float(values.max()), float(np.median(values)))

    @classmethod
    def spanning(cls, name: str, low: float, high: float, median: float) -> Self:
        """Take range and median as they were found, or refuse them."""
        if math.isinf(low) or math.isinf(high):
            raise InputError(f"Column {name!r} holds infinity; replace or drop those rows.")
        if math.isinf(high - low):
            raise InputError(f"Column {name!r} spans {low:g} to {high:g}, too far to be scaled; rescale it.")
        return cls(name, low, high, median)

    def encode(self, column: pd.Series) -> Array:  # (n,)
        """Return the scaled values."""
        if column.dtype != np.float64 and not column.isna().all() and not holds_numbers(column):
            raise InputError(
                f"Column {self.name!r} held numbers in training, got {column.dtype} with values like "
                f"{column.dropna().iloc[0]!r}; convert it to numbers."
            )
        values = as_numbers(column).to_numpy()
        if np.isinf(values).any():
            raise InputError(f"Column {self.name!r} holds infinity; replace or drop those rows.")
        values = np.where(np.isnan(values), self.median, values)
        with np.errstate(over="ignore"):
            scaled = (values - self.low) / (self.high - self.low or 1.0)
        beyond = np.abs(scaled) > _LARGEST
        if beyond.any():
            raise InputError(
                f"Column {self.name!r} holds {values[beyond][0]:g}, too far from the training rows' {self.low:g} to "
                f"{self.high:g} for single precision; check its units."
            )
        return scaled

    def far(self, column: pd.Series) -> tuple[int, float] | None:
        """Count the rows so far outside the training rows that their unit may be another; with one of their values."""
        if column.isna().all() or not holds_numbers(column):
            return None
        values, span = as_numbers(column), self.high - self.low or max(1.0, abs(self.low))
        outside = values[(values < self.low - _FAR * span) | (values > self.high + _FAR * span)]
        return (len(outside), float(outside.iloc[0])) if len(outside) else None

    def decode(self, scaled: Array) -> Array:  # (n,)
        """Return the values behind scaled ones."""
        return self.low + scaled * (self.high - self.low or 1.0)

    def write_features(self, column: pd.Series, inputs: Array) -> None:  # (n, 1)
        """Put the scaled values, for a network, where there are zeros."""
        inputs[:, 0] = self.encode(column)

    def may_be_odd(self, inputs: Array) -> bool:  # (n, 1)
        """Whether a row that was written may be far outside the training rows."""
        return bool((np.abs(inputs) > _FAR / 2).any())


@dataclass(frozen=True)
class CategoryColumn:
    """A column of labels, encoded as codes; a label not seen in training has a code of its own, and no input."""

    kind: ClassVar[str] = CATEGORY

    name: str
    levels: tuple[str, ...]

    @classmethod
    def of(cls, column: pd.Series) -> Self:
        """Read the levels off training rows; missing is a level where it occurs."""
        if column.isna().all():
            raise _empty(column.name)
        return cls.with_levels(str(column.name), distinct_labels(column)[0])

    @classmethod
    def with_levels(cls, name: str, labels: Iterable[str], *, missing: bool = False) -> Self:
        """Take the labels that occur, or refuse them where they are too many."""
        levels = tuple(sorted({*labels, *([MISSING] if missing else [])}))
        if len(levels) > MOST_LEVELS:
            raise InputError(
                f"Column {name!r} has at least {len(levels)} different values, more than {MOST_LEVELS}: it "
                f"looks like free text or an identifier; leave it out, or group its values."
            )
        return cls(name, levels)

    @property
    def width(self) -> int:
        """How many network inputs the column becomes."""
        return len(self.levels)

    def encode(self, column: pd.Series) -> Array:  # (n,)
        """Return the codes of the levels; ``len(levels)`` for a label that is none of them."""
        if not column.isna().all() and holds_numbers(column) and not any(map(written_number, self.levels)):
            why = f"Column {self.name!r} held categories such as {self.levels[0]!r} in training, got {column.dtype}"
            raise InputError(f"{why}; convert it to these categories.")
        labels, places = distinct_labels(column)
        return np.array(self._codes(labels), dtype=np.int64)[places]

    def decode(self, codes: Array) -> Array:  # (n,)
        """Return the labels behind codes, None for missing and for a label that training never saw."""
        labels = np.array([*(None if level == MISSING else level for level in self.levels), None], dtype=object)
        return labels[np.asarray(codes, dtype=np.int64)]

    def unseen(self, column: pd.Series) -> dict[str, int]:
        """Count the rows of each label that training never saw."""
        labels, places = distinct_labels(column)
        counts, rows = np.bincount(places, minlength=len(labels)).tolist(), Counter[str]()
        for label, code, count in zip(labels, self._codes(labels), counts, strict=True):
            if code == len(self.levels) and count:
                rows["missing" if label == MISSING else label] += count
        return dict(rows)

    def write_features(self, column: pd.Series, inputs: Array) -> None:  # (n, levels)
        """Put a one at each row's level where there are zeros."""
        codes = self.encode(column)
        rows = np.flatnonzero(codes < len(self.levels))
        inputs[rows, codes[rows]] = 1

    def may_be_odd(self, inputs: Array) -> bool:  # (n, levels)
        """Whether a row that was written has no level."""
        return not inputs.any(axis=1).all()

    def _codes(self, labels: Sequence[str]) -> list[int]:
        unseen, exact = len(self.levels), {level: code for code, level in enumerate(self.levels)}
        numbers: dict[float, int] = {}
        for level, code in exact.items():
            if written_number(level):
                # Two levels of one number: no other label tells which of them it is.
                numbers[float(level)] = unseen if float(level) in numbers else code
        alike = {label: numbers.get(float(label), unseen) for label in labels if written_number(label)}
        return [exact.get(label, alike.get(label, unseen)) for label in labels]


def _empty(name: Any) -> InputError:
    return InputError(f"Column {name!r} has no values at all; drop it from the roles.")


Column = NumberColumn | CategoryColumn


def column_of(column: pd.Series) -> Column:
    """Learn what a column holds and how to encode it from training rows."""
    return NumberColumn.of(column) if holds_numbers(column) else CategoryColumn.of(column)


@dataclass(frozen=True)
class TableEncoding:
    """How some columns of a table become numbers, as learnt on training rows."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: pd.DataFrame, names: Iterable[str]) -> Self:
        """Learn the encoding of the named columns."""
        return cls(tuple(column_of(table[name]) for name in dict.fromkeys(names)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        """How many network inputs the columns become."""
        return sum(column.width for column in self.columns)

    @property
    def categories(self) -> tuple[bool, ...]:
        """Whether each column holds categories."""
        return tuple(column.kind == CATEGORY for column in self.columns)

    def features(self, table: pd.DataFrame) -> Array:  # (n, width), single precision
        """Encode rows for a network: a number in [0, 1], or one indicator per level."""
        # Few of many inputs differ from zero: they are written in place, in the networks' precision.
        inputs = np.zeros((len(table), self.width), dtype=np.float32)
        for column, columns in zip(self.columns, self.slices, strict=True):
            column.write_features(table[column.name], inputs[:, columns])
        return inputs

    def numbers(self, table: pd.DataFrame) -> Array:  # (n, columns), single precision
        """Encode rows for kernels, one number per column: scaled values, or codes of categories."""
        return np.stack([column.encode(table[column.name]) for column in self.columns], axis=1).astype(np.float32)

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where the named columns stand among the network inputs."""
        where = dict(zip(self.names, self.slices, strict=True))
        return [place for name in names for place in range(where[name].start, where[name].stop)]

    def unseen(self, table: pd.DataFrame) -> dict[str, dict[str, int]]:
        """Count, per column, the rows of each label that training never saw."""
        categories = (column for column in self.columns if isinstance(column, CategoryColumn))
        return {column.name: counts for column in categories if (counts := column.unseen(table[column.name]))}

    def far(self, table: pd.DataFrame) -> dict[str, tuple[int, float]]:
        """Count, per column, the rows far outside the training rows, with one of their values."""
        numbers = (column for column in self.columns if isinstance(column, NumberColumn))
        return {column.name: rows for column in numbers if (rows := column.far(table[column.name])) is not None}

    def odd(self, features: Array) -> Self:  # (n, width)
        """Return the encoding of the columns in which something may be unseen or far: most rows need no closer look."""
        parts = zip(self.columns, self.slices, strict=True)
        return type(self)(tuple(column for column, inputs in parts if column.may_be_odd(features[:, inputs])))

    def only(self, names: Sequence[str]) -> Self:
        """Return the encoding of some of the columns, in the order of the names."""
        named = {column.name: column for column in self.columns}
        return type(self)(tuple(named[name] for name in names))

    @property
    def slices(self) -> list[slice]:
        """Where each column stands among the network inputs."""
        ends = accumulate(column.width for column in self.columns)
        return [slice(end - column.width, end) for column, end in zip(self.columns, ends, strict=True)]
