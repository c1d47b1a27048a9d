"""Value and gradient of ⟨K_Ŷ, Q⟩ for a Gaussian kernel: from one pass over a block of Q, or over half of its tiles.

Where rows carry vectors, a tile stays in cache and the block is never formed. Both matrices are symmetric, so that half
of the tiles do: half the time of a pass over the block at a thousand rows, and memory that does not grow with their
square.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ciplearn.kernels import Kernel
from ciplearn.kernels.elementary import squared_distances
from ciplearn.penalties import gpu
from ciplearn.penalties.storage import Vectors

# Rows of a tile: large enough for fast matrix products, small enough that its matrices stay in cache.
TILE = 256


class GradientFromForward(torch.autograd.Function):
    """A function of predictions whose forward pass saves its gradient in the first argument."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Rescale the saved gradient."""
        (gradient,) = ctx.saved_tensors
        return (upstream[..., None, None] * gradient, *(None,) * (len(ctx.needs_input_grad) - 1))


class GaussianBlockProduct(GradientFromForward):
    """With s = c y and M = exp(−‖s_i − s_j‖²) ∘ Q: value ΣM, gradient ∂ΣM/∂s_i = −4 (s_i Σ_j M_ij − Σ_j M_ij s_j)."""

    @staticmethod
    def forward(ctx: Any, y_hat: Tensor, block: Tensor, scale: float, off: float, on: float) -> Tensor:
        """Weigh pairs by ``off`` and the diagonal by ``on``; ``y_hat`` has shape (..., b, d), ``block`` (b, b)."""
        # The shift changes nothing but keeps s_i Σ M − M s from cancelling far from the origin.
        s = (y_hat - y_hat.mean(dim=-2, keepdim=True)) * scale
        mass, pull = gpu.gaussian_sums(s, block) if gpu.takes(s, block) else _gaussian_sums(s, block)
        ctx.save_for_backward((s * mass[..., None] - pull) * (-4.0 * scale * off))
        # k_ii = 1 and is constant: the diagonal enters the value, never the gradient.
        return off * mass.sum(dim=-1) + (on - off) * block.diagonal().sum()


class GaussianTiles(GradientFromForward):
    """What `GaussianBlockProduct` computes."""

    @staticmethod
    def forward(ctx: Any, y_hat: Tensor, vectors: Vectors, scale: float, off: float, on: float) -> Tensor:
        """Weigh pairs by ``off`` and the diagonal by ``on``; ``y_hat`` has shape (b, d)."""
        s = (y_hat - y_hat.mean(dim=0)) * scale
        mass, pull = s.new_zeros(len(s), 1), torch.zeros_like(s)
        for rows, others, block in _tiles(vectors):
            product = _weighed(s[rows], s[others], block.to(s.dtype))
            mass[rows] += product.sum(dim=1, keepdim=True)
            pull[rows] += product @ s[others]
            if rows != others:
                mass[others] += product.sum(dim=0)[:, None]
                pull[others] += product.T @ s[rows]
        ctx.save_for_backward((s * mass - pull) * (-4.0 * scale * off))
        return off * mass.sum() + (on - off) * vectors.diagonal().sum().to(s.dtype)


def value_by_tiles(kernel: Kernel, y_hat: Tensor, vectors: Vectors, off: float, on: float) -> Tensor:
    """Return off · Σ_{i≠j} Q_ij k_ij + on · Σ_i Q_ii k_ii for any kernel, without a gradient."""
    value = (on - off) * (kernel.diagonal(y_hat) * vectors.diagonal()).sum()
    for rows, others, block in _tiles(vectors):
        part = off * (kernel.gram(y_hat[rows], y_hat[others]) * block).sum()
        value += part if rows == others else 2 * part
    return value


def _tiles(vectors: Vectors) -> Iterator[tuple[slice, slice, Tensor]]:
    """Rows, the same or later rows, and Q between them."""
    places = [slice(start, start + TILE) for start in range(0, vectors.rows, TILE)]
    parts = [vectors.cut(place) for place in places]
    for first, rows in enumerate(places):
        for others, other in zip(places[first:], parts[first:], strict=True):
            yield rows, others, parts[first].between(other)


def _weighed(s: Tensor, other: Tensor, block: Tensor) -> Tensor:  # (..., b, d), (..., c, d), (b, c) -> (..., b, c)
    """M between rows; in place, since memory traffic is the cost here."""
    if s.shape[-1] == 1:
        product = s - other.mT
        torch.addcmul(product.new_zeros(1), product, product, value=-1, out=product)
    else:
        product = squared_distances(s, other).neg_()
    # Processors are very slow with denormal numbers: what is as small as this is far below rounding error.
    product.clamp_min_(0.7 * math.log(torch.finfo(s.dtype).tiny))
    if product.is_cuda:
        return product.exp_().mul_(block)
    # numpy's is twice as fast as torch's on a CPU.
    np.exp(product.numpy(), out=product.numpy())
    return product.mul_(block)


def _gaussian_sums(s: Tensor, block: Tensor) -> tuple[Tensor, Tensor]:  # (..., b, d), (b, b) -> (..., b), (..., b, d)
    """Row sums of M, and M s."""
    product = _weighed(s, s, block)
    if s.dim() == 2 and s.shape[1] == 1:
        # mv reads the block once; a matrix product with one column is several times slower.
        return product.sum(1), product.mv(s[:, 0])[:, None]
    return product.sum(dim=-1), product @ s
