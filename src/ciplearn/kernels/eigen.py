"""Eigenvectors and partial Cholesky factors of positive semi-definite matrices, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ciplearn._core.errors import NumericalError

# Eigenvalues below this share of the largest are rounding errors of what the matrix was made of.
_RANK = 1e-12


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:  # (k, k) -> (k,), (k, k)
    """Return eigenvalues from small to large, none below zero, and eigenvectors."""
    matrix = matrix.double()
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError as error:
        raise NumericalError(
            f"The eigendecomposition of a {matrix.shape[0]} × {matrix.shape[0]} matrix with largest entry "
            f"{float(matrix.abs().max()):.3g} did not converge; rescale the columns or use a larger length scale."
        ) from error
    return values.clamp_min(0), vectors


def eigenspace(matrix: Tensor) -> tuple[Tensor, Tensor]:  # (k, k) -> (r,), (k, r)
    """Return the eigenvalues above rounding error, and their eigenvectors."""
    values, vectors = eigh(matrix)
    kept = values > _RANK * values.max() if len(values) else values > 0
    return values[kept], vectors[:, kept]


def inverse_root(matrix: Tensor) -> Tensor:  # (k, k) -> (k, r)
    """R with R Rᵀ the pseudo-inverse of a matrix."""
    values, vectors = eigenspace(matrix)
    return vectors / values.sqrt()


def leading(matrix: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:  # (k, k) -> (r,), (k, r)
    """Return eigenvalues from large to small, and eigenvectors; the least, with a share of the trace together, go."""
    values, vectors = eigh(matrix)
    lost = values.cumsum(0)
    kept = lost > tolerance * lost[-1]
    return values[kept].flip(0), vectors[:, kept].flip(1)


def pivoted_cholesky(
    diagonal: Tensor,  # (n,)
    column: Callable[[int], Tensor],  # j -> (n,)
    rank: int,
    tolerance: float,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:  # (k,), (n, k)
    """Return pivots, at most ``rank``, and a factor F with F Fᵀ ≈ the matrix, exact in the pivots' rows and columns.

    Pivots are added until the unexplained share of the trace falls to ``tolerance``: drawn with probability
    proportional to the unexplained diagonal [chen2025], or the largest where there is no generator.
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
