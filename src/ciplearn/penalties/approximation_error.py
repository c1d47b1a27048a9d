"""How far the gradient of an approximate operator points away from that of the exact one.

Training follows gradients, so that is what counts: large parts of Q act on no prediction that a network would make.
The comparison is made on some rows and for predictions of the kind that networks make, smooth functions of R and S.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ciplearn.kernels import Gaussian
from ciplearn.penalties.fused import GaussianBlockProduct

# The comparison is made on this many rows, whose Gram matrices can be had.
CHECKED_ROWS = 1024

_PREDICTIONS = 4

# For predictions of unit variance, as the estimators choose it.
_KERNEL = Gaussian(2**0.5)


def smooth_predictions(*grams: Tensor) -> Tensor:  # (m, m) each -> (k, m)
    """Noise that is smoothed by each Gram matrix, in equal shares, with unit variance."""
    generator = torch.Generator().manual_seed(0)
    total = grams[0].new_zeros(grams[0].shape[0], _PREDICTIONS)
    for gram in grams:
        noise = torch.randn(gram.shape[0], _PREDICTIONS, generator=generator, dtype=torch.float64)
        total += _standardised(gram @ noise.to(gram))
    return _standardised(total).T


def gradient_error(approximate: Tensor, exact: Tensor, predictions: Tensor) -> float:  # (m, m), (m, m), (k, m)
    """√(1 − c²) for the cosine c between the gradients of ⟨K_Ŷ, Q⟩, in the mean over the predictions.

    That is ‖s g̃ − g‖ / ‖g‖ with the scale s that fits best: a gradient of another length only means another gamma.
    """
    near, true = _gradients(approximate, predictions), _gradients(exact, predictions)
    lengths = near.square().sum(dim=1) * true.square().sum(dim=1)
    squared = (near * true).sum(dim=1).square() / lengths.clamp_min(torch.finfo(lengths.dtype).tiny)
    # Where there is no gradient, there is none to miss.
    missed = torch.where(true.abs().amax(dim=1) > 0, 1 - squared, torch.zeros_like(squared))
    return float(missed.clamp_min(0).mean().sqrt())


def _gradients(matrix: Tensor, predictions: Tensor) -> Tensor:  # (m, m), (k, m) -> (k, m)
    found = []
    # One after the other: each needs several matrices of the size of the block.
    for prediction in predictions.to(matrix):
        with torch.enable_grad():
            y_hat = prediction[:, None].requires_grad_()
            value = GaussianBlockProduct.apply(y_hat, matrix, _KERNEL.scale(1), 1.0, 1.0)
            found.append(torch.autograd.grad(value, y_hat)[0][:, 0])
    return torch.stack(found)


def _standardised(columns: Tensor) -> Tensor:  # (m, k)
    centred = columns - columns.mean(dim=0)
    spread = centred.square().mean(dim=0).sqrt()
    return torch.where(spread > 0, centred / spread.clamp_min(torch.finfo(spread.dtype).tiny), 0.0)
