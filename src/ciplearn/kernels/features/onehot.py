"""Exact features of the kernel of categories."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn.kernels.base import Kernel
from ciplearn.kernels.categorical import Categorical
from ciplearn.kernels.features.base import FeatureMap, Features, ProductFeatures


@dataclass(frozen=True)
class OneHot(FeatureMap):
    """One feature per level, and one more, √ρ, where different levels are alike to degree ρ.

    A level that was not seen in fitting is unlike every level that was.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Categorical
    >>> from ciplearn.kernels import OneHot
    >>> codes = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    >>> OneHot().fit(Categorical(), codes)(codes)
    tensor([[1., 0.],
            [0., 1.],
            [1., 0.]], dtype=torch.float64)
    """

    def fit(self, kernel: Kernel, x: Tensor) -> Features:
        """Return exact features of a `Categorical` kernel on the levels in ``x``."""
        if not isinstance(kernel, Categorical):
            raise InputError(f"OneHot gives features of Categorical kernels, got {kernel!r}; use Nystroem for it.")
        chosen = range(x.shape[1]) if kernel.columns is None else kernel.columns
        parts: list[Features] = [_Levels(c, torch.unique(x[:, c]), kernel.mismatch) for c in chosen]
        return parts[0] if len(parts) == 1 else ProductFeatures(parts)


class _Levels(Features):
    def __init__(self, column: int, levels: Tensor, mismatch: float) -> None:
        self.column, self.levels, self.mismatch = column, levels, mismatch

    @property
    def size(self) -> int:
        return self.levels.numel() + (self.mismatch > 0)

    def __call__(self, x: Tensor) -> Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.float64
        equal = (x[:, self.column, None] == self.levels[None, :]).to(dtype)
        if not self.mismatch:
            return equal
        common = equal.new_full((equal.shape[0], 1), self.mismatch**0.5)
        return torch.cat([common, equal * (1 - self.mismatch) ** 0.5], dim=1)
