"""⟨K_Ŷ, V Vᵀ⟩ for a Gaussian kernel on scalar predictions, in time linear in the batch.

On a bounded range the Gaussian is, to rounding error, a short Fourier series. With s = c y, differences within ±r and a
period T > r,

    exp(−d²) = Σ_f a_f cos(ω_f d),   ω_f = 2π f / T,   a_f = (√π / T) exp(−ω_f² / 4) · (1 if f = 0 else 2),

up to exp(−(T − r)²) from the neighbouring periods and exp(−ω²/4) from the first term left out. Since
cos(ω(s_i − s_j)) = cos ωs_i cos ωs_j + sin ωs_i sin ωs_j, the kernel matrix is Φ Φᵀ with 2f + 1 columns and the inner
product is ‖Vᵀ Φ‖²: no matrix of size b × b appears. These are not random features: the error is that of the arithmetic.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.workers import Workers
from ciplearn.penalties.fused import GradientFromForward

# Beyond this many frequencies times columns per row of the batch, a pass over the block is faster; the second where the
# block is at hand and not rebuilt from vectors.
_WORTH, _WORTH_BESIDE_BLOCK = 50, 11


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
    period = spread + reach
    n_frequencies = math.ceil(reach * period / math.pi)
    if n_frequencies * n_columns > (_WORTH_BESIDE_BLOCK if has_block else _WORTH) * size:
        return None
    return _series(n_frequencies, y_hat.dtype, y_hat.device)


class FourierInnerProduct(GradientFromForward):
    """Value ‖Vᵀ Φ‖², gradient 2 ⟨V Vᵀ Φ, ∂Φ/∂s⟩.

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
    """Take cosines in place."""
    if phases.dtype != torch.float32 or phases.is_cuda:
        return phases.cos_()
    # In single precision numpy's are three times as fast as torch's on a CPU.
    np.cos(phases.numpy(), out=phases.numpy())
    return phases


def _squares(matrix: Tensor) -> Tensor:
    flat = matrix.flatten()
    return flat.dot(flat)
