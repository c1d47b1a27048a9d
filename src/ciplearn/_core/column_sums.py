"""What the columns of a table hold, from one pass over its blocks: kinds, ranges, levels, as sums that add up.

The same rules as in `encoding.py`, for a table that is never in memory as a whole. Text reads as numbers where every
block of it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ciplearn._core.columns import CATEGORY, NUMBER, Array, as_numbers, distinct_labels, holds_numbers, read_numbers
from ciplearn._core.encoding import MOST_LEVELS, CategoryColumn, Column, NumberColumn
from ciplearn._core.errors import InputError

# Quantiles of a block that are kept: the median of all rows is that of the blocks' distributions, mixed.
_LEVELS = np.linspace(0, 1, 257)

_FEW = 11  # different numbers that are kept, to tell groups from amounts


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
        labels, places = distinct_labels(present)
        self._add_labels(zip(labels, np.bincount(places, minlength=len(labels)).tolist(), strict=True))

    def merge(self, other: ColumnSum) -> None:
        """Add what was found in other rows."""
        self.known += other.known
        self._add_moments(other.numbers, other.mean, other.scatter)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.values = _few(self.values | other.values)
        self._add_labels(other.labels.items())
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
        # The middle of two for an even number of rows, as numpy has it.
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

    def _add_labels(self, counts: Iterable[tuple[str, int]]) -> None:
        for label, count in counts:
            if label in self.labels or len(self.labels) <= MOST_LEVELS:
                self.labels[label] = self.labels.get(label, 0) + count


def _few(values: set[float]) -> set[float]:
    return set(sorted(values)[:_FEW])
