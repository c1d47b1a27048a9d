"""How an operator Q is stored: as a matrix, as a factor V with Q = V Vᵀ, or as two short vectors per row.

Smoothing makes the spectrum of Q fall fast where few columns are involved: a few hundred columns of V hold it to single
precision, so a row carries a short vector and a batch of b rows needs b of them instead of b² entries. With many
columns no short factor holds Q, but it still is an elementwise product of two such matrices. Vectors that are kept in
half precision are computed with in single precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.workers import Workers
from ciplearn.kernels.ridge import fewest_columns, pivoted_cholesky


class Storage(ABC):
    """Q; its fields are tensors with one entry per row, pairs of such, or None."""

    factor: Any = None  # (n, m): V, where there is one

    def parts(self) -> tuple[Tensor, ...]:
        """All numbers that rows carry."""
        held = (getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]
        return tuple(part for one in held if one is not None for part in ([one] if isinstance(one, Tensor) else one))

    @property
    def rows(self) -> int:
        """The number of rows, n."""
        return len(self.parts()[0])

    @property
    def width(self) -> int:
        """How many numbers a row carries."""
        return sum(part.shape[1] for part in self.parts())

    def to(self, device: torch.device | None, dtype: torch.dtype | None) -> Self:
        """The same elsewhere or in another precision."""
        return self._each(lambda part: part.to(device=device or part.device, dtype=dtype or part.dtype))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        def changed(held: Any) -> Any:
            return change(held) if isinstance(held, Tensor) else held and tuple(map(change, held))

        return type(self)(*(changed(getattr(self, each.name)) for each in fields(self)))  # type: ignore[arg-type]

    @abstractmethod
    def block(self, rows: Tensor | None) -> Tensor:
        """Q[rows, rows]."""

    @abstractmethod
    def row_sums(self) -> Tensor:  # (n,)
        """Σ_j Q_ij."""

    @abstractmethod
    def centred(self) -> Self:
        """C Q C with C = I − 11ᵀ/n."""

    def gathered(self, workers: Workers) -> Self:
        """That of all workers' rows; a matrix is already."""
        return self


