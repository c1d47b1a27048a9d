"""The Laplace kernel."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ciplearn.kernels.base import StationaryKernel
from ciplearn.kernels.distances import absolute_distances, median_of_pairs


@dataclass(frozen=True)
class Laplace(StationaryKernel):
    """k(x, z) = exp(−d / ℓ) with d the mean over columns of ``|x_c − z_c|``.

    Parameters
    ----------
    lengthscale : float or "median"
        ℓ; ``"median"`` reads the median distance between rows off the data.
    average : bool
        Average absolute differences over columns; ``False`` sums.
    columns : sequence of int, optional
        The columns of the variable that this kernel reads; all of them by default.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Laplace
    >>> x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> Laplace(1.0).gram(x, x)
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]], dtype=torch.float64)
    """

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        x, z = self.select(x), self.select(z)
        return absolute_distances(x, z).div(-self.width * self.divisor(x.shape[1])).exp()

    def median_distance(self, x: Tensor) -> float:
        """Median of d over pairs."""
        return median_of_pairs(absolute_distances(x, x) / self.divisor(x.shape[1]))
