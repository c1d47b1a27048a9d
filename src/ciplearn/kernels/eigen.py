"""Eigenvalues and eigenvectors of positive semi-definite matrices, in double precision."""

from __future__ import annotations

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
