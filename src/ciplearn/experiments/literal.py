"""HSCIC evaluated literally, one ridge solve per row: what the prepared operator is measured against."""

from __future__ import annotations

import torch
from torch import Tensor

from ciplearn.kernels import Gaussian
from ciplearn.kernels.ridge import loading


def literal_hscic(
    y_hat: Tensor, right: Tensor, given: Tensor, *, lengthscale: float, ridge: float, rows: range | None = None
) -> Tensor:
    """Mean over rows of ‖μ̂_{Ŷ,R|s_i} − μ̂_{Ŷ|s_i} ⊗ μ̂_{R|s_i}‖², with the weights solved anew for each row.

    ``y_hat``, ``right``, ``given``: (n, d). ``lengthscale``: of all three Gaussian kernels. ``ridge``: λ. ``rows``:
    evaluate these rows only: each costs the same, so a few tell what all would.
    """
    kernel = Gaussian(lengthscale)
    n = y_hat.shape[0]
    k_y, k_r, k_s = (kernel.gram(part, part) for part in (y_hat, right, given))
    chosen = range(n) if rows is None else rows
    total = y_hat.new_zeros(())
    for i in chosen:
        loaded = k_s + loading(n, ridge) * torch.eye(n, dtype=k_s.dtype, device=k_s.device)
        w = torch.linalg.solve(loaded, k_s[:, i])
        joint = w @ (k_y * k_r) @ w
        mixed = w @ ((k_y @ w) * (k_r @ w))
        apart = (w @ k_y @ w) * (w @ k_r @ w)
        total = total + joint - 2 * mixed + apart
    return total / len(chosen)
