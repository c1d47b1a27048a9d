"""How the columns of a table become numbers, as learnt on training rows: in memory, or in one pass over blocks.

A label that training never saw is looked up once more as a number, so that codes survive a program that writes ``1``
as ``1.0`` or ``01``. Sums over blocks follow the same rules for a table that is never in memory as a whole; text reads
as numbers where every block of it does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar, Self

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
    read_numbers,
    written_number,
)
from ciplearn._core.errors import InputError

# A column with more levels is no category that a model could learn from.
MOST_LEVELS = 1000

# In ranges of the training rows: a number is that far outside where its unit is another, and hardly otherwise.
_FAR = 100

# Networks compute in single precision.
_LARGEST = float(np.finfo(np.float32).max)


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
            raise InputError(f"Column {column.name!r} has no values at all; drop it from the roles.")
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
        if not column.isna().all() and not holds_numbers(column):
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
            raise InputError(f"Column {column.name!r} has no values at all; drop it from the roles.")
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
            raise InputError(
                f"Column {self.name!r} held categories such as {self.levels[0]!r} in training, got {column.dtype}; "
                f"convert it to these categories."
            )
        labels, places = distinct_labels(column)
        return np.array(self._codes(labels), dtype=np.int64)[places]

    def decode(self, codes: Array) -> Array:  # (n,)
        """Return the labels behind codes, None for missing and for a label that training never saw."""
        labels = np.array([*(None if level == MISSING else level for level in self.levels), None], dtype=object)
        return labels[np.asarray(codes, dtype=np.int64)]

    def unseen(self, column: pd.Series) -> dict[str, int]:
        """Count the rows of each label that training never saw."""
        labels, places = distinct_labels(column)
        rows = Counter[str]()
        for label, code, count in zip(
            labels, self._codes(labels), np.bincount(places, minlength=len(labels)), strict=True
        ):
            if code == len(self.levels) and count:
                rows["missing" if label == MISSING else label] += int(count)
        return dict(rows)

    def write_features(self, column: pd.Series, inputs: Array) -> None:  # (n, levels)
        """Put a one at each row's level where there are zeros."""
        codes = self.encode(column)
        rows = np.flatnonzero(codes < len(self.levels))
        inputs[rows, codes[rows]] = 1

    def may_be_odd(self, inputs: Array) -> bool:  # (n, levels)
        """Whether a row that was written has no level."""
        return not inputs.any(axis=1).all()

    def _codes(self, labels: Iterable[str]) -> list[int]:
        exact = {level: code for code, level in enumerate(self.levels)}
        numbers: dict[float, list[int]] = {}
        for level, code in exact.items():
            if written_number(level):
                numbers.setdefault(float(level), []).append(code)

        def code_of(label: str) -> int:
            if label in exact:
                return exact[label]
            alike = numbers.get(float(label), []) if written_number(label) else []
            return alike[0] if len(alike) == 1 else len(self.levels)

        return [code_of(label) for label in labels]


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
        for column, place in zip(self.columns, self.slices, strict=True):
            column.write_features(table[column.name], inputs[:, place])
        return inputs

    def numbers(self, table: pd.DataFrame) -> Array:  # (n, columns), single precision
        """Encode rows for kernels, one number per column: scaled values, or codes of categories."""
        parts = [column.encode(table[column.name]) for column in self.columns]
        return np.stack(parts, axis=1).astype(np.float32)

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
        return type(self)(tuple(column for column, place in parts if column.may_be_odd(features[:, place])))

    def only(self, names: Sequence[str]) -> Self:
        """Return the encoding of some of the columns, in the order of the names."""
        named = {column.name: column for column in self.columns}
        return type(self)(tuple(named[name] for name in names))

    @property
    def slices(self) -> list[slice]:
        """Where each column stands among the network inputs."""
        ends = accumulate(column.width for column in self.columns)
        return [slice(end - column.width, end) for column, end in zip(self.columns, ends, strict=True)]


# Of a block, for its quantiles: the median of all rows is that of the blocks' distributions, mixed.
_LEVELS = np.linspace(0, 1, 257)

# Different numbers that are kept, to tell groups from amounts.
_FEW = 11


class TableSums:
    """What each of some columns holds.

    ``categories``: columns that hold labels, whatever they look like. ``medians``: whether medians are wanted, for
    which each block is sorted.
    """

    def __init__(self, names: Iterable[str], categories: Iterable[str] = (), *, medians: bool = False) -> None:
        self.categories, self.rows = frozenset(categories), 0
        self.columns = {name: ColumnSum(name, name in self.categories, medians) for name in names}

    def update(self, block: pd.DataFrame, where: str = "") -> None:
        """Look at a block of rows; ``where`` says which file they are from."""
        self.rows += len(block)
        for name, column in self.columns.items():
            column.update(block[name], where)

    def merge(self, other: TableSums) -> None:
        """Add what was found in other rows."""
        self.rows += other.rows
        for name, column in self.columns.items():
            column.merge(other.columns[name])

    def finalise(self) -> Mapping[str, ColumnSum]:
        """Return what was found, by column."""
        if not self.rows:
            raise InputError("The table has no rows; pass a table with at least one.")
        return self.columns


