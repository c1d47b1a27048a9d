"""What a kernel is: a frozen value that turns rows into a Gram matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from torch import Tensor

from ciplearn._core.choices import check_flags, several
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tensors import as_rows

# Multiples of the median that compete when the length scale is chosen by leave-one-out error.
LENGTHSCALE_GRID = (0.125, 0.25, 0.5, 1.0, 2.0)


class Kernel(ABC):
    """A positive semi-definite similarity of rows; without more, one that has no length scale.

    A kernel is *open* while one of its length scales is ``"median"``; `resolve` returns the same kernel with that scale
    read off some rows. Kernels never change: they can be shared, compared and printed.

    Examples
    --------
    >>> from ciplearn import Gaussian
    >>> from ciplearn.kernels import Kernel
    >>> isinstance(Gaussian(1.0), Kernel), Gaussian().is_open
    (True, True)
    """

    columns: tuple[int, ...] | None = None
    average: bool = True  # whether what columns say is averaged over them, or summed
    takes_codes: bool = False  # whether rows may be whole numbers that stand for categories

    def __post_init__(self) -> None:
        check_flags(self, "average")
        if self.columns is None:
            return
        columns = (self.columns,) if isinstance(self.columns, int) else tuple(several(self.columns, "columns"))
        if not columns or any(isinstance(c, bool) or not isinstance(c, int) or c < 0 for c in columns):
            raise InputTypeError(
                f"columns must be column numbers from 0, got {self.columns!r}; pass for example columns=[0, 2]."
            )
        object.__setattr__(self, "columns", columns)

    def __call__(self, x: Any, z: Any = None) -> Tensor:
        """Return the Gram matrix k(x_i, z_j), shape (n, m); with one argument, k(x_i, x_j)."""
        x = as_rows(x, "x", integers=self.takes_codes)
        if z is None:
            return self.resolve(x).gram(x, x)
        z = as_rows(z, "z", integers=self.takes_codes)
        if x.shape[1] != z.shape[1]:
            raise InputError(
                f"x and z must have the same columns, got {x.shape[1]} and {z.shape[1]}; "
                f"pass the same variables to both."
            )
        return self.resolve(x).gram(x, z)

    @property
    def is_open(self) -> bool:
        """Whether a length scale is still to be read off data."""
        return False

    def resolve(self, x: Tensor) -> Self:  # (n, d)
        """Return this kernel with every open length scale read off the rows of ``x``."""
        return self

    def with_lengthscale(self, lengthscale: float) -> Self:
        """Return this kernel with every open length scale set to a number."""
        return self

    def widened(self, factor: float) -> Self:
        """Return this resolved kernel with its length scales multiplied by ``factor``."""
        return self

    @abstractmethod
    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the resolved kernel, differentiably, without checks."""

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:  # (n, d) -> (n,)
        """Evaluate k(x_i, x_i)."""

    def divisor(self, n_columns: int) -> int:
        """The number of columns if the kernel averages over them, 1 if it sums."""
        return n_columns if self.average else 1

    def candidates(self, x: Tensor) -> tuple[Self, ...]:  # (n, d)
        """Return the resolved kernels among which leave-one-out error may choose."""
        resolved = self.resolve(x)
        if not self.is_open:
            return (resolved,)
        return tuple(self._open_part_widened(resolved, factor) for factor in LENGTHSCALE_GRID)

    def _open_part_widened(self, resolved: Self, factor: float) -> Self:
        return resolved.widened(factor)

    def select(self, x: Tensor) -> Tensor:  # (n, d) -> (n, d')
        """Return the columns that this kernel reads."""
        if self.columns is None:
            return x
        if max(self.columns) >= x.shape[-1]:
            raise InputError(
                f"{self} reads column {max(self.columns)}, but the variable has {x.shape[-1]} columns; "
                f"number columns from 0."
            )
        # Not by a list of places: that is copied to a CUDA device, which a recorded step must not do.
        return torch.stack([x[..., column] for column in self.columns], dim=-1)
