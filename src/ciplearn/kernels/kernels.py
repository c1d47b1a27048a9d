"""What a kernel is, those that there are, products and sums of them, and the distances between rows that they read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from ciplearn._core.arguments import check_flags, non_negative, positive, several
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tensors import as_rows

LENGTHSCALE_GRID = (0.125, 0.25, 0.5, 1.0, 2.0)  # multiples of the median that compete by leave-one-out error
MEDIAN_ROWS = 512  # a median needs a few hundred rows to be stable; all pairs of more would cost more than they tell
_DIRECT_COLUMNS = 4  # up to so many, differences are taken column by column: exact, and as fast as a matrix product
_MISMATCH = 0.5  # of several columns of labels: hardly two rows agree in all, rows that differ in one are half alike


class Kernel(ABC):
    """A positive semi-definite similarity of rows; without more, one that has no length scale.

    A kernel is *open* while one of its length scales is ``"median"``; `resolve` returns the same kernel with that scale
    read off some rows. Kernels never change: they can be shared, compared and printed.

    >>> from ciplearn import Gaussian
    >>> Gaussian(1.0).is_open, Gaussian("median").is_open
    (False, True)
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
            raise InputTypeError(f"columns must be column numbers from 0, got {self.columns!r}; pass a list of them.")
        object.__setattr__(self, "columns", columns)

    def __call__(self, x: Any, z: Any = None) -> Tensor:
        """Return the Gram matrix k(x_i, z_j), shape (n, m); with one argument, k(x_i, x_j)."""
        x = as_rows(x, "x", integers=self.takes_codes)
        z = x if z is None else as_rows(z, "z", integers=self.takes_codes)
        if x.shape[1] != z.shape[1]:
            why = f"x and z must have the same columns, got {x.shape[1]} and {z.shape[1]}"
            raise InputError(f"{why}; pass the same variables.")
        return self.resolve(x).gram(x, z)

    @property
    def is_open(self) -> bool:
        """Whether a length scale is still to be read off data."""
        return False

    def resolve(self, x: Tensor, factor: float = 1.0) -> Self:  # (n, d)
        """Return this kernel with every open length scale read off the rows of ``x``, times a factor."""
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
        return tuple(self.resolve(x, factor) for factor in (LENGTHSCALE_GRID if self.is_open else (1.0,)))

    def select(self, x: Tensor) -> Tensor:  # (n, d) -> (n, d')
        """Return the columns that this kernel reads."""
        if self.columns is None:
            return x
        if max(self.columns) >= x.shape[-1]:
            why = f"{self} reads column {max(self.columns)}, but the variable has {x.shape[-1]}"
            raise InputError(f"{why}; number columns from 0.")
        # Not by a list of places: that is copied to a CUDA device, which a recorded step must not do.
        return torch.stack([x[..., column] for column in self.columns], dim=-1)


@dataclass(frozen=True)
class StationaryKernel(Kernel, ABC):
    """A kernel with one length scale, a function of a distance between rows."""

    lengthscale: float | str = "median"
    average: bool = True
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.lengthscale, str):
            object.__setattr__(self, "lengthscale", positive(self.lengthscale, "lengthscale"))
        elif self.lengthscale != "median":
            raise InputError(f"lengthscale must be a number or 'median', got {self.lengthscale!r}; pass one of these.")
        super().__post_init__()

    @property
    def is_open(self) -> bool:
        """Whether the length scale is still ``"median"``."""
        return self.lengthscale == "median"

    def resolve(self, x: Tensor, factor: float = 1.0) -> Self:
        """Return this kernel with the median distance between rows, times a factor, as length scale, if it is open."""
        if not self.is_open:
            return self
        rows = self.select(x.detach())
        rows = rows[sample_rows(rows.shape[0], MEDIAN_ROWS, seed=0).to(rows.device)].double()
        return self.with_lengthscale(self.median_distance(rows) * factor)

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

    @abstractmethod
    def median_distance(self, x: Tensor) -> float:  # (n, d)
        """Median over pairs of rows of the distance that the length scale divides."""


@dataclass(frozen=True)
class Gaussian(StationaryKernel):
    """k(x, z) = exp(−d² / (2 ℓ²)) with d² the mean over columns of (x_c − z_c)².

    ``lengthscale``: ℓ, a number; ``"median"`` reads the median distance between rows off the data. ``average``: average
    squared differences over columns, so that ℓ means the same for any number of them; ``False`` sums. ``columns``:
    numbers of the columns of the variable that this kernel reads; all of them by default.

    >>> from ciplearn import Gaussian
    >>> Gaussian(1.0)([0.0, 1.0])
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


@dataclass(frozen=True)
class Laplace(StationaryKernel):
    """k(x, z) = exp(−d / ℓ) with d the mean over columns of ``|x_c − z_c|``. Parameters: see `Gaussian`.

    >>> from ciplearn import Laplace
    >>> Laplace(1.0)([0.0, 1.0])
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


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = mean over columns of x_c z_c.

    As the kernel of a prediction it sees dependence of the conditional *mean* only: enough for the variance of
    counterfactuals of a point predictor, blind to the rest of the distribution. Parameters: see `Gaussian`.

    >>> from ciplearn import Linear
    >>> Linear()([1.0, 2.0])
    tensor([[1., 2.],
            [2., 4.]], dtype=torch.float64)
    """

    average: bool = True
    columns: tuple[int, ...] | None = None

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel."""
        x, z = self.select(x), self.select(z)
        return x @ z.T / self.divisor(x.shape[1])

    def diagonal(self, x: Tensor) -> Tensor:
        """Mean squares."""
        x = self.select(x)
        return x.square().sum(1) / self.divisor(x.shape[1])


