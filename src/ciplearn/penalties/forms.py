"""How an operator Q is stored: as a matrix, or as short vectors, one set a row.

Both forms answer the same questions: a block of Q for a batch of rows, its diagonal, and its row sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor


class Form(Protocol):
    """A symmetric positive semi-definite matrix over n rows."""

    @property
    def rows(self) -> int:
        """The number of rows, n."""

    @property
    def device(self) -> torch.device:
        """Where the numbers live."""

    def block(self, rows: Tensor | None) -> Tensor:  # (b,) -> (b, b)
        """Q restricted to ``rows``; all of Q for None."""

    def row_sums(self) -> Tensor:  # (n,)
        """Σ_j Q_ij."""

    def centred(self) -> Self:
        """C Q C with C = I − 11ᵀ/n."""

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Self:
        """The same form elsewhere or in another precision."""


@dataclass(frozen=True)
class Dense:
    """Q itself."""

    matrix: Tensor  # (n, n)

    @property
    def rows(self) -> int:
        """The number of rows, n."""
        return self.matrix.shape[0]

    @property
    def device(self) -> torch.device:
        """Where the matrix lives."""
        return self.matrix.device

    @property
    def width(self) -> int:
        """How many numbers a row carries."""
        return self.rows

    def block(self, rows: Tensor | None) -> Tensor:
        """Q[rows, rows]."""
        if rows is None:
            return self.matrix
        if self.matrix.is_cuda:
            return self.matrix[rows[:, None], rows[None, :]]
        # numpy's take gathers a batch several times faster than torch's indexing does on a CPU.
        index = rows.numpy()
        flat = np.add.outer(index * self.rows, index)
        return torch.from_numpy(self.matrix.numpy().take(flat))

    def row_sums(self) -> Tensor:
        """Σ_j Q_ij."""
        return self.matrix.sum(dim=1)

    def centred(self) -> Self:
        """C Q C."""
        means = self.matrix.mean(dim=1)
        return type(self)(self.matrix - means[:, None] - means[None, :] + means.mean())

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Self:
        """The same matrix elsewhere or in another precision."""
        return type(self)(self.matrix.to(device=device or self.matrix.device, dtype=dtype or self.matrix.dtype))


@dataclass(frozen=True)
class Factored:
    """Q = (L Lᵀ) ∘ (R Rᵀ) − G Fᵀ − F Gᵀ, where row i carries the i-th rows of L, R, G and F.

    Attributes
    ----------
    left : Tensor, shape (n, p), optional
        L; without it the first factor is all ones.
    right : Tensor, shape (n, q)
        R.
    correction : pair of Tensor, shape (n, s), optional
        G and F.
    """

    left: Tensor | None
    right: Tensor
    correction: tuple[Tensor, Tensor] | None = None

    @property
    def rows(self) -> int:
        """The number of rows, n."""
        return self.right.shape[0]

    @property
    def device(self) -> torch.device:
        """Where the factors live."""
        return self.right.device

    @property
    def width(self) -> int:
        """How many numbers a row carries."""
        parts = [self.left, self.right, *(self.correction or ())]
        return sum(part.shape[1] for part in parts if part is not None)

    def block(self, rows: Tensor | None) -> Tensor:
        """Rebuild Q[rows, rows] from the rows' vectors."""
        right = _take(self.right, rows)
        block = right @ right.T
        if self.left is not None:
            left = _take(self.left, rows)
            block.mul_(left @ left.T)
        if self.correction is not None:
            cross = _take(self.correction[0], rows) @ _take(self.correction[1], rows).T
            block.sub_(cross).sub_(cross.T)
        return block

    def row_sums(self) -> Tensor:
        """Σ_j Q_ij without forming Q."""
        if self.left is None:
            sums = self.right @ self.right.sum(dim=0)
        else:
            sums = (self.left * (self.right @ (self.right.T @ self.left))).sum(dim=1)
        if self.correction is not None:
            first, second = self.correction
            sums = sums - first @ second.sum(dim=0) - second @ first.sum(dim=0)
        return sums

    def centred(self) -> Self:
        """C Q C, by one more column in the correction."""
        means = self.row_sums() / self.rows
        first, second = (means - means.mean() / 2)[:, None], torch.ones_like(means)[:, None]
        if self.correction is not None:
            first = torch.cat([self.correction[0], first], dim=1)
            second = torch.cat([self.correction[1], second], dim=1)
        return type(self)(self.left, self.right, (first, second))

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Self:
        """The same factors elsewhere or in another precision."""

        def move(part: Tensor) -> Tensor:
            return part.to(device=device or part.device, dtype=dtype or part.dtype)

        correction = None if self.correction is None else (move(self.correction[0]), move(self.correction[1]))
        return type(self)(None if self.left is None else move(self.left), move(self.right), correction)


def _take(part: Tensor, rows: Tensor | None) -> Tensor:
    return part if rows is None else part.index_select(0, rows)
