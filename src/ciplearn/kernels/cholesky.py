"""Partial Cholesky factorisation with pivots: few columns that explain a positive semi-definite matrix."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ciplearn.kernels.eigen import leading


def pivoted_cholesky(
    diagonal: Tensor,  # (n,)
    column: Callable[[int], Tensor],  # j -> (n,)
    rank: int,
    tolerance: float,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:  # (k,), (n, k)
    """Return pivots and a factor F with F Fᵀ ≈ the matrix, exact in the pivots' rows and columns.

    Only the diagonal and the pivots' columns of the matrix are ever looked at.

    ``diagonal``: (n,). ``column``: gives one column of the matrix. ``rank``: the largest number of pivots.
    ``tolerance``: stop when the unexplained share of the trace falls to it. ``generator``: draw each pivot with
    probability proportional to its unexplained diagonal [chen2025]; without it, take the largest.
    """
    unexplained = diagonal.double().clamp_min(0)
    target = tolerance * float(unexplained.sum())
    factor = unexplained.new_zeros(diagonal.shape[0], min(rank, diagonal.shape[0]))
    pivots: list[int] = []
    for step in range(factor.shape[1]):
        if float(unexplained.sum()) <= target:
            break
        if generator is None:
            pivot = int(unexplained.argmax())
        else:
            pivot = int(torch.multinomial(unexplained.cpu(), 1, generator=generator))
        fresh = column(pivot).double() - factor[:, :step] @ factor[pivot, :step]
        factor[:, step] = fresh / unexplained[pivot].sqrt()
        unexplained = (unexplained - factor[:, step].square()).clamp_min(0)
        unexplained[pivot] = 0
        pivots.append(pivot)
    return torch.tensor(pivots, dtype=torch.int64, device=diagonal.device), factor[:, : len(pivots)]


def fewest_columns(factor: Tensor, tolerance: float) -> Tensor:  # (n, k) -> (n, r)
    """Rotate a factor to orthogonal columns and drop those that together hold ``tolerance`` of the trace."""
    _, rotation = leading(factor.T @ factor, tolerance)
    return factor if rotation.shape[1] == factor.shape[1] else factor @ rotation.to(factor.dtype)
