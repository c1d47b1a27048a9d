"""The Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ciplearn.kernels.base import StationaryKernel
from ciplearn.kernels.distances import median_of_pairs, squared_distances


@dataclass(frozen=True)
class Gaussian(StationaryKernel):
    """k(x, z) = exp(−d² / (2 ℓ²)) with d² the mean over columns of (x_c − z_c)².

    Parameters
    ----------
    lengthscale : float or "median"
        ℓ; ``"median"`` reads the median distance between rows off the data.
    average : bool
        Average squared differences over columns, so that ℓ means the same for any number of them; ``False`` sums.
    columns : sequence of int, optional
        The columns of the variable that this kernel reads; all of them by default.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian
    >>> x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> Gaussian(1.0).gram(x, x)
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]], dtype=torch.float64)
    """

    def scale(self, n_columns: int) -> float:
        """The factor c with k(x, z) = exp(−‖c x − c z‖²)."""
        return 1.0 / (self.width * math.sqrt(2.0 * self.divisor(n_columns)))

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        x, z = self.select(x), self.select(z)
        scale = self.scale(x.shape[1])
        return squared_distances(x * scale, z * scale).neg_().exp_()

    def median_distance(self, x: Tensor) -> float:
        """Square root of the median of d² over pairs."""
        return math.sqrt(median_of_pairs(squared_distances(x, x) / self.divisor(x.shape[1])))
