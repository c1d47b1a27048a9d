"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ciplearn._core.flags import check_flags
from ciplearn.kernels.base import ScalelessKernel, checked_columns


@dataclass(frozen=True)
class Linear(ScalelessKernel):
    """k(x, z) = mean over columns of x_c z_c.

    As the kernel of a prediction it sees dependence of the conditional *mean* only: enough for the variance of
    counterfactuals of a point predictor, blind to the rest of the distribution.

    Parameters
    ----------
    average : bool
        Average products over columns; ``False`` sums.
    columns : sequence of int, optional
        The columns of the variable that this kernel reads; all of them by default.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Linear
    >>> x = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    >>> Linear().gram(x, x)
    tensor([[1., 2.],
            [2., 4.]], dtype=torch.float64)
    """

    average: bool = True
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_flags(self, "average")
        object.__setattr__(self, "columns", checked_columns(self.columns))

    @property
    def takes_codes(self) -> bool:
        """Products of codes mean nothing."""
        return False

    def divisor(self, n_columns: int) -> int:
        """The number of columns if products are averaged over them, 1 if they are summed."""
        return n_columns if self.average else 1

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        x, z = self.select(x), self.select(z)
        return x @ z.T / self.divisor(x.shape[1])

    def diagonal(self, x: Tensor) -> Tensor:
        """Mean squares."""
        x = self.select(x)
        return x.square().sum(1) / self.divisor(x.shape[1])
