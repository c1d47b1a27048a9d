"""Nyström features on landmarks found by randomly pivoted Cholesky [chen2025]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.numbers import non_negative, whole
from ciplearn.kernels.base import Kernel
from ciplearn.kernels.cholesky import pivoted_cholesky
from ciplearn.kernels.distances import sample_rows
from ciplearn.kernels.eigen import inverse_root
from ciplearn.kernels.features.base import FeatureMap, Features

# Landmarks are sought among this many rows.
_CANDIDATE_ROWS = 4096


@dataclass(frozen=True)
class Nystroem(FeatureMap):
    """φ(x) = K_ZZ^(−1/2) k_Z(x), the projection of any kernel on landmark rows Z.

    Each landmark is drawn with probability proportional to what the earlier ones leave unexplained, so duplicated rows
    are drawn once and rare categories are not missed; drawing stops early once nothing is left to explain.

    Parameters
    ----------
    n_features : int
        The largest number of landmarks.
    tolerance : float
        Stop when the unexplained share of the kernel's trace falls below it.
    seed : int
        Of the draws.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian, Nystroem
    >>> draw = torch.Generator().manual_seed(0)
    >>> x = torch.randn(20, 1, generator=draw, dtype=torch.float64)
    >>> features = Nystroem(20).fit(Gaussian(1.0), x)(x)
    >>> bool((features @ features.T - Gaussian(1.0).gram(x, x)).abs().max() < 1e-3)
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
        return Projection(kernel, pool[self._landmarks(kernel, pool)])

    def _landmarks(self, kernel: Kernel, pool: Tensor) -> Tensor:  # (n, d) -> (m,)
        def column(pivot: int) -> Tensor:
            return kernel.gram(pool, pool[pivot : pivot + 1])[:, 0]

        generator = torch.Generator().manual_seed(self.seed)
        pivots, _ = pivoted_cholesky(kernel.diagonal(pool), column, self.n_features, self.tolerance, generator)
        # A kernel that is zero on every row still needs one landmark to have features.
        return pivots if pivots.numel() else torch.zeros(1, dtype=torch.int64, device=pool.device)


class Projection(Features):
    """The projection of a resolved kernel on some landmarks."""

    def __init__(self, kernel: Kernel, landmarks: Tensor) -> None:
        self.kernel, self.landmarks = kernel, landmarks
        self.whitener = inverse_root(kernel.gram(landmarks, landmarks))

    @property
    def size(self) -> int:
        """The rank of the landmarks' Gram matrix."""
        return self.whitener.shape[1]

    def __call__(self, x: Tensor) -> Tensor:
        """φ(x)."""
        similarity = self.kernel.gram(x, self.landmarks)
        return similarity @ self.whitener.to(similarity.dtype)
