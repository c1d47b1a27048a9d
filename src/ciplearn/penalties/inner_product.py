"""The inner product ⟨K_Ŷ, Q⟩ of a batch and its gradient, computed together in the forward pass.

| kernel, prediction | Q held as | cost for a batch of b rows |
|---|---|---|
| Gaussian, scalar | factor V, m columns | b m f for f frequencies: linear in b (`FourierInnerProduct`) |
| Gaussian, any | matrix | one pass over the b × b block (`GaussianBlockProduct`) |
| Gaussian, any | vectors of rows | half of the block, tile by tile (`GaussianTiles`) |
| linear | factor or matrix | one product with V or with the block |
| any other | matrix | the block, through autograd |

Where rows carry vectors, a tile stays in cache and the block is never formed. Both matrices are symmetric, so that half
of the tiles do: half the time of a pass over the block at a thousand rows, and memory that does not grow with their
square.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ciplearn._core.workers import ALONE, Workers
from ciplearn.kernels import Gaussian, Kernel, Linear
from ciplearn.kernels.kernels import squared_distances
from ciplearn.penalties import gpu
from ciplearn.penalties.storage import DenseMatrix, Storage, Vectors, some_rows

# Rows of a tile: large enough for fast matrix products, small enough that its matrices stay in cache.
TILE = 256

# Beyond this many frequencies times columns per row of the batch, a pass over the block is faster; the second where the
# block is at hand and not rebuilt from vectors.
_WORTH, _WORTH_BESIDE_BLOCK = 50, 11


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
                factor = some_rows(storage.factor, rows).to(y_hat.dtype)
                return FourierInnerProduct.apply(y_hat, factor, scale, series, off, on, span[0], workers)
    if workers.size > 1:
        y_hat = workers.gathered(y_hat)
        storage, rows = (storage, workers.gathered(rows)) if rows is not None else (storage.gathered(workers), None)
    if len(y_hat) > TILE and isinstance(storage, Vectors):
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
        is_matrix, divisor = storage.factor is None, kernel.divisor(y_hat.shape[1])
        held = storage.block(rows) if is_matrix else some_rows(storage.factor, rows)
        return _LinearProduct.apply(y_hat, held.to(y_hat.dtype), is_matrix, divisor, off, on)
    gram = kernel.gram(y_hat, y_hat)
    product = gram * storage.block(rows).to(gram.dtype)
    diagonal = product.diagonal().sum()
    return off * (product.sum() - diagonal) + on * diagonal


def stacked_inner_products(kernel: Kernel, y_hat: Tensor, block: Tensor, off: float, on: float) -> Tensor:
    """Return `inner_product` for k predictions of the same rows, shape (k, b, d), as a vector of length k."""
    if isinstance(kernel, Gaussian):
        y_hat = kernel.select(y_hat)
        return GaussianBlockProduct.apply(y_hat, block, kernel.scale(y_hat.shape[-1]), off, on)
    return torch.stack([inner_product(kernel, one, DenseMatrix(block), None, off, on, None) for one in y_hat])


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
        mass, pull = gpu.gaussian_sums(s, block) if s.is_cuda and gpu.takes(s, block) else _gaussian_sums(s, block)
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
    strips = [slice(start, start + TILE) for start in range(0, vectors.rows, TILE)]
    for (rows, mine), (others, other) in combinations_with_replacement([(s, vectors.cut(s)) for s in strips], 2):
        yield rows, others, mine.between(other)


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
    product = _weighed(s, s, block)
    if s.dim() == 2 and s.shape[1] == 1:
        # mv reads the block once; a matrix product with one column is several times slower.
        return product.sum(1), product.mv(s[:, 0])[:, None]
    return product.sum(dim=-1), product @ s


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


class FourierSeries(NamedTuple):
    """A series, as columns of 2f + 2 numbers: all cosines, then all sines as cosines a quarter turn later."""

    frequencies: Tensor
    turns: Tensor
    roots: Tensor
    slopes: Tensor  # as a row: ω for cosines, −ω for sines


def series_for(
    y_hat: Tensor, size: int, spread: float, n_columns: int, *, has_block: bool = False
) -> FourierSeries | None:  # (b, 1)
    """Return the series that serves scaled predictions of this spread, or None if it would cost more than the block.

    The size of the batch is that of all workers together: they must choose alike.
    """
    reach = _reach(y_hat.dtype)
    # The neighbouring periods are at rounding error if T ≥ r + reach, the terms left out if ω ≥ 2 reach.
    n_frequencies = math.ceil(reach * (spread + reach) / math.pi)
    pays = n_frequencies * n_columns <= (_WORTH_BESIDE_BLOCK if has_block else _WORTH) * size
    return _series(n_frequencies, y_hat.dtype, y_hat.device) if pays else None


class FourierInnerProduct(GradientFromForward):
    """⟨K_Ŷ, V Vᵀ⟩ for scalar predictions in time linear in the batch: value ‖Vᵀ Φ‖², gradient 2 ⟨V Vᵀ Φ, ∂Φ/∂s⟩.

    On a bounded range the Gaussian is, to rounding error, a short Fourier series. With s = c y, differences within ±r
    and a period T > r,

        exp(−d²) = Σ_f a_f cos(ω_f d),   ω_f = 2π f / T,   a_f = (√π / T) exp(−ω_f² / 4) · (1 if f = 0 else 2),

    up to exp(−(T − r)²) from the neighbouring periods and exp(−ω²/4) from the first term left out. Since
    cos(ω(s_i − s_j)) = cos ωs_i cos ωs_j + sin ωs_i sin ωs_j, the kernel matrix is Φ Φᵀ with 2f + 1 columns: no matrix
    of size b × b appears. These are not random features: the error is that of the arithmetic.

    Vᵀ Φ is a sum over rows, a small matrix: workers add theirs, and each has the gradient in its own rows.
    """

    @staticmethod
    def forward(
        ctx: Any,
        y_hat: Tensor,
        factor: Tensor,
        scale: float,
        series: FourierSeries,
        off: float,
        on: float,
        shift: float,
        workers: Workers,
    ) -> Tensor:
        """Weigh pairs by ``off`` and the diagonal by ``on``; ``y_hat`` has shape (b, 1), ``factor`` (b, m)."""
        # Any shift will do that all workers share: one inside the predictions' range keeps phases, and so their
        # rounding errors, small.
        shifted = (y_hat - shift).T
        # Frequencies first: the faster layout for thin products.
        phases = torch.addmm(series.turns, series.frequencies, shifted, alpha=scale)  # (2f + 2, b)
        phi = _cosines(phases).mul_(series.roots)
        seen, diagonal = phi @ factor, _squares(factor)  # (2f + 2, m), ()
        if workers.size > 1:
            sums = workers.total(torch.cat([seen.flatten(), diagonal[None]]))
            seen, diagonal = sums[:-1].view_as(seen), sums[-1]
        pull = (seen.roll(seen.shape[0] // 2, 0) @ factor.T).mul_(phi)  # (2f + 2, b): sines meet cosines
        ctx.save_for_backward((series.slopes @ pull).T.mul_(2.0 * scale * off))
        # k_ii = 1 and is constant: the diagonal enters the value, never the gradient.
        return torch.add(diagonal * (on - off), _squares(seen), alpha=off)


def _reach(dtype: torch.dtype) -> float:
    """The distance at which exp(−d²) falls to rounding error."""
    return math.sqrt(-math.log(8 * torch.finfo(dtype).eps))


@lru_cache(maxsize=256)
def _series(n_frequencies: int, dtype: torch.dtype, device: torch.device) -> FourierSeries:
    # The number of frequencies fixes the period, so that steps of a training run find their series here.
    frequencies = torch.arange(n_frequencies + 1, dtype=torch.float64) * (2 * _reach(dtype) / n_frequencies)
    weights = torch.exp(-frequencies.square() / 4)
    weights[1:] *= 2
    roots = (weights / weights.sum()).sqrt()  # k(y, y) = 1 exactly
    quarter = torch.full_like(frequencies, -math.pi / 2)
    columns = FourierSeries(
        torch.cat([frequencies, frequencies])[:, None],
        torch.cat([torch.zeros_like(quarter), quarter])[:, None],
        torch.cat([roots, roots])[:, None],
        torch.cat([frequencies, -frequencies])[None, :],
    )
    return FourierSeries(*(column.to(device, dtype) for column in columns))


def _cosines(phases: Tensor) -> Tensor:
    if phases.dtype != torch.float32 or phases.is_cuda:
        return phases.cos_()
    # In single precision numpy's are three times as fast as torch's on a CPU.
    np.cos(phases.numpy(), out=phases.numpy())
    return phases


def _squares(matrix: Tensor) -> Tensor:
    flat = matrix.flatten()
    return flat.dot(flat)
