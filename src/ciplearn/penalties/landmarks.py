"""From entries of Q that features give row by row to a factor V with Q ≈ V Vᵀ, in one more pass over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn.kernels.cholesky import fewest_columns, inverse_root, pivoted_cholesky
from ciplearn.penalties.forms import LowRank
from ciplearn.penalties.rows import Rows

# Landmark rows of Q are sought among this many.
_POOL_ROWS = 4096

# Landmarks stop once they explain all but this share of Q's trace.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Entries:
    """Vectors of some rows that give entries of Q: Q_ij = (l_i·l_j)(r_i·r_j) − g_i·f_j − f_i·g_j.

    Attributes
    ----------
    left, right : Tensor, shape (m, p) and (m, q)
        l and r.
    correction : pair of Tensor, shape (m, s), optional
        g and f.
    """

    left: Tensor
    right: Tensor
    correction: tuple[Tensor, Tensor] | None = None

    def between(self, other: Entries) -> Tensor:  # (m, k)
        """Entries of Q between these rows and others."""
        block = (self.left @ other.left.T) * (self.right @ other.right.T)
        if self.correction is not None and other.correction is not None:
            (g, f), (other_g, other_f) = self.correction, other.correction
            block = block - g @ other_f.T - f @ other_g.T
        return block

    def diagonal(self) -> Tensor:  # (m,)
        """Q_ii."""
        own = self.left.square().sum(1) * self.right.square().sum(1)
        if self.correction is not None:
            own = own - 2 * (self.correction[0] * self.correction[1]).sum(1)
        return own

    def __getitem__(self, index: Tensor | slice) -> Entries:
        correction = None if self.correction is None else (self.correction[0][index], self.correction[1][index])
        return Entries(self.left[index], self.right[index], correction)


def low_rank(rows: Rows, entries_of: Callable[[Tensor, Tensor], Entries], rank: int) -> LowRank:
    """Project Q on at most ``rank`` of its rows: V = Q_·Z Q_ZZ^(−1/2).

    Parameters
    ----------
    rows : Rows
    entries_of : callable
        Takes rows (right, given) to the vectors that give entries of Q.
    rank : int
    """
    pool = entries_of(*rows.sample(_POOL_ROWS, seed=0))

    def column(pivot: int) -> Tensor:
        return pool.between(pool[pivot : pivot + 1])[:, 0]

    pivots, _ = pivoted_cholesky(pool.diagonal(), column, rank, _TOLERANCE)
    if pivots.numel() == 0:
        return LowRank(torch.zeros(rows.n, 1, dtype=rows.dtype, device=rows.device))
    landmarks = pool[pivots]
    whitener = inverse_root(landmarks.between(landmarks))
    factor = torch.empty(rows.n, whitener.shape[1], dtype=rows.dtype, device=rows.device)
    start = 0
    for right, given in rows.chunks():
        stop = start + right.shape[0]
        factor[start:stop] = entries_of(right, given).between(landmarks) @ whitener
        start = stop
    return LowRank(fewest_columns(factor, _TOLERANCE))
