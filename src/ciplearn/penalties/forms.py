"""How an operator Q is stored: as a matrix, as a factor V with Q = V Vᵀ, or as both.

Smoothing makes the spectrum of Q fall fast: a few hundred columns hold it to single precision, so a row carries a short
vector and a batch of b rows needs b of them instead of b² entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from ciplearn.kernels.cholesky import fewest_columns, pivoted_cholesky


class Form(Protocol):
    """A symmetric positive semi-definite matrix over n rows."""

    @property
    def rows(self) -> int:
        """The number of rows, n."""

    @property
    def width(self) -> int:
        """How many numbers a row carries."""

    @property
    def device(self) -> torch.device:
        """Where the numbers live."""

    def block(self, rows: Tensor | None) -> Tensor:  # (b,) -> (b, b)
        """Q restricted to ``rows``; all of Q for None."""

    def factor_of(self, rows: Tensor | None) -> Tensor | None:  # (b,) -> (b, m)
        """Rows of V, if Q is held as a factor."""

    def row_sums(self) -> Tensor:  # (n,)
        """Σ_j Q_ij."""

    def centred(self) -> Form:
        """C Q C with C = I − 11ᵀ/n."""

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Form:
        """The same form elsewhere or in another precision."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Q itself, and V too where few columns hold Q to rounding error."""

    matrix: Tensor  # (n, n)
    factor: Tensor | None = None  # (n, m)

    @property
    def rows(self) -> int:
        """The number of rows, n."""
        return self.matrix.shape[0]

    @property
    def width(self) -> int:
        """How many numbers a row carries."""
        return self.rows

    @property
    def device(self) -> torch.device:
        """Where the matrix lives."""
        return self.matrix.device

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

    def factor_of(self, rows: Tensor | None) -> Tensor | None:
        """Rows of V, if there is one."""
        return None if self.factor is None else _take(self.factor, rows)

    def row_sums(self) -> Tensor:
        """Σ_j Q_ij."""
        return self.matrix.sum(dim=1)

    def centred(self) -> Self:
        """C Q C."""
        means = self.matrix.mean(dim=1)
        return type(self)(self.matrix - means[:, None] - means[None, :] + means.mean())

    def factorised(self, precision: torch.dtype) -> Self:
        """Add V, if at most a third as many columns as rows hold Q to the given precision."""
        # Q itself is known to about 1e-12 of its trace: its entries are sums of many products.
        tolerance = max(16 * torch.finfo(precision).eps, 1e-12)
        diagonal = self.matrix.diagonal()
        rank = self.rows // 3
        _, factor = pivoted_cholesky(diagonal, lambda pivot: self.matrix[:, pivot], rank, tolerance)
        missing = float(diagonal.sum() - factor.square().sum())
        if factor.shape[1] == 0 or missing > 2 * tolerance * float(diagonal.sum()):
            return self
        return type(self)(self.matrix, fewest_columns(factor, tolerance))

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Self:
        """The same matrix elsewhere or in another precision."""
        factor = None if self.factor is None else _moved(self.factor, device, dtype)
        return type(self)(_moved(self.matrix, device, dtype), factor)


@dataclass(frozen=True, eq=False)
class LowRank:
    """Q = V Vᵀ."""

    factor: Tensor  # (n, m)

    @property
    def rows(self) -> int:
        """The number of rows, n."""
        return self.factor.shape[0]

    @property
    def width(self) -> int:
        """How many numbers a row carries."""
        return self.factor.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the factor lives."""
        return self.factor.device

    def block(self, rows: Tensor | None) -> Tensor:
        """Rebuild Q[rows, rows] from the rows' vectors."""
        factor = _take(self.factor, rows)
        return factor @ factor.T

    def factor_of(self, rows: Tensor | None) -> Tensor:
        """Rows of V."""
        return _take(self.factor, rows)

    def row_sums(self) -> Tensor:
        """Σ_j Q_ij without forming Q."""
        return self.factor @ self.factor.sum(dim=0)

    def centred(self) -> Self:
        """C Q C."""
        return type(self)(self.factor - self.factor.mean(dim=0))

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Self:
        """The same factor elsewhere or in another precision."""
        return type(self)(_moved(self.factor, device, dtype))


def _take(part: Tensor, rows: Tensor | None) -> Tensor:
    return part if rows is None else part.index_select(0, rows)


def _moved(part: Tensor, device: torch.device | None, dtype: torch.dtype | None) -> Tensor:
    return part.to(device=device or part.device, dtype=dtype or part.dtype)
