"""The inner product ⟨K_Ŷ, Q⟩ of a batch and its gradient, computed together in the forward pass.

| kernel, prediction | Q held as | cost for a batch of b rows |
|---|---|---|
| Gaussian, scalar | factor V, m columns | b m f for f frequencies: linear in b (`fourier_series.py`) |
| Gaussian, any | matrix | one pass over the b × b block (`fused.py`) |
| Gaussian, any | vectors of rows | half of the block, tile by tile (`fused.py`) |
| linear | factor or matrix | one product with V or with the block |
| any other | matrix | the block, through autograd |
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ciplearn._core.workers import ALONE, Workers
from ciplearn.kernels import Gaussian, Kernel, Linear
from ciplearn.penalties.fourier_series import FourierInnerProduct, series_for
from ciplearn.penalties.fused import TILE, GaussianBlockProduct, GaussianTiles, GradientFromForward, value_by_tiles
from ciplearn.penalties.storage import DenseMatrix, Storage, taken


def inner_product(
    kernel: Kernel,
    y_hat: Tensor,
    storage: Storage,
    rows: Tensor | None,
    off: float,
    on: float,
    span: tuple[float, float] | None,
    workers: Workers = ALONE,
) -> Tensor:
    """Return off · Σ_{i≠j} Q_ij k_ij + on · Σ_i Q_ii k_ii.

    ``kernel``: resolved. ``y_hat``: differentiable. ``rows``: the rows of Q that the batch belongs to. ``off``, ``on``:
    weights of pairs and of the diagonal that make the batch's value an unbiased estimate of the whole. ``span``: the
    smallest and the largest prediction; None where nobody has looked, and the block is used. ``workers``: who else has
    rows of this batch. A series needs their sums; all else needs their predictions.
    """
    if isinstance(kernel, Gaussian):
        y_hat = kernel.select(y_hat)
        scale = kernel.scale(y_hat.shape[1])
        if y_hat.shape[1] == 1 and span is not None and storage.factor is not None:
            size, has_block = workers.counted(len(y_hat)), isinstance(storage, DenseMatrix)
            spread, columns = (span[1] - span[0]) * scale, storage.factor.shape[1]
            series = series_for(y_hat, size, spread, columns, has_block=has_block)
            if series is not None:
                factor = taken(storage.factor, rows).to(y_hat.dtype)
                return FourierInnerProduct.apply(y_hat, factor, scale, series, off, on, span[0], workers)
    if workers.size > 1:
        y_hat = workers.gathered(y_hat)
        storage, rows = (storage, workers.gathered(rows)) if rows is not None else (storage.gathered(workers), None)
    if len(y_hat) > TILE and not isinstance(storage, DenseMatrix):
        # A device has room for the block of a batch, and is slower with many small matrices.
        if isinstance(kernel, Gaussian) and not (y_hat.is_cuda and y_hat.requires_grad):
            return GaussianTiles.apply(y_hat, storage.at(rows), scale, off, on)
        by_factor = isinstance(kernel, Linear) and storage.factor is not None
        if not isinstance(kernel, Gaussian) and not by_factor and not y_hat.requires_grad:
            return value_by_tiles(kernel, y_hat, storage.at(rows), off, on)
    if isinstance(kernel, Gaussian):
        return GaussianBlockProduct.apply(y_hat, storage.block(rows).to(y_hat.dtype), scale, off, on)
    if isinstance(kernel, Linear):
        y_hat = kernel.select(y_hat)
        is_matrix = storage.factor is None
        held = storage.block(rows) if storage.factor is None else taken(storage.factor, rows)
        return _LinearProduct.apply(y_hat, held.to(y_hat.dtype), is_matrix, kernel.divisor(y_hat.shape[1]), off, on)
    gram = kernel.gram(y_hat, y_hat)
    product = gram * storage.block(rows).to(gram.dtype)
    diagonal = product.diagonal().sum()
    return off * (product.sum() - diagonal) + on * diagonal


def stacked_inner_products(kernel: Kernel, y_hat: Tensor, block: Tensor, off: float, on: float) -> Tensor:
    """Return `inner_product` for k predictions of the same rows, shape (k, b, d), as a vector of length k."""
    if isinstance(kernel, Gaussian):
        y_hat = kernel.select(y_hat)
        return GaussianBlockProduct.apply(y_hat, block, kernel.scale(y_hat.shape[-1]), off, on)
    storage = DenseMatrix(block)
    values = [inner_product(kernel, one, storage, None, off, on, None) for one in y_hat]
    return torch.stack(values)


class _LinearProduct(GradientFromForward):
    """Σ_ij Q_ij y_i·y_j / c, whose gradient is 2 Q y / c."""

    @staticmethod
    def forward(ctx: Any, y_hat: Tensor, held: Tensor, is_matrix: bool, divisor: int, off: float, on: float) -> Tensor:
        if is_matrix:
            smoothed, diagonal = held @ y_hat, held.diagonal()
        else:
            smoothed, diagonal = held @ (held.T @ y_hat), held.square().sum(dim=1)
        weighted = (off * smoothed + (on - off) * diagonal[:, None] * y_hat) / divisor
        ctx.save_for_backward(2.0 * weighted)
        return (y_hat * weighted).sum()
