"""The rows that an operator is prepared on: checked once, read whole, chunk by chunk, or as a sample."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import keys
from ciplearn._core.tensors import as_rows, constant, same_device, same_rows
from ciplearn._core.workers import Engine, OneProcess

# Rows mapped to features at a time: large enough for fast matrix products, small enough to stay in cache; and on a
# device, where small products are all launching.
CHUNK_ROWS, DEVICE_ROWS = 1024, 1 << 17

# Everything that is chosen on a sample is chosen on rows among these.
SAMPLE_ROWS = 4096

Result = TypeVar("Result", covariant=True)

# Right-hand side (n, d) and conditioning variables (n, k); without any of the latter, k = 0.
Pair = tuple[Tensor, Tensor]


class Sums(ABC, Generic[Result]):
    """Tensors that are summed over rows: blocks can come from chunks, files or workers, and parts add up."""

    n = 0
    totals: tuple[Tensor, ...] = ()

    @abstractmethod
    def of_block(self, right: Tensor, given: Tensor) -> tuple[Tensor, ...]:
        """What a block of rows adds."""

    @abstractmethod
    def finalise(self) -> Result:
        """Return what follows from the sums."""

    def update(self, right: Tensor, given: Tensor) -> None:
        """Add a block of rows."""
        self._add(len(right), self.of_block(right, given))

    def merge(self, other: Self) -> None:
        """Add what another state has summed over other rows."""
        if other.n:
            self._add(other.n, other.totals)

    def _add(self, n: int, parts: tuple[Tensor, ...]) -> None:
        self.n += n
        self.totals = tuple(map(torch.add, self.totals, parts)) if self.totals else parts


class RowPart(Protocol):
    """Rows that one worker goes through."""

    @property
    def start(self) -> int:
        """The number of its first row among all rows."""

    def pairs(self) -> Iterator[Pair]:
        """Go through the rows, block by block: checked pairs (right, given)."""


class PenaltyRows:
    """Right-hand side and conditioning variables of n rows, in double precision; ``sample`` has some, of all parts."""

    def __init__(self, parts: Sequence[RowPart], engine: Engine | None = None) -> None:
        self.parts, self.engine = parts, engine or OneProcess()
        drawn = RowSample(SAMPLE_ROWS)
        first: Pair | None = None
        for seen, sample in self.engine.each(_looked_at, parts):
            first = first or seen
            drawn.merge(sample)
        self.n = drawn.next
        if first is None or self.n < 2:
            raise InputError(f"A penalty needs at least 2 rows, got {self.n}; pass a larger batch.")
        self.sample = drawn.finalise()
        self.device = first[0].device
        self.has_given = first[1].shape[1] > 0
        # The operator is stored in the precision of the data it came from, though computed in double.
        precision = next((part.dtype for part in first if part.is_floating_point()), torch.float64)
        # Half precision cannot hold it: its entries are as small as 1 / n².
        self.dtype = torch.promote_types(precision, torch.float32)

    @classmethod
    def from_arrays(cls, right: Any, given: Any, codes: tuple[bool, bool]) -> Self:
        """Rows of whole arrays, cut into chunks; where codes are taken, labels get theirs here."""
        right, given = (with_codes(side) if coded else side for side, coded in zip((right, given), codes, strict=True))
        return cls([_Arrays(checked(right, given, codes), CHUNK_ROWS)])

    @classmethod
    def of_pair(cls, pair: Pair) -> Self:
        """Rows that have been checked before, as one block."""
        return cls([_Arrays(pair, max(1, len(pair[0])))])

    @classmethod
    def from_chunks(cls, pairs: Iterable[Any], codes: tuple[bool, bool]) -> Self:
        """Rows that come in pieces, each a pair (right, given); the pieces are read several times."""
        if isinstance(pairs, Iterator):
            why = f"chunks are read several times, got a one-way {type(pairs).__name__}"
            raise InputTypeError(f"{why}; pass a list, or an object whose __iter__ opens the files anew.")
        return cls([_Chunks(pairs, codes)])

    def chunks(self) -> Iterator[Pair]:
        """Iterate over the rows, a chunk at a time."""
        for part in self.parts:
            for right, given in part.pairs():
                yield right.double(), given.double()

    def whole(self) -> Pair:
        """All rows at once."""
        return _joined(list(self.chunks()))

    def summed(self, sums: Sums[Result]) -> Result:
        """What follows from sums over all rows; each part begins with a copy of ``sums`` that have seen nothing."""
        total = copy.deepcopy(sums)
        for part in self.engine.each(partial(_summed, sums), self.parts):
            total.merge(part)
        return total.finalise()


def _looked_at(part: RowPart) -> tuple[Pair | None, RowSample]:
    """An empty pair that shows what the rows are like, and a sample of them."""
    drawn, first = RowSample(SAMPLE_ROWS, start=part.start), None
    for right, given in part.pairs():
        first = first or (right[:0], given[:0])
        drawn.update(right, given)
    return first, drawn


def _summed(empty: Sums[Result], part: RowPart) -> Sums[Result]:
    sums = copy.deepcopy(empty)
    for right, given in part.pairs():
        size = DEVICE_ROWS if right.is_cuda else CHUNK_ROWS
        for rows, also in zip(right.split(size), given.split(size), strict=True):
            sums.update(rows.double(), also.double())
    return sums


@dataclass(frozen=True)
class _Arrays:
    whole: Pair
    rows: int
    start: int = 0

    def pairs(self) -> Iterator[Pair]:
        right, given = self.whole
        yield from zip(right.split(self.rows), given.split(self.rows), strict=True)


@dataclass(frozen=True)
class _Chunks:
    content: Iterable[Any]
    codes: tuple[bool, bool]
    start: int = 0

    def pairs(self) -> Iterator[Pair]:
        for pair in self.content:
            right, given = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (pair, None)
            yield checked(right, given, self.codes)


class RowSample:
    """The ``size`` rows with the smallest keys, where the key of a row scrambles its number among all rows.

    Keys do not depend on blocks, so the samples of parts merge into the sample of the whole. ``start`` is the number,
    among all rows, of the first row that this state will see.
    """

    def __init__(self, size: int, seed: int = 0, start: int = 0) -> None:
        self.size, self.seed, self.next = size, seed, start
        self._numbers = np.empty(0, dtype=np.uint64)
        self._pieces: list[Pair] = []

    def update(self, right: Tensor, given: Tensor) -> None:
        """Look at the next block of rows."""
        numbers = np.arange(self.next, self.next + right.shape[0], dtype=np.uint64)
        self.next += right.shape[0]
        if len(self._numbers) == self.size:
            below = np.flatnonzero(keys(numbers, self.seed) < keys(self._numbers, self.seed).max())
            numbers, (right, given) = numbers[below], _picked((right, given), below)
        if len(numbers):
            self._add(numbers, [(right, given)])

    def merge(self, other: RowSample) -> None:
        """Take in the sample of other rows."""
        self.next = max(self.next, other.next)
        self._add(other._numbers, other._pieces)

    def finalise(self) -> SampledRows:
        """Return the sample."""
        order = np.argsort(self._numbers)
        right, given = _picked(_joined(self._pieces), order)
        by_key = np.argsort(keys(self._numbers[order], self.seed))
        return SampledRows(right.double(), given.double(), torch.from_numpy(by_key).to(right.device))

    def _add(self, numbers: np.ndarray, pieces: list[Pair]) -> None:
        self._numbers = np.concatenate([self._numbers, numbers])
        self._pieces = [*self._pieces, *pieces]
        if len(self._numbers) > self.size:
            kept = np.argpartition(keys(self._numbers, self.seed), self.size)[: self.size]
            self._numbers, self._pieces = self._numbers[kept], [_picked(_joined(self._pieces), kept)]


@dataclass(frozen=True)
class SampledRows:
    """Rows in their order, and the order in which they were drawn."""

    right: Tensor  # (m, d)
    given: Tensor  # (m, k)
    drawn: Tensor  # (m,): numbers of the rows as drawn: any stretch of it is a random sample too

    def first(self, size: int) -> Pair:
        """The rows that were drawn first, in their order."""
        rows = self.drawn[:size].sort().values
        return self.right[rows], self.given[rows]

    def last(self, size: int) -> Pair:
        """The rows that were drawn last, in their order: others than the first, where the sample has enough."""
        rows = self.drawn[-size:].sort().values
        return self.right[rows], self.given[rows]


def _picked(pair: Pair, rows: np.ndarray) -> Pair:
    chosen = torch.from_numpy(rows).to(pair[0].device)
    return pair[0][chosen], pair[1][chosen]


def _joined(pieces: list[Pair]) -> Pair:
    return torch.cat([right for right, _ in pieces]), torch.cat([given for _, given in pieces])


def with_codes(value: Any) -> Any:
    """Return columns of labels as codes of categories, missing ones as NaN, beside those of numbers; else the value."""
    if value is None or isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        return value
    if array.dtype.kind not in "OUS" or array.ndim not in (1, 2):
        return value
    return np.column_stack([_codes(column) for _, column in pd.DataFrame(array, dtype=object).items()])


def _codes(column: pd.Series) -> np.ndarray:  # (n,)
    if holds_numbers(column):
        return column.where(column.notna(), np.nan).to_numpy(dtype=float)
    codes = pd.factorize(column)[0].astype(float)
    codes[column.isna()] = np.nan
    return codes


def checked(right: Any, given: Any, codes: tuple[bool, bool]) -> Pair:
    """Return both sides as tensors of as many rows, or refuse them; ``codes``: whether each may be whole numbers."""
    right = constant(as_rows(right, "right", integers=codes[0]), "right")
    if given is None:
        return right, right.new_zeros(right.shape[0], 0)
    given = constant(as_rows(given, "given", integers=codes[1]), "given")
    same_rows(right, "right", given, "given")
    same_device(right.device, "right", given.device, "given")
    return right, given
