"""Rows in blocks that stay in cache; rows drawn at random, the same however a table is cut; and which rows are copies.

A row's digest is the same for the same values, however a file writes them. Rows of a few categories agree by chance,
and are no copies. How often chance repeats a row is told by the rows that agree with it in all columns but one: as
often as these, times the frequency of its value in that column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import as_numbers, distinct_labels, holds_numbers, written_number
from ciplearn._core.errors import InputError

# What a small network's layers return for so many rows stays in cache.
ROWS_IN_CACHE = 4096

# Numbers whose keys are looked at together.
_BLOCK = 1 << 18

# Of fewer different rows all may agree by chance.
_LEAST_DIFFERENT = 20

# Rows that chance repeats less often are told by their values.
RARE = 0.3

Array = np.ndarray[Any, Any]


def row_blocks(n: int, size: int = ROWS_IN_CACHE) -> list[slice]:
    """Cut n rows into blocks of ``size``, the last of which also takes up to half a block more, or half a block less.

    Matrix products round by a row's place in its block, and in another way where rows are few. Blocks of a power of two
    of rows, and none that is small, answer as all rows at once do.
    """
    starts = [size * place for place in range(max(1, round(n / size)))]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], n], strict=True)]


def keys(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Scramble whole numbers of 64 bits, no two into the same one: the finaliser of SplitMix64 [steele2014]."""
    scrambled = numbers + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    scrambled = (scrambled ^ (scrambled >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    scrambled = (scrambled ^ (scrambled >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return scrambled ^ (scrambled >> np.uint64(31))


def sampled_numbers(n: int, size: int, seed: int = 0) -> np.ndarray:
    """Return some of the numbers 0, ..., n − 1, in the order in which they are drawn."""
    best = np.empty(0, dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        numbers = np.concatenate([best, np.arange(start, min(start + _BLOCK, n), dtype=np.uint64)])
        best = numbers[np.argpartition(keys(numbers, seed), size)[:size]] if len(numbers) > size else numbers
    return best[np.argsort(keys(best, seed))].astype(np.int64)


class RowsDrawn:
    """The rows whose numbers have the smallest keys.

    ``size``: the most rows to keep. ``n``: rows that went by.
    """

    def __init__(self, size: int) -> None:
        self.size, self.n = size, 0
        self._pieces: list[pd.DataFrame] = []
        self._held = 0

    def update(self, rows: pd.DataFrame) -> None:
        """Look at rows, indexed by their numbers."""
        self.n += len(rows)
        self._add(rows)

    def merge(self, other: RowsDrawn) -> None:
        """Take in what was drawn from other rows."""
        self.n += other.n
        for piece in other._pieces:
            self._add(piece)

    def finalise(self) -> pd.DataFrame:
        """Return what was drawn, in the order of the numbers."""
        self._trim()
        return pd.concat(self._pieces).sort_index() if self._pieces else pd.DataFrame()

    def _add(self, rows: pd.DataFrame) -> None:
        if not len(rows):
            return
        self._pieces.append(rows)
        self._held += len(rows)
        # Half as much again: trimming copies, and should be rare.
        if self._held > 1.5 * self.size:
            self._trim()

    def _trim(self) -> None:
        if self._held <= self.size:
            return
        numbers = np.concatenate([piece.index.to_numpy() for piece in self._pieces]).astype(np.uint64)
        drawn = keys(numbers, seed=0)  # the same rows whoever draws them
        limit = np.partition(drawn, self.size)[self.size]
        ends = np.cumsum([len(piece) for piece in self._pieces])[:-1]
        kept = np.split(drawn < limit, ends)
        self._pieces = [piece[which] for piece, which in zip(self._pieces, kept, strict=True) if which.any()]
        self._held = sum(map(len, self._pieces))


def column_digests(table: pd.DataFrame, names: Sequence[str]) -> Array:  # (n, columns)
    """Return a number per cell, the same for the same value of a column; rows are told by their sum."""
    columns = [keys(_cells(table[name]), place + 1) for place, name in enumerate(names)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), dtype=np.uint64)


def row_digests(table: pd.DataFrame, names: Sequence[str]) -> Array:  # (n,)
    """Return a number per row, the same for the same values in the named columns."""
    return column_digests(table, names).sum(axis=1)


def chance_repeats(cells: Array) -> Array:  # (n, columns) -> (n,)
    """Return how often chance would bring each row again, among as many rows as there are different ones.

    ``cells``: of `column_digests`.
    """
    totals, first, inverse = np.unique(cells.sum(axis=1), return_index=True, return_inverse=True)
    different = cells[first]
    expected = np.full(len(different), np.inf if len(different) < _LEAST_DIFFERENT else 0.0)
    for column in different.T:
        counts, held = _counts(column)
        # A value that stands once comes again as often as values that stand twice say (Good and Turing).
        of_one = min(1.0, 2 * (held == 2).sum() / max(1, (held == 1).sum()))
        others = _counts(totals - column)[0] - 1
        expected = np.maximum(expected, others * np.maximum(counts - 1, of_one) / len(different))
    return expected[inverse]


def beyond_chance(found: int, expected: float) -> bool:
    """Whether rows agree more often than chance explains, which is known up to a factor of two."""
    return found > 2 * expected + 3 * np.sqrt(expected)


def copy_groups(table: pd.DataFrame) -> Array:  # (n,)
    """Return a number per row: that of the first row that it is a copy of, its own where it is none."""
    cells = column_digests(table, list(table.columns))
    alone = np.arange(len(cells))
    _, first, inverse = np.unique(cells.sum(axis=1), return_index=True, return_inverse=True)
    if len(first) == len(cells):
        return alone
    expected = chance_repeats(cells)
    rare = expected < RARE
    groups = np.where(rare, first[inverse], alone)
    # Of two rows that agree by chance one is counted.
    return groups if beyond_chance((groups != alone).sum(), expected[first][rare[first]].sum() / 2) else alone


def _counts(values: Array) -> tuple[Array, Array]:
    """Return how often each value stands, value by value of the array, and of the different ones."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse], counts


def _cells(column: pd.Series) -> Array:  # (n,)
    # Dates, lists, numbers beyond 2**53: refused where the column is used, and text here.
    with suppress(InputError):
        if holds_numbers(column):
            # In single precision, in which networks compute and files may keep them; 0 and -0 are the same.
            with np.errstate(over="ignore"):
                numbers = as_numbers(column).to_numpy().astype(np.float32) + np.float32(0)
            numbers[np.isnan(numbers)] = np.nan
            return numbers.view(np.uint32).astype(np.uint64)
    labels, places = distinct_labels(column)
    hashed = [hashlib.blake2b(_plain(label).encode("utf-8", "replace"), digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64)[places]


def _plain(label: str) -> str:
    """Return a label so that codes read the same however a program writes them: ``01`` and ``1.0`` as ``1``."""
    if not written_number(label):
        return label
    whole, _, fraction = label.lstrip("+-").partition(".")
    bare = ".".join(part for part in (whole.lstrip("0") or "0", fraction.rstrip("0")) if part)
    return f"-{bare}" if label.startswith("-") and bare != "0" else bare
