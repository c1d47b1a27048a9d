"""What a feature map is: rows to short vectors whose inner products approximate a kernel."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from ciplearn.kernels.base import Kernel


class Features(ABC):
    """A fitted map φ with φ(x)·φ(z) ≈ k(x, z).

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian, RandomFourier
    >>> from ciplearn.kernels import Features
    >>> features = RandomFourier(8).fit(Gaussian(1.0), torch.zeros(4, 1))
    >>> isinstance(features, Features), features.size
    (True, 8)
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of features."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:  # (n, d) -> (n, size)
        """Map rows to features."""


class FeatureMap(ABC):
    """A recipe for features of a kernel; fitting it on rows gives the map.

    Examples
    --------
    >>> from ciplearn import Nystroem, RandomFourier
    >>> from ciplearn.kernels import FeatureMap
    >>> isinstance(Nystroem(8), FeatureMap), isinstance(RandomFourier(8), FeatureMap)
    (True, True)
    """

    @abstractmethod
    def fit(self, kernel: Kernel, x: Tensor) -> Features:  # (n, d)
        """Return features of ``kernel``, resolved on the rows of ``x`` if it is open."""


class ProductFeatures(Features):
    """φ(x) = φ_1(x) ⊗ φ_2(x) ⊗ ..., the row-wise Kronecker product: features of a product of kernels."""

    def __init__(self, parts: list[Features]) -> None:
        self.parts = parts

    @property
    def size(self) -> int:
        """Product of the parts' sizes."""
        return math.prod(part.size for part in self.parts)

    def __call__(self, x: Tensor) -> Tensor:
        """Map rows to features."""
        total = self.parts[0](x)
        for part in self.parts[1:]:
            total = (total[:, :, None] * part(x)[:, None, :]).flatten(1)
        return total


class SumFeatures(Features):
    """φ(x) = (φ_1(x), φ_2(x), ...): features of a sum of kernels."""

    def __init__(self, parts: list[Features]) -> None:
        self.parts = parts

    @property
    def size(self) -> int:
        """Sum of the parts' sizes."""
        return sum(part.size for part in self.parts)

    def __call__(self, x: Tensor) -> Tensor:
        """Map rows to features."""
        return torch.cat([part(x) for part in self.parts], dim=1)
