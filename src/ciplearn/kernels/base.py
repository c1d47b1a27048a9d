"""What a kernel is: a frozen value that turns rows into a Gram matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from ciplearn._core.choices import several
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.flags import check_flags
from ciplearn._core.numbers import positive
from ciplearn._core.tensors import as_rows
from ciplearn.kernels.distances import MEDIAN_ROWS, sample_rows

# Multiples of the median that compete when the length scale is chosen by leave-one-out error.
LENGTHSCALE_GRID = (0.125, 0.25, 0.5, 1.0, 2.0)


class Kernel(ABC):
    """A positive semi-definite similarity of rows.

    A kernel is *open* while one of its length scales is ``"median"``; `resolve` returns the same kernel with that scale
    read off some rows. Kernels never change: they can be shared, compared and printed.

    Examples
    --------
    >>> from ciplearn import Gaussian
    >>> from ciplearn.kernels import Kernel
    >>> isinstance(Gaussian(1.0), Kernel), Gaussian().is_open
    (True, True)
    """

    columns: tuple[int, ...] | None

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
    @abstractmethod
    def takes_codes(self) -> bool:
        """Whether rows may be whole numbers that stand for categories."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether a length scale is still to be read off data."""

    @abstractmethod
    def resolve(self, x: Tensor) -> Self:  # (n, d)
        """Return this kernel with every open length scale read off the rows of ``x``."""

    @abstractmethod
    def with_lengthscale(self, lengthscale: float) -> Self:
        """Return this kernel with every open length scale set to a number."""

    @abstractmethod
    def widened(self, factor: float) -> Self:
        """Return this resolved kernel with its length scales multiplied by ``factor``."""

    @abstractmethod
    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the resolved kernel, differentiably, without checks."""

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:  # (n, d) -> (n,)
        """Evaluate k(x_i, x_i)."""

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


@dataclass(frozen=True)
class StationaryKernel(Kernel, ABC):
    """A kernel with one length scale, a function of a distance between rows."""

    lengthscale: float | str = "median"
    average: bool = True
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lengthscale, str):
            if self.lengthscale != "median":
                raise InputError(
                    f"lengthscale must be a number or 'median', got {self.lengthscale!r}; pass one of these."
                )
        else:
            object.__setattr__(self, "lengthscale", positive(self.lengthscale, "lengthscale"))
        check_flags(self, "average")
        object.__setattr__(self, "columns", checked_columns(self.columns))

    @property
    def takes_codes(self) -> bool:
        """Codes of categories have no distance."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether the length scale is still ``"median"``."""
        return self.lengthscale == "median"

    def resolve(self, x: Tensor) -> Self:
        """Return this kernel with the median distance between rows of ``x`` as its length scale, if it is open."""
        if not self.is_open:
            return self
        rows = self.select(x.detach())
        rows = rows[sample_rows(rows.shape[0], MEDIAN_ROWS, seed=0).to(rows.device)].double()
        return self.with_lengthscale(self.median_distance(rows))

    def with_lengthscale(self, lengthscale: float) -> Self:
        """Return this kernel with a number for its length scale, if it is open."""
        return replace(self, lengthscale=lengthscale) if self.is_open else self

    def widened(self, factor: float) -> Self:
        """Return this kernel with its length scale multiplied by ``factor``."""
        return replace(self, lengthscale=self.width * factor)

    def diagonal(self, x: Tensor) -> Tensor:
        """A row is at distance zero from itself."""
        return x.new_ones(x.shape[0])

    @property
    def width(self) -> float:
        """The length scale as a number; the kernel must be resolved."""
        if isinstance(self.lengthscale, str):
            raise InputError(f"{self} has no number for a length scale yet; call resolve(x) first.")
        return self.lengthscale

    def divisor(self, n_columns: int) -> int:
        """The number of columns if distances are averaged over them, 1 if they are summed."""
        return n_columns if self.average else 1

    @abstractmethod
    def median_distance(self, x: Tensor) -> float:  # (n, d)
        """Median over pairs of rows of the distance that the length scale divides."""


class ScalelessKernel(Kernel, ABC):
    """A kernel without a length scale."""

    @property
    def is_open(self) -> bool:
        """There is no length scale to read off."""
        return False

    def resolve(self, x: Tensor) -> Self:
        """Return the kernel itself."""
        return self

    def with_lengthscale(self, lengthscale: float) -> Self:
        """Return the kernel itself."""
        return self

    def widened(self, factor: float) -> Self:
        """Return the kernel itself."""
        return self


def checked_columns(columns: Sequence[int] | int | None) -> tuple[int, ...] | None:
    """Return column numbers as a tuple, or raise."""
    if columns is None:
        return None
    if isinstance(columns, int):
        columns = (columns,)
    chosen = tuple(several(columns, "columns"))
    if not chosen or any(isinstance(c, bool) or not isinstance(c, int) or c < 0 for c in chosen):
        raise InputTypeError(
            f"columns must be column numbers from 0, got {columns!r}; pass for example columns=[0, 2]."
        )
    return chosen
