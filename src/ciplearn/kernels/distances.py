"""Distances between rows, and the median heuristic for length scales."""

from __future__ import annotations

import torch
from torch import Tensor

# Up to this many columns, differences are taken column by column: exact, and as fast as a matrix product.
_DIRECT_COLUMNS = 4

# The median needs a few hundred rows to be stable; all pairs of more would cost more than they tell.
MEDIAN_ROWS = 512


def squared_distances(x: Tensor, z: Tensor) -> Tensor:  # (..., n, d), (..., m, d) -> (..., n, m)
    """Squared Euclidean distances between the rows of ``x`` and of ``z``."""
    if x.shape[-1] <= _DIRECT_COLUMNS:
        total = (x[..., :, None, 0] - z[..., None, :, 0]).square()
        for column in range(1, x.shape[-1]):
            difference = x[..., :, None, column] - z[..., None, :, column]
            total = torch.addcmul(total, difference, difference)
        return total
    # A common shift leaves distances alone and keeps ‖x‖² + ‖z‖² − 2 x·z from cancelling.
    shift = z.detach().mean(dim=-2, keepdim=True)
    x, z = x - shift, z - shift
    norms = x.square().sum(-1)[..., :, None] + z.square().sum(-1)[..., None, :]
    # In place: of many rows each further matrix counts.
    return norms.sub_(x @ z.transpose(-1, -2), alpha=2).clamp_min_(0)


def absolute_distances(x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
    """Sum over columns of absolute differences between the rows of ``x`` and of ``z``."""
    total = (x[:, None, 0] - z[None, :, 0]).abs()
    for column in range(1, x.shape[1]):
        total = total + (x[:, None, column] - z[None, :, column]).abs()
    return total


def sample_rows(n: int, size: int, seed: int) -> Tensor:
    """Return sorted indices of ``size`` of ``n`` rows, drawn without replacement; all of them if there are fewer."""
    if n <= size:
        return torch.arange(n)
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(n, generator=generator)[:size].sort().values


def median_of_pairs(distances: Tensor) -> float:  # (n, n)
    """Median over distinct pairs; over the unequal ones if most rows are equal; 1 if all are.

    The last two rules keep a column with many duplicates, or a constant one, from giving a length scale of zero.
    """
    n = distances.shape[0]
    upper = torch.triu_indices(n, n, offset=1, device=distances.device)
    pairs = distances[upper[0], upper[1]]
    if pairs.numel() == 0:
        return 1.0
    median = float(pairs.median())
    if median > 0:
        return median
    unequal = pairs[pairs > 0]
    return float(unequal.median()) if unequal.numel() else 1.0