@dataclass
class ColumnSum:
    """One column."""

    name: str
    is_category: bool = False  # whether somebody has said so
    medians: bool = False
    known: int = 0  # rows that have a value
    numbers: int = 0  # rows that read as a number
    # mean, scatter, low, high: of these: mean, Σ (x − mean)², range
    mean: float = 0.0
    scatter: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    values: set[float] = field(default_factory=set)  # different numbers, up to a few
    labels: dict[str, int] = field(default_factory=dict)  # rows of each label, up to one more than a category may have
    stray: tuple[str, str] | None = None  # A cell that does not read as a number, and where it is
    quantiles: list[tuple[int, Array]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Number or category."""
        return CATEGORY if self.is_category or self.stray is not None else NUMBER

    @property
    def has_many_values(self) -> bool:
        """Whether it holds more different numbers than are kept."""
        return len(self.values) == _FEW

    def update(self, column: pd.Series, where: str = "") -> None:
        """Look at a block."""
        present = column[column.notna()]
        self.known += len(present)
        if not len(present):
            return
        if not self.is_category and holds_numbers(present):
            self._add_numbers(as_numbers(present).to_numpy())
            return
        if not self.is_category:
            numbers = read_numbers(present)
            text = numbers.isna()
            if text.any() and self.stray is None:
                self.stray = str(present[text].iloc[0]), where
            self._add_numbers(numbers[~text].to_numpy(dtype=float))
        self._add_labels(present)

    def merge(self, other: ColumnSum) -> None:
        """Add what was found in other rows."""
        self.known += other.known
        self._add_moments(other.numbers, other.mean, other.scatter)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.values = _few(self.values | other.values)
        for label, count in other.labels.items():
            if label in self.labels or len(self.labels) <= MOST_LEVELS:
                self.labels[label] = self.labels.get(label, 0) + count
        self.stray = self.stray or other.stray
        self.quantiles += other.quantiles

    def encoding(self, *, with_missing: bool = False) -> Column:
        """Return how the column becomes numbers, as `column_of` would on all rows at once, but for the `median`.

        ``with_missing``: whether rows without a value are kept, so that missing is a level of its own where it occurs.
        """
        if not self.known:
            raise InputError(f"Column {self.name!r} has no values at all; drop it from the roles.")
        if self.kind == CATEGORY:
            return CategoryColumn.with_levels(self.name, self.labels, missing=with_missing)
        return NumberColumn.spanning(self.name, self.low, self.high, self.median())

    @property
    def spread(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.scatter / self.numbers) if self.numbers else 0.0

    def median(self) -> float:
        """The value that half of the rows are below, exact for few rows, else to within a quarter of a percent of them.

        Where medians are not wanted nothing reads it, and it is the middle of the range.
        """
        if not self.quantiles:
            return (self.low + self.high) / 2
        points = np.concatenate([values for _, values in self.quantiles])
        weights = np.concatenate([np.full(len(values), count / len(values)) for count, values in self.quantiles])
        order = np.argsort(points)
        share = np.cumsum(weights[order])
        # Of an even number of rows the middle of two, as numpy has it.
        below, above = (min(np.searchsorted(share, share[-1] / 2, side), len(share) - 1) for side in ("left", "right"))
        return float(points[order][[below, above]].mean())

    def _add_numbers(self, numbers: Array) -> None:
        if not len(numbers):
            return
        # The scatter of numbers beyond 1e150 is infinite, which only an outcome is refused for.
        with np.errstate(over="ignore", invalid="ignore"):
            self._add_moments(len(numbers), numbers.mean(), numbers.var() * len(numbers))
        self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
        # The first thousand are enough for most columns of amounts.
        for some in (numbers[:1024], numbers):
            if len(self.values) < _FEW:
                self.values = _few(self.values | set(np.unique(some).tolist()))
        if self.medians:
            few = len(numbers) <= len(_LEVELS)
            self.quantiles.append((len(numbers), numbers if few else np.quantile(numbers, _LEVELS)))

    def _add_moments(self, n: int, mean: float, scatter: float) -> None:
        """Pairwise, which does not cancel far from the origin [chan1983]."""
        if n:
            total, apart = self.numbers + n, mean - self.mean
            self.scatter += float(scatter + apart * apart * self.numbers * n / total)
            self.mean += float(apart * n / total)
            self.numbers = total

    def _add_labels(self, present: pd.Series) -> None:
        if len(self.labels) > MOST_LEVELS:
            return
        labels, places = distinct_labels(present)
        for label, count in zip(labels, np.bincount(places, minlength=len(labels)).tolist(), strict=True):
            self.labels[label] = self.labels.get(label, 0) + count
        if len(self.labels) > MOST_LEVELS:
            self.labels = dict(list(self.labels.items())[: MOST_LEVELS + 1])


def _few(values: set[float]) -> set[float]:
    return set(sorted(values)[:_FEW])
