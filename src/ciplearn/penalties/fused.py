"""Value and gradient of ⟨K_Ŷ, Q⟩ for a Gaussian kernel, from one pass over a block of Q."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ciplearn.kernels.distances import squared_distances
from ciplearn.penalties import gpu


class GaussianBlockProduct(torch.autograd.Function):
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

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Rescale the gradient that the forward pass has left."""
        (gradient,) = ctx.saved_tensors
        return upstream[..., None, None] * gradient, None, None, None, None


def weighed(s: Tensor, other: Tensor, block: Tensor) -> Tensor:  # (..., b, d), (..., c, d), (b, c) -> (..., b, c)
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
    product = weighed(s, s, block)
    if s.dim() == 2 and s.shape[1] == 1:
        # mv reads the block once; a matrix product with one column is several times slower.
        return product.sum(1), product.mv(s[:, 0])[:, None]
    return product.sum(dim=-1), product @ s
