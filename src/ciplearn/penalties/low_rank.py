"""Many rows: Q from vectors that features give row by row, stored as short as a stated error allows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ciplearn.penalties.approximation_error import gradient_error
from ciplearn.penalties.rows import PenaltyRows
from ciplearn.penalties.storage import ElementwiseProduct, Factor, Storage

# Rows whose columns of Q span the factor. They are drawn evenly: pivots that explain most of the trace are outlying
# rows, which few others resemble.
_LANDMARKS = 512

# A factor must keep gradients as near to those of the product form as this, a cosine of 0.968.
MOST_FACTOR_ERROR = 0.25

# Directions that together hold this share of the landmarks' trace are left out.
_TOLERANCE = 1e-6

# Takes rows (right, given) to the vectors that give entries of Q.
VectorsOf = Callable[[Tensor, Tensor], ElementwiseProduct]


def stored_rows(rows: PenaltyRows, vectors_of: VectorsOf, rank: int, predictions: Tensor) -> tuple[Storage, float]:
    """Store Q as a factor V, or the vectors of rows as they are where no short factor will do.

    V = Q_·Z U Λ^(−1/2) for landmark rows Z and the leading eigenvectors U and eigenvalues Λ of Q_ZZ.

    Parameters
    ----------
    rows : PenaltyRows
    vectors_of : callable
    rank : int
        The most columns of V; half as many are taken where they do.
    predictions : Tensor, shape (k, m)
        For the first m rows of the sample, which were drawn apart from the landmarks: what a factor is judged by.

    Returns
    -------
    Storage
    float
        How far gradients of the factor are from those of the product form; 0 for the latter.
    """
    landmarks = vectors_of(*rows.sample.last(_LANDMARKS))
    directions = _leading_directions(landmarks.between(landmarks), rank)
    judged = vectors_of(*rows.sample.first(predictions.shape[1]))
    similar, exact = judged.between(landmarks), judged.between(judged)
    for columns in (rank // 2, rank):
        factor = similar @ directions[:, :columns]
        error = gradient_error(factor @ factor.T, exact, predictions)
        if error <= MOST_FACTOR_ERROR:
            return _factor(rows, vectors_of, landmarks, directions[:, :columns]), error
    pieces = [vectors_of(right, given).to(None, rows.dtype) for right, given in rows.chunks()]
    return ElementwiseProduct.joined(pieces), 0.0


def _factor(rows: PenaltyRows, vectors_of: VectorsOf, landmarks: ElementwiseProduct, directions: Tensor) -> Factor:
    landmarks, directions = landmarks.to(None, rows.dtype), directions.to(rows.dtype)
    factor = torch.empty(rows.n, directions.shape[1], dtype=rows.dtype, device=rows.device)
    start = 0
    for right, given in rows.chunks():
        stop = start + right.shape[0]
        factor[start:stop] = vectors_of(right, given).to(None, rows.dtype).between(landmarks) @ directions
        start = stop
    return Factor(factor)


def _leading_directions(matrix: Tensor, rank: int) -> Tensor:  # (m, m) -> (m, k)
    """U Λ^(−1/2) of the largest eigenvalues first, at most ``rank`` of them and none that are together negligible."""
    values, vectors = torch.linalg.eigh(matrix)
    values = values.clamp_min(0)
    kept = values.cumsum(0) > _TOLERANCE * values.sum()
    kept[: max(0, len(values) - rank)] = False
    if not bool(kept.any()):  # Q is zero
        return matrix.new_zeros(len(matrix), 1)
    return (vectors[:, kept] / values[kept].sqrt()).flip(1)
