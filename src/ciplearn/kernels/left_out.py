"""Leave-one-out errors of ridge regressions, for many ridges and targets at once and without a refit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# What is left of a row's weight in its own prediction is at least this: a row alone in its direction explains itself.
_LEAST = 1e-9

# Targets taken together: enough for fast products, few enough to fit in memory.
_TARGETS = 8


@dataclass(frozen=True)
class LeftOut:
    """Regressions on rows z_i whose sum Σ z_i z_iᵀ = diag(e), one for each nλ.

    Fitted without its own row, a target is off by (f_i − f̂_i) / (1 − h_i) with h_i = Σ_k z_ik² / (e_k + nλ).
    """

    scores: Tensor  # (m, p): z of all rows, or of some of them
    values: Tensor  # (p,): e
    loadings: Tensor  # (r,): nλ
    fixed: Tensor | float = 0.0  # (m,): what each row adds to h besides, such as its share of an intercept

    @cached_property
    def inverse(self) -> Tensor:  # (p, r)
        """1 / (e + nλ)."""
        return 1.0 / (self.values[:, None] + self.loadings)

    @cached_property
    def rest(self) -> Tensor:  # (m, r)
        """1 − h."""
        return rest_of((self.scores.square() @ self.inverse).T + self.fixed).T

    def residuals(self, targets: Tensor, cross: Tensor, ridge: int) -> Tensor:  # (m, q), (p, q) -> (m, q)
        """Return what targets are off by at one of the ridges; ``cross`` is Σ z_i f_iᵀ over all rows."""
        fitted = self.scores @ (self.inverse[:, ridge, None] * cross)
        return (targets - fitted) / self.rest[:, ridge, None]

    def errors(self, targets: Tensor, cross: Tensor) -> Tensor:  # (m, q), (p, q) -> (r, q)
        """Return the mean squares of `residuals` for all ridges."""
        parts = []
        for wanted, along in zip(targets.split(_TARGETS, dim=1), cross.split(_TARGETS, dim=1), strict=True):
            fitted = self.scores @ (self.inverse[:, :, None] * along[:, None]).flatten(1)  # (m, r · q)
            left = (wanted[:, None] - fitted.unflatten(1, (-1, wanted.shape[1]))) / self.rest[:, :, None]
            parts.append(left.square().mean(dim=0))
        return torch.cat(parts, dim=1)


def rest_of(leverages: Tensor) -> Tensor:
    """1 − h, kept away from zero."""
    return (1 - leverages).clamp_min(_LEAST)
