"""The inner product ⟨K_Ŷ, Q⟩ of a batch, with its gradient from one pass over the block.

For the Gaussian and the linear kernel, value and gradient share the matrix M = K ∘ Q, so both are computed in the
forward pass and the backward pass only rescales. Other kernels go through autograd.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ciplearn.kernels import Gaussian, Kernel, Linear
from ciplearn.kernels.distances import squared_distances
from ciplearn.penalties import gpu


def inner_product(kernel: Kernel, y_hat: Tensor, block: Tensor, off: float, on: float) -> Tensor:
    """Return off · Σ_{i≠j} Q_ij k_ij + on · Σ_i Q_ii k_ii.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    y_hat : Tensor, shape (b, d)
        Differentiable.
    block : Tensor, shape (b, b)
        Q restricted to the batch.
    off, on : float
        Weights of pairs and of the diagonal that make the batch's value an unbiased estimate of the whole.
    """
    if isinstance(kernel, Gaussian):
        selected = kernel.select(y_hat)
        return _GaussianProduct.apply(selected, block, kernel.scale(selected.shape[-1]), off, on)
    if isinstance(kernel, Linear):
        selected = kernel.select(y_hat)
        return _LinearProduct.apply(selected, block, kernel.divisor(selected.shape[-1]), off, on)
    product = kernel.gram(y_hat, y_hat) * block
    diagonal = product.diagonal().sum()
    return off * (product.sum() - diagonal) + on * diagonal


class _GaussianProduct(torch.autograd.Function):
    """M = exp(−‖s_i − s_j‖²) ∘ Q with s = c y; ∂ΣM/∂s_i = −4 (s_i Σ_j M_ij − Σ_j M_ij s_j)."""

    @staticmethod
    def forward(ctx: Any, y_hat: Tensor, block: Tensor, scale: float, off: float, on: float) -> Tensor:
        # The shift changes nothing but keeps s_i Σ M − M s from cancelling far from the origin.
        s = (y_hat - y_hat.mean(dim=-2, keepdim=True)) * scale  # (b, d)
        mass, pull = gpu.gaussian_sums(s, block) if gpu.takes(s, block) else _gaussian_sums(s, block)
        gradient = (s * mass[..., None] - pull) * (-4.0 * scale * off)
        ctx.save_for_backward(gradient)
        # k_ii = 1 and is constant: the diagonal enters the value, never the gradient.
        return off * mass.sum(-1) + (on - off) * block.diagonal().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream[..., None, None] * gradient, None, None, None, None


def _gaussian_sums(s: Tensor, block: Tensor) -> tuple[Tensor, Tensor]:  # (b, d), (b, b) -> (b,), (b, d)
    """Row sums of M and M s; in place where one column allows it, since memory traffic is the cost here."""
    if s.shape[-1] == 1:
        product = s - s.transpose(-1, -2)
        torch.addcmul(product.new_zeros(1), product, product, value=-1, out=product)
    else:
        product = squared_distances(s, s).neg_()
    product.exp_().mul_(block)
    if s.dim() == 2 and s.shape[1] == 1:
        # mv reads the block once; a product with one column is several times slower.
        return product.sum(1), product.mv(s[:, 0])[:, None]
    return product.sum(-1), product @ s


class _LinearProduct(torch.autograd.Function):
    """Σ_ij Q_ij y_i·y_j / c, whose gradient is 2 Q y / c."""

    @staticmethod
    def forward(ctx: Any, y_hat: Tensor, block: Tensor, divisor: int, off: float, on: float) -> Tensor:
        smoothed = block.mv(y_hat[:, 0])[:, None] if y_hat.shape == (block.shape[0], 1) else block @ y_hat
        own = block.diagonal()[:, None] * y_hat
        weighted = (off * (smoothed - own) + on * own) / divisor
        ctx.save_for_backward(2.0 * weighted)
        return (y_hat * weighted).sum((-2, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream[..., None, None] * gradient, None, None, None, None
