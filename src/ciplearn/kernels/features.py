"""Feature maps: short vectors whose inner products approximate a kernel."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.arguments import non_negative, whole
from ciplearn._core.errors import InputError
from ciplearn.kernels.kernels import Categorical, Gaussian, Kernel, Laplace, Product, Sum, real_dtype, sample_rows
from ciplearn.kernels.ridge import inverse_root, pivoted_cholesky

# Landmarks are sought among this many rows.
_CANDIDATE_ROWS = 4096


class Features(ABC):
    """A fitted map φ with φ(x)·φ(z) ≈ k(x, z).

    >>> import torch
    >>> from ciplearn import Gaussian, RandomFourier
    >>> RandomFourier(8).fit(Gaussian(1.0), torch.zeros(4, 1)).size
    8
    """

    size: int  # the number of features

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:  # (n, d) -> (n, size)
        """Map rows to features."""


class FeatureMap(ABC):
    """A recipe for features of a kernel; fitting it on rows gives the map.

    >>> import torch
    >>> from ciplearn import Gaussian, Nystroem
    >>> Nystroem(8).fit(Gaussian(1.0), torch.zeros(4, 1)).size
    1
    """

    @abstractmethod
    def fit(self, kernel: Kernel, x: Tensor) -> Features:  # (n, d)
        """Return features of ``kernel``, resolved on the rows of ``x`` if it is open."""


class _JoinedFeatures(Features):
    """Features of a product of kernels, φ_1(x) ⊗ φ_2(x) ⊗ ... row by row, or of a sum, (φ_1(x), φ_2(x), ...)."""

    def __init__(self, parts: list[Features], *, product: bool) -> None:
        self.parts, self.product = parts, product
        self.size = (math.prod if product else sum)(part.size for part in parts)

    def __call__(self, x: Tensor) -> Tensor:
        total, *others = (part(x) for part in self.parts)
        if not self.product:
            return torch.cat([total, *others], dim=1)
        for other in others:
            total = (total[:, :, None] * other[:, None, :]).flatten(1)
        return total


@dataclass(frozen=True)
class OneHot(FeatureMap):
    """One feature per level, and one more, √ρ, where different levels are alike to degree ρ.

    A level that was not seen in fitting is unlike every level that was.

    >>> import torch
    >>> from ciplearn.kernels import Categorical, OneHot
    >>> codes = torch.tensor([[0.0], [1.0], [0.0]])
    >>> OneHot().fit(Categorical(), codes)(codes).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def fit(self, kernel: Kernel, x: Tensor) -> Features:
        """Return exact features of a `Categorical` kernel on the levels in ``x``."""
        if not isinstance(kernel, Categorical):
            raise InputError(f"OneHot gives features of Categorical kernels, got {kernel!r}; use Nystroem for it.")
        columns = range(x.shape[1]) if kernel.columns is None else kernel.columns
        parts: list[Features] = [_Levels(c, torch.unique(x[:, c]), kernel.mismatch) for c in columns]
        return parts[0] if len(parts) == 1 else _JoinedFeatures(parts, product=True)


class _Levels(Features):
    def __init__(self, column: int, levels: Tensor, mismatch: float) -> None:
        self.column, self.levels, self.mismatch = column, levels, mismatch
        self.size = levels.numel() + (mismatch > 0)

    def __call__(self, x: Tensor) -> Tensor:
        equal = (x[:, self.column, None] == self.levels[None, :]).to(real_dtype(x))
        if not self.mismatch:
            return equal
        common = equal.new_full((equal.shape[0], 1), self.mismatch**0.5)
        return torch.cat([common, equal * (1 - self.mismatch) ** 0.5], dim=1)


