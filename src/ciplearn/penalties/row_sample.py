"""A sample of rows that is the same however the rows are cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.sampled_numbers import keys

# Right-hand side (n, d) and conditioning variables (n, k); without any of the latter, k = 0.
Pair = tuple[Tensor, Tensor]


class RowSample:
    """The rows with the smallest keys, where the key of a row scrambles its number among all rows.

    Keys do not depend on blocks, so the samples of parts merge into the sample of the whole.

    ``size``: the largest number of rows to keep. ``seed``: of the keys. ``start``: the number, among all rows, of the
    first row that this state will see.
    """

    def __init__(self, size: int, seed: int = 0, start: int = 0) -> None:
        self.size, self.seed, self.next = size, seed, start
        self._numbers = np.empty(0, dtype=np.uint64)
        self._pieces: list[Pair] = []

    def update(self, right: Tensor, given: Tensor) -> None:
        """Look at the next block of rows."""
        stop = self.next + right.shape[0]
        numbers = np.arange(self.next, stop, dtype=np.uint64)
        self.next = stop
        if len(self._numbers) == self.size:
            below = np.flatnonzero(keys(numbers, self.seed) < keys(self._numbers, self.seed).max())
            if not len(below):
                return
            chosen = torch.from_numpy(below).to(right.device)
            numbers, right, given = numbers[below], right[chosen], given[chosen]
        self._add(numbers, [(right, given)])

    def merge(self, other: RowSample) -> None:
        """Take in the sample of other rows."""
        self.next = max(self.next, other.next)
        self._add(other._numbers, other._pieces)

    def finalise(self) -> SampledRows:
        """Return the sample."""
        order = np.argsort(self._numbers)
        right, given = joined(self._pieces)
        place = torch.from_numpy(order).to(right.device)
        by_key = np.argsort(keys(self._numbers[order], self.seed))
        return SampledRows(right[place].double(), given[place].double(), torch.from_numpy(by_key).to(right.device))

    def _add(self, numbers: np.ndarray, pieces: list[Pair]) -> None:
        self._numbers = np.concatenate([self._numbers, numbers])
        self._pieces = [*self._pieces, *pieces]
        if len(self._numbers) > self.size:
            kept = np.argpartition(keys(self._numbers, self.seed), self.size)[: self.size]
            right, given = joined(self._pieces)
            place = torch.from_numpy(kept).to(right.device)
            self._numbers, self._pieces = self._numbers[kept], [(right[place], given[place])]


@dataclass(frozen=True)
class SampledRows:
    """Rows in their order, and the order in which they were drawn."""

    # right, given: (m, d) and (m, k)
    right: Tensor
    given: Tensor
    drawn: Tensor  # (m,): positions of the rows as drawn: any stretch of it is a random sample too

    def first(self, size: int) -> Pair:
        """The rows that were drawn first, in their order."""
        return self._at(self.drawn[:size])

    def last(self, size: int) -> Pair:
        """The rows that were drawn last, in their order: others than the first, where the sample has enough."""
        return self._at(self.drawn[-size:])

    def _at(self, places: Tensor) -> Pair:
        places = places.sort().values
        return self.right[places], self.given[places]


def joined(pieces: list[Pair]) -> Pair:
    """One pair of several, one below the other."""
    return torch.cat([right for right, _ in pieces]), torch.cat([given for _, given in pieces])