@dataclass(frozen=True)
class Categorical(Kernel):
    """k(x, z) = Π over columns of (1 if x_c = z_c, else ρ).

    With ρ = 0 this is the delta kernel: rows are alike if they agree in every column. With several columns of many
    levels hardly two rows agree in all; 0 < ρ < 1 then lets rows that agree in most columns speak to each other, and
    keeps the kernel characteristic.

    ``mismatch``: ρ, the similarity of two different levels, 0 ≤ ρ < 1. ``columns``: see `Gaussian`.

    >>> from ciplearn import Categorical
    >>> Categorical()([0, 1, 0])
    tensor([[1., 0., 1.],
            [0., 1., 0.],
            [1., 0., 1.]], dtype=torch.float64)
    """

    takes_codes = True
    mismatch: float = 0.0
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mismatch", non_negative(self.mismatch, "mismatch"))
        if self.mismatch >= 1:
            raise InputError(f"mismatch must be below 1, got {self.mismatch!r}; at 1 all levels would be alike.")
        super().__post_init__()

    def gram(self, x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
        """Evaluate the kernel; codes give the result in double precision."""
        x, z = self.select(x), self.select(z)
        equal = [(x[:, None, c] == z[None, :, c]).to(real_dtype(x)) for c in range(x.shape[1])]
        parts = [part * (1 - self.mismatch) + self.mismatch for part in equal] if self.mismatch else equal
        return math.prod(parts[1:], start=parts[0])

    def diagonal(self, x: Tensor) -> Tensor:
        """A row agrees with itself."""
        return torch.ones(x.shape[0], dtype=real_dtype(x), device=x.device)


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
        object.__setattr__(self, "takes_codes", all(part.takes_codes for part in self.parts))  # they share one tensor

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
    """k(x, z) = Π_p k_p(x, z): rows are alike if they are alike in every part; kernels are named one by one, or listed.

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
    equal = Categorical(mismatch=_MISMATCH if len(labels) > 1 else 0.0, columns=labels)
    return Product(replace(kernel, columns=numbers), equal) if numbers else equal


def real_dtype(codes: Tensor) -> torch.dtype:
    """The precision of what is computed from codes: double where they are whole numbers."""
    return codes.dtype if codes.is_floating_point() else torch.float64


def squared_distances(x: Tensor, z: Tensor) -> Tensor:  # (..., n, d), (..., m, d) -> (..., n, m)
    """Squared Euclidean distances between the rows of ``x`` and of ``z``."""
    if x.shape[-1] <= _DIRECT_COLUMNS:
        total = (x[..., :, None, 0] - z[..., None, :, 0]).square()
        for column in range(1, x.shape[-1]):
            difference = x[..., :, None, column] - z[..., None, :, column]
            total = torch.addcmul(total, difference, difference)
        return total
    # A common shift leaves distances alone and keeps ‖x‖² + ‖z‖² − 2 x·z from cancelling.
    shift = z.detach().mean(dim=-2, keepdim=True)
    x, z = x - shift, z - shift
    norms = x.square().sum(-1)[..., :, None] + z.square().sum(-1)[..., None, :]
    # In place: of many rows each further matrix counts.
    return norms.sub_(x @ z.transpose(-1, -2), alpha=2).clamp_min_(0)


def absolute_distances(x: Tensor, z: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
    """Sum over columns of absolute differences between the rows of ``x`` and of ``z``."""
    parts = [(x[:, None, column] - z[None, :, column]).abs() for column in range(x.shape[1])]
    return sum(parts[1:], start=parts[0])


def sample_rows(n: int, size: int, seed: int) -> Tensor:
    """Return sorted indices of ``size`` of ``n`` rows, drawn without replacement; all of them if there are fewer."""
    if n <= size:
        return torch.arange(n)
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:size].sort().values


def median_of_pairs(distances: Tensor) -> float:  # (n, n)
    """Median over distinct pairs; over the unequal ones if most rows are equal; 1 if all are.

    The last two rules keep a column with many duplicates, or a constant one, from giving a length scale of zero.
    """
    n = distances.shape[0]
    upper = torch.triu_indices(n, n, offset=1, device=distances.device)
    pairs = distances[upper[0], upper[1]]
    for compared in (pairs, pairs[pairs > 0]):
        if compared.numel() and (median := float(compared.median())) > 0:
            return median
    return 1.0
