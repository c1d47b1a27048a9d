"""Products and sums of kernels, for variables whose columns are of different kinds."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Self

from torch import Tensor

from ciplearn._core.errors import InputTypeError
from ciplearn.kernels.base import Kernel


class CombinedKernel(Kernel, ABC):
    """Several kernels over the columns of one variable; each part reads its own ``columns``."""

    parts: tuple[Kernel, ...]
    columns = None

    def __init__(self, *parts: Kernel | Iterable[Kernel]) -> None:
        if len(parts) == 1 and not isinstance(parts[0], Kernel) and isinstance(parts[0], Iterable):
            parts = tuple(parts[0])
        if not parts or not all(isinstance(part, Kernel) for part in parts):
            raise InputTypeError(
                f"{type(self).__name__} takes kernels, got {parts!r}; "
                f"pass for example Product(Gaussian(columns=[0]), Categorical(columns=[1]))."
            )
        object.__setattr__(self, "parts", parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"

    @property
    def takes_codes(self) -> bool:
        """Whether every part does: the parts share one tensor."""
        return all(part.takes_codes for part in self.parts)

    @property
    def is_open(self) -> bool:
        """Whether any part still has a length scale to read off."""
        return any(part.is_open for part in self.parts)

    def resolve(self, x: Tensor) -> Self:
        """Resolve every part."""
        return type(self)(*(part.resolve(x) for part in self.parts))

    def with_lengthscale(self, lengthscale: float) -> Self:
        """Set it in every part where it is open."""
        return type(self)(*(part.with_lengthscale(lengthscale) for part in self.parts))

    def widened(self, factor: float) -> Self:
        """Widen every part."""
        return type(self)(*(part.widened(factor) for part in self.parts))

    def _open_part_widened(self, resolved: Self, factor: float) -> Self:
        # A length scale that was given as a number stays as given.
        parts = [
            mine._open_part_widened(theirs, factor) if mine.is_open else theirs
            for mine, theirs in zip(self.parts, resolved.parts, strict=True)
        ]
        return type(self)(*parts)


@dataclass(frozen=True, init=False, repr=False)
class Product(CombinedKernel):
    """k(x, z) = Π_p k_p(x, z): rows are alike if they are alike in every part.

    Parameters
    ----------
    *parts : Kernel
        For example ``Product(Gaussian("median", columns=[0]), Categorical(columns=[1, 2]))``; one list works too.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Categorical, Gaussian, Product
    >>> x = torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    >>> Product([Categorical(columns=[0]), Gaussian(1.0, columns=[1])]).gram(x, x).round(decimals=2)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 1.0000, 0.6100],
            [0.0000, 0.6100, 1.0000]], dtype=torch.float64)
    """

    parts: tuple[Kernel, ...]

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        return reduce(mul, (part.gram(x, z) for part in self.parts))

    def diagonal(self, x: Tensor) -> Tensor:
        """Product of the parts' diagonals."""
        return reduce(mul, (part.diagonal(x) for part in self.parts))


@dataclass(frozen=True, init=False, repr=False)
class Sum(CombinedKernel):
    """k(x, z) = Σ_p k_p(x, z): rows are alike if they are alike in some part.

    Parameters
    ----------
    *parts : Kernel
        One list works too.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Categorical, Gaussian, Sum
    >>> x = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    >>> Sum([Categorical(columns=[0]), Gaussian(1.0, columns=[1])]).gram(x, x)
    tensor([[2., 1.],
            [1., 2.]], dtype=torch.float64)
    """

    parts: tuple[Kernel, ...]

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        return reduce(add, (part.gram(x, z) for part in self.parts))

    def diagonal(self, x: Tensor) -> Tensor:
        """Sum of the parts' diagonals."""
        return reduce(add, (part.diagonal(x) for part in self.parts))
