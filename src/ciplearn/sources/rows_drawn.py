"""Some rows of a table, drawn at random while it goes by: the same however it is cut."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ciplearn._core.sampled_numbers import keys

# Of the keys: the same rows whoever draws them.
_SEED = 0


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
        own = keys(numbers, _SEED)
        limit = np.partition(own, self.size)[self.size]
        ends = np.cumsum([len(piece) for piece in self._pieces])[:-1]
        kept = np.split(own < limit, ends)
        self._pieces = [piece[which] for piece, which in zip(self._pieces, kept, strict=True) if which.any()]
        self._held = sum(map(len, self._pieces))
