"""The kernel of categories."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import non_negative
from ciplearn.kernels.base import ScalelessKernel, checked_columns


@dataclass(frozen=True)
class Categorical(ScalelessKernel):
    """k(x, z) = Π over columns of (1 if x_c = z_c, else ρ).

    With ρ = 0 this is the delta kernel: rows are alike if they agree in every column. With several columns of many
    levels hardly two rows agree in all; 0 < ρ < 1 then lets rows that agree in most columns speak to each other, and
    keeps the kernel characteristic.

    Parameters
    ----------
    mismatch : float
        ρ, the similarity of two different levels, 0 ≤ ρ < 1.
    columns : sequence of int, optional
        The columns of the variable that this kernel reads; all of them by default.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Categorical
    >>> codes = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    >>> Categorical().gram(codes, codes)
    tensor([[1., 0., 1.],
            [0., 1., 0.],
            [1., 0., 1.]], dtype=torch.float64)
    """

    mismatch: float = 0.0
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mismatch", non_negative(self.mismatch, "mismatch"))
        if self.mismatch >= 1:
            raise InputError(f"mismatch must be below 1, got {self.mismatch!r}; at 1 all levels would be alike.")
        object.__setattr__(self, "columns", checked_columns(self.columns))

    @property
    def takes_codes(self) -> bool:
        """Codes are what this kernel reads."""
        return True

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel; codes give the result in double precision."""
        x, z = self.select(x), self.select(z)
        total = self._column_gram(x[:, 0], z[:, 0])
        for column in range(1, x.shape[1]):
            total = total * self._column_gram(x[:, column], z[:, column])
        return total

    def _column_gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n,), (m,) -> (n, m)
        equal = (x[:, None] == z[None, :]).to(_real_dtype(x))
        return equal * (1 - self.mismatch) + self.mismatch if self.mismatch else equal

    def diagonal(self, x: Tensor) -> Tensor:
        """A row agrees with itself."""
        return torch.ones(x.shape[0], dtype=_real_dtype(x), device=x.device)


def _real_dtype(codes: Tensor) -> torch.dtype:
    return codes.dtype if codes.is_floating_point() else torch.float64