@dataclass(frozen=True, eq=False)
class DenseMatrix(Storage):
    """Q itself, and V too where few columns hold Q to rounding error."""

    matrix: Tensor  # (n, n)
    factor: Tensor | None = None  # (n, m)

    def block(self, rows: Tensor | None) -> Tensor:
        """Look the entries up."""
        if rows is None:
            return self.matrix
        if self.matrix.is_cuda:
            return self.matrix[rows[:, None], rows[None, :]]
        # On a CPU both ways gather a batch several times faster than torch's indexing by pairs does.
        if self.rows <= 8 * len(rows):
            return self.matrix.index_select(0, rows).index_select(1, rows)
        index = rows.numpy()
        return torch.from_numpy(self.matrix.numpy().take(np.add.outer(index * self.rows, index)))

    def row_sums(self) -> Tensor:
        """Add the entries."""
        return self.matrix.sum(dim=1)

    def centred(self) -> Self:
        """Subtract the means of rows and columns."""
        means = self.matrix.mean(dim=1)
        return type(self)(self.matrix - means[:, None] - means[None, :] + means.mean())

    def factorised(self, precision: torch.dtype) -> Self:
        """Add V, if at most a third as many columns as rows hold Q to the given precision."""
        # Q itself is known to about 1e-12 of its trace: its entries are sums of many products.
        tolerance = max(16 * torch.finfo(precision).eps, 1e-12)
        diagonal = self.matrix.diagonal()
        _, factor = pivoted_cholesky(diagonal, lambda pivot: self.matrix[:, pivot], self.rows // 3, tolerance)
        missing = float(diagonal.sum() - factor.square().sum())
        is_held = factor.shape[1] > 0 and missing <= 2 * tolerance * float(diagonal.sum())
        return type(self)(self.matrix, fewest_columns(factor, tolerance)) if is_held else self


class Vectors(Storage):
    """Q from short vectors that rows carry."""

    def block(self, rows: Tensor | None) -> Tensor:
        """Rebuild Q[rows, rows] from the rows' vectors."""
        chosen = self.at(rows)
        return chosen.between(chosen)

    def gathered(self, workers: Workers) -> Self:
        """The vectors of all workers' rows."""
        return self._each(workers.gathered)

    def at(self, rows: Tensor | None) -> Self:
        """The vectors of some rows, or of all, ready to be computed with."""
        return self._each(lambda part: some_rows(part, rows))

    def cut(self, rows: slice) -> Self:
        """The vectors of a stretch of rows."""
        return self._each(lambda part: part[rows])

    def room(self, n: int, dtype: torch.dtype) -> Self:
        """Vectors of the same lengths for n rows, to be filled."""
        return self._each(lambda part: part.new_empty(n, part.shape[1], dtype=dtype))

    @abstractmethod
    def between(self, other: Self) -> Tensor:  # (n, m)
        """Entries of Q between these rows and others."""

    @abstractmethod
    def diagonal(self) -> Tensor:  # (n,)
        """Q_ii."""


@dataclass(frozen=True, eq=False)
class Factor(Vectors):
    """Q = V Vᵀ."""

    factor: Tensor  # (n, m)

    def between(self, other: Self) -> Tensor:
        """V V'ᵀ."""
        return self.factor @ other.factor.T

    def diagonal(self) -> Tensor:
        """‖v_i‖²."""
        return self.factor.square().sum(dim=1)

    def row_sums(self) -> Tensor:
        """V (Vᵀ 1), without forming Q."""
        factor = some_rows(self.factor, None)
        return factor @ factor.sum(dim=0)

    def centred(self) -> Self:
        """Subtract the mean of V's rows."""
        factor = some_rows(self.factor, None)
        return type(self)((factor - factor.mean(dim=0)).to(self.factor.dtype))


@dataclass(frozen=True, eq=False)
class ElementwiseProduct(Vectors):
    """Q_ij = (l_i·l_j)(r_i·r_j) − g_i·f_j − f_i·g_j."""

    left: Tensor  # (n, p): l
    right: Tensor  # (n, q): r
    correction: tuple[Tensor, Tensor] | None = None  # (n, s): g and f

    def between(self, other: Self) -> Tensor:
        """Both products and the correction."""
        block = (self.left @ other.left.T).mul_(self.right @ other.right.T)
        if self.correction is not None and other.correction is not None:
            (g, f), (other_g, other_f) = self.correction, other.correction
            block.addmm_(g, other_f.T, alpha=-1).addmm_(f, other_g.T, alpha=-1)
        return block

    def diagonal(self) -> Tensor:
        """‖l_i‖² ‖r_i‖² − 2 g_i·f_i."""
        values = self.left.square().sum(dim=1) * self.right.square().sum(dim=1)
        return values if self.correction is None else values - 2 * torch.mul(*self.correction).sum(dim=1)

    def row_sums(self) -> Tensor:
        """Without forming Q: Σ_j (l_i·l_j)(r_i·r_j) = l_iᵀ (Σ_j l_j r_jᵀ) r_i."""
        whole = self.at(None)
        sums = ((whole.left @ (whole.left.T @ whole.right)) * whole.right).sum(dim=1)
        if whole.correction is None:
            return sums
        g, f = whole.correction
        return sums - g @ f.sum(dim=0) - f @ g.sum(dim=0)

    def centred(self) -> Self:
        """C Q C = Q − a_i − a_j + ā with the means a of Q's rows, as a correction by g_i = a_i − ā/2 and f_i = 1."""
        means = self.row_sums()[:, None] / self.rows
        shift, ones = means - means.mean() / 2, torch.ones_like(means)
        if self.correction is not None:
            g, f = self.correction
            shift, ones = torch.cat([g, shift], dim=1), torch.cat([f, ones], dim=1)
        return replace(self, correction=(shift, ones))


def some_rows(part: Tensor, rows: Tensor | None) -> Tensor:
    """Rows of a part, or all of it, ready to be computed with."""
    chosen = part if rows is None else part.index_select(0, rows)
    # Sums of many products in half precision would lose what the vectors still hold.
    return chosen.float() if chosen.dtype == torch.bfloat16 else chosen


# Takes rows (right, given) to the vectors that give entries of Q.
VectorsOf = Callable[[Tensor, Tensor], ElementwiseProduct]

# The same, or to rows of a factor: all that a batch needs, from its own rows alone.
RowMap = Callable[[Tensor, Tensor], Factor | ElementwiseProduct]
