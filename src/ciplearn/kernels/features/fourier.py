"""Random Fourier features [rahimi2007]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import whole
from ciplearn.kernels.base import Kernel, StationaryKernel
from ciplearn.kernels.categorical import Categorical
from ciplearn.kernels.combined import Product, Sum
from ciplearn.kernels.features.base import FeatureMap, Features, ProductFeatures, SumFeatures
from ciplearn.kernels.features.onehot import OneHot
from ciplearn.kernels.gaussian import Gaussian
from ciplearn.kernels.laplace import Laplace


@dataclass(frozen=True)
class RandomFourier(FeatureMap):
    """φ(x) = (cos ηᵀx, sin ηᵀx) / √m over m random frequencies η drawn from the kernel's spectral law.

    η ~ N(0, ℓ⁻² I) for the Gaussian kernel, independent Cauchy(0, 1/ℓ) for the Laplace kernel, with ℓ² (or ℓ) times the
    number of columns where distances are averaged. Cosines and sines together converge to k; cosines alone do not.
    Categorical parts of a product or sum get their exact one-hot features.

    Parameters
    ----------
    n_features : int
        The number of features per stationary kernel, an even number 2 m.
    seed : int
        Of the frequencies; the same seed gives the same features on every device.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian, RandomFourier
    >>> draw = torch.Generator().manual_seed(0)
    >>> x = torch.randn(20, 1, generator=draw, dtype=torch.float64)
    >>> features = RandomFourier(2000).fit(Gaussian(1.0), x)(x)
    >>> bool((features @ features.T - Gaussian(1.0).gram(x, x)).abs().max() < 0.1)
    True
    """

    n_features: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.n_features, "n_features", minimum=2)
        if self.n_features % 2:
            raise InputError(
                f"n_features must be even, got {self.n_features}; each frequency gives a cosine and a sine."
            )

    def fit(self, kernel: Kernel, x: Tensor) -> Features:
        """Draw frequencies for ``kernel``."""
        generator = torch.Generator().manual_seed(self.seed)
        return self._fit(kernel.resolve(x), x, generator)

    def _fit(self, kernel: Kernel, x: Tensor, generator: torch.Generator) -> Features:
        if isinstance(kernel, Product):
            return ProductFeatures([self._fit(part, x, generator) for part in kernel.parts])
        if isinstance(kernel, Sum):
            return SumFeatures([self._fit(part, x, generator) for part in kernel.parts])
        if isinstance(kernel, Categorical):
            return OneHot().fit(kernel, x)
        if isinstance(kernel, Gaussian | Laplace):
            return _CosinesAndSines(kernel, kernel.select(x), self.n_features // 2, generator)
        raise InputError(f"{kernel!r} has no random Fourier features; use Nystroem, which takes any kernel.")


class _CosinesAndSines(Features):
    def __init__(self, kernel: StationaryKernel, x: Tensor, n_frequencies: int, generator: torch.Generator) -> None:
        shape = (x.shape[1], n_frequencies)
        divisor = kernel.divisor(x.shape[1])
        if isinstance(kernel, Gaussian):
            standard = torch.randn(shape, generator=generator, dtype=torch.float64) / divisor**0.5
        else:
            standard = torch.empty(shape, dtype=torch.float64).cauchy_(generator=generator) / divisor
        self.kernel = kernel
        self.frequencies = (standard / kernel.width).to(x)
        # Phases are periodic: near the origin their rounding error is smallest.
        self.centre = x.mean(dim=0)

    @property
    def size(self) -> int:
        return 2 * self.frequencies.shape[1]

    def __call__(self, x: Tensor) -> Tensor:
        phase = (self.kernel.select(x) - self.centre) @ self.frequencies
        return torch.cat([phase.cos(), phase.sin()], dim=1) / self.frequencies.shape[1] ** 0.5
