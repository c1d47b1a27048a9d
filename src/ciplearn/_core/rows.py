"""Rows in blocks that stay in cache; and rows drawn at random, the same however a table is cut: the smallest keys."""

from __future__ import annotations

import numpy as np
import pandas as pd

# What a small network's layers return for so many rows stays in cache.
ROWS_IN_CACHE = 4096

# Numbers whose keys are looked at together.
_BLOCK = 1 << 18


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
