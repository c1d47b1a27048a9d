"""⟨K_Ŷ, Q⟩ where rows carry vectors, tile by tile: both matrices are symmetric, so that half of their tiles do.

A tile stays in cache and the whole block is never formed: half the time of a pass over the block at a thousand rows,
and memory that does not grow with their square.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ciplearn.kernels import Kernel
from ciplearn.penalties.fused import weighed
from ciplearn.penalties.storage import ElementwiseProduct, Factor

# Rows of a tile: large enough for fast matrix products, small enough that its matrices stay in cache.
TILE = 256

Vectors = Factor | ElementwiseProduct


def value_by_tiles(kernel: Kernel, y_hat: Tensor, vectors: Vectors, off: float, on: float) -> Tensor:
    """Return off · Σ_{i≠j} Q_ij k_ij + on · Σ_i Q_ii k_ii for any kernel, without a gradient."""
    value = (on - off) * (kernel.diagonal(y_hat) * vectors.diagonal()).sum()
    for rows, others, block in _tiles(vectors):
        part = off * (kernel.gram(y_hat[rows], y_hat[others]) * block).sum()
        value += part if rows == others else 2 * part
    return value


class GaussianTiles(torch.autograd.Function):
    """What `GaussianBlockProduct` computes."""

    @staticmethod
    def forward(ctx: Any, y_hat: Tensor, vectors: Vectors, scale: float, off: float, on: float) -> Tensor:
        """Weigh pairs by ``off`` and the diagonal by ``on``; ``y_hat`` has shape (b, d)."""
        # The shift changes nothing but keeps s_i Σ M − M s from cancelling far from the origin.
        s = (y_hat - y_hat.mean(dim=0)) * scale
        mass, pull = s.new_zeros(len(s), 1), torch.zeros_like(s)
        for rows, others, block in _tiles(vectors):
            product = weighed(s[rows], s[others], block.to(s.dtype))
            mass[rows] += product.sum(dim=1, keepdim=True)
            pull[rows] += product @ s[others]
            if rows != others:
                mass[others] += product.sum(dim=0)[:, None]
                pull[others] += product.T @ s[rows]
        ctx.save_for_backward((s * mass - pull) * (-4.0 * scale * off))
        # k_ii = 1 and is constant: the diagonal enters the value, never the gradient.
        return off * mass.sum() + (on - off) * vectors.diagonal().sum().to(s.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Rescale the gradient that the forward pass has left."""
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None, None, None


def _tiles(vectors: Vectors) -> Iterator[tuple[slice, slice, Tensor]]:
    """Rows, the same or later rows, and Q between them."""
    places = [slice(start, start + TILE) for start in range(0, vectors.rows, TILE)]
    parts = [vectors.cut(place) for place in places]
    for first, rows in enumerate(places):
        for others, other in zip(places[first:], parts[first:], strict=True):
            yield rows, others, parts[first].between(other)  # type: ignore[arg-type]
