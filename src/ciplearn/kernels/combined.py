"""Products and sums of kernels, for variables whose columns are of different kinds: numbers and labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import ClassVar, Self

from torch import Tensor

from ciplearn._core.errors import InputTypeError
from ciplearn.kernels.elementary import Categorical, Gaussian, Kernel, Laplace

# With several columns of labels hardly two rows agree in all; rows that differ in one are still half alike.
_SEVERAL_CATEGORIES_MISMATCH = 0.5


@dataclass(frozen=True, init=False, repr=False)
class CombinedKernel(Kernel):
    """Several kernels over the columns of one variable; each part reads its own ``columns``."""

    parts: tuple[Kernel, ...]
    _join: ClassVar[staticmethod[[Tensor, Tensor], Tensor]]

    def __init__(self, *parts: Kernel | Iterable[Kernel]) -> None:
        if len(parts) == 1 and not isinstance(parts[0], Kernel) and isinstance(parts[0], Iterable):
            parts = tuple(parts[0])
        if not parts or not all(isinstance(part, Kernel) for part in parts):
            why = f"{type(self).__name__} takes kernels, got {parts!r}"
            raise InputTypeError(f"{why}; pass for example Product(Gaussian(columns=[0]), Categorical(columns=[1])).")
        object.__setattr__(self, "parts", parts)
        # The parts share one tensor.
        object.__setattr__(self, "takes_codes", all(part.takes_codes for part in self.parts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"

    @property
    def is_open(self) -> bool:
        """Whether any part still has a length scale to read off."""
        return any(part.is_open for part in self.parts)

    def resolve(self, x: Tensor, factor: float = 1.0) -> Self:
        """Resolve every part; a length scale that was given as a number stays as given."""
        return type(self)(*(part.resolve(x, factor) for part in self.parts))

    def with_lengthscale(self, lengthscale: float) -> Self:
        """Set it in every part where it is open."""
        return type(self)(*(part.with_lengthscale(lengthscale) for part in self.parts))

    def widened(self, factor: float) -> Self:
        """Widen every part."""
        return type(self)(*(part.widened(factor) for part in self.parts))

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        return reduce(self._join, (part.gram(x, z) for part in self.parts))

    def diagonal(self, x: Tensor) -> Tensor:
        """Join the parts' diagonals."""
        return reduce(self._join, (part.diagonal(x) for part in self.parts))


class Product(CombinedKernel):
    """k(x, z) = Π_p k_p(x, z): rows are alike if they are alike in every part.

    Its kernels are named one by one, or in a list.

    >>> from ciplearn import Categorical, Gaussian, Product
    >>> Product(Categorical(columns=[0]), Gaussian(1.0, columns=[1]))([[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 1.0000, 0.6065],
            [0.0000, 0.6065, 1.0000]], dtype=torch.float64)
    """

    _join = staticmethod(mul)


class Sum(CombinedKernel):
    """k(x, z) = Σ_p k_p(x, z): rows are alike if they are alike in some part; kernels are named as in `Product`.

    >>> from ciplearn import Categorical, Gaussian, Sum
    >>> Sum(Categorical(columns=[0]), Gaussian(1.0, columns=[1]))([[0.0, 1.0], [1.0, 1.0]])
    tensor([[2., 1.],
            [1., 2.]], dtype=torch.float64)
    """

    _join = staticmethod(add)


def mixed_kernel(kernel: Kernel, categories: Sequence[bool]) -> Kernel:
    """Let a kernel for all columns see the numbers, and a categorical kernel the labels: k(numbers) · k(labels).

    ``categories``: whether each column holds codes of labels. A kernel that is neither Gaussian nor Laplace, or that
    names its columns, is left as it is: its author has decided.
    """
    labels = tuple(column for column, is_category in enumerate(categories) if is_category)
    numbers = tuple(column for column, is_category in enumerate(categories) if not is_category)
    if not labels or not isinstance(kernel, Gaussian | Laplace) or kernel.columns is not None:
        return kernel
    equal = Categorical(mismatch=_SEVERAL_CATEGORIES_MISMATCH if len(labels) > 1 else 0.0, columns=labels)
    return Product(replace(kernel, columns=numbers), equal) if numbers else equal