@dataclass(frozen=True)
class RandomFourier(FeatureMap):
    """φ(x) = (cos ηᵀx, sin ηᵀx) / √m over m random frequencies η drawn from the kernel's spectral law.

    η ~ N(0, ℓ⁻² I) for the Gaussian kernel, independent Cauchy(0, 1/ℓ) for the Laplace kernel, with ℓ² (or ℓ) times the
    number of columns where distances are averaged. Cosines and sines together converge to k, cosines alone do not
    [rahimi2007]. Categorical parts of a product or sum get their exact one-hot features.

    ``n_features``: 2 m for each stationary kernel, an even number; one ``seed`` has the same features on every device.

    >>> import torch
    >>> from ciplearn import Gaussian, RandomFourier
    >>> x = torch.linspace(-2, 2, 20)[:, None]
    >>> features = RandomFourier(2000).fit(Gaussian(1.0), x)(x)
    >>> bool((features @ features.T - Gaussian(1.0)(x)).abs().max() < 0.1)
    True
    """

    n_features: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.n_features, "n_features", minimum=2)
        if self.n_features % 2:
            raise InputError(f"n_features must be even, got {self.n_features}; a frequency gives a cosine and a sine.")

    def fit(self, kernel: Kernel, x: Tensor) -> Features:
        """Draw frequencies for ``kernel``."""
        return self._fit(kernel.resolve(x), x, torch.Generator().manual_seed(self.seed))

    def _fit(self, kernel: Kernel, x: Tensor, generator: torch.Generator) -> Features:
        if isinstance(kernel, Product | Sum):
            parts = [self._fit(part, x, generator) for part in kernel.parts]
            return _JoinedFeatures(parts, product=isinstance(kernel, Product))
        if isinstance(kernel, Categorical):
            return OneHot().fit(kernel, x)
        if isinstance(kernel, Gaussian | Laplace):
            return _CosinesAndSines(kernel, kernel.select(x), self.n_features // 2, generator)
        raise InputError(f"{kernel!r} has no random Fourier features; use Nystroem, which takes any kernel.")


class _CosinesAndSines(Features):
    def __init__(self, kernel: Gaussian | Laplace, x: Tensor, n_frequencies: int, generator: torch.Generator) -> None:
        shape = (x.shape[1], n_frequencies)
        divisor = kernel.divisor(x.shape[1])
        if isinstance(kernel, Gaussian):
            standard = torch.randn(shape, generator=generator, dtype=torch.float64) / divisor**0.5
        else:
            standard = torch.empty(shape, dtype=torch.float64).cauchy_(generator=generator) / divisor
        self.kernel, self.size = kernel, 2 * n_frequencies
        self.frequencies = (standard / kernel.width).to(x)
        # Phases are periodic: near the origin their rounding error is smallest.
        self.centre = x.mean(dim=0)

    def __call__(self, x: Tensor) -> Tensor:
        phase = (self.kernel.select(x) - self.centre) @ self.frequencies
        return torch.cat([phase.cos(), phase.sin()], dim=1) / self.frequencies.shape[1] ** 0.5


@dataclass(frozen=True)
class Nystroem(FeatureMap):
    """φ(x) = K_ZZ^(−1/2) k_Z(x), the projection of any kernel on landmark rows Z.

    Each landmark is drawn with probability proportional to what the earlier ones leave unexplained, so duplicated rows
    are drawn once and rare categories are not missed. Drawing stops at ``n_features`` landmarks, or once the share of
    the kernel's trace that is unexplained falls below ``tolerance``; ``seed`` is that of the draws.

    >>> import torch
    >>> from ciplearn import Gaussian, Nystroem
    >>> x = torch.linspace(-2, 2, 20)[:, None]
    >>> features = Nystroem(20).fit(Gaussian(1.0), x)(x)
    >>> bool((features @ features.T - Gaussian(1.0)(x)).abs().max() < 1e-3)
    True
    """

    n_features: int = 256
    tolerance: float = 1e-9
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.n_features, "n_features", minimum=1)
        non_negative(self.tolerance, "tolerance")

    def fit(self, kernel: Kernel, x: Tensor) -> Features:
        """Choose landmarks among the rows of ``x``."""
        kernel = kernel.resolve(x)
        pool = x[sample_rows(x.shape[0], _CANDIDATE_ROWS, self.seed).to(x.device)]

        def column(pivot: int) -> Tensor:
            return kernel.gram(pool, pool[pivot : pivot + 1])[:, 0]

        generator = torch.Generator().manual_seed(self.seed)
        pivots, _ = pivoted_cholesky(kernel.diagonal(pool), column, self.n_features, self.tolerance, generator)
        # A kernel that is zero on every row still needs one landmark to have features.
        return Projection(kernel, pool[pivots] if pivots.numel() else pool[:1])


class Projection(Features):
    """The projection of a resolved kernel on some landmarks."""

    def __init__(self, kernel: Kernel, landmarks: Tensor) -> None:
        self.kernel, self.landmarks = kernel, landmarks
        self.whitener = inverse_root(kernel.gram(landmarks, landmarks))
        self.size = self.whitener.shape[1]

    def __call__(self, x: Tensor) -> Tensor:
        """φ(x)."""
        similarity = self.kernel.gram(x, self.landmarks)
        return similarity @ self.whitener.to(similarity.dtype)
