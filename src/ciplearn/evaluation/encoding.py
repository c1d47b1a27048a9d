"""Columns of any kind as a tensor with a kernel that fits them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator
from torch import Tensor

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.kernels import Gaussian, Kernel
from ciplearn.kernels.combined import mixed_kernel

# A range of this share of the largest value is sixteen units in the last place.
_ROUNDING = 16 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Variable:
    """Rows of one variable and a kernel between them."""

    rows: Tensor  # (n, c): numbers standardised, labels as codes
    kernel: Kernel  # Gaussian on the numbers with a median length scale, times the kernel of categories on the codes
    categories: tuple[bool, ...]  # whether each column holds codes of labels
    # whether a column of numbers varies by no more than rounding, so that nothing can be said about it
    rounded: bool = False

    @classmethod
    def of(cls, value: Any, name: str) -> Variable:
        """Read a frame, a series, an array or a tensor; labels are columns that do not hold numbers."""
        frame = _as_frame(value, name)
        missing = int(frame.isna().any(axis=1).sum())
        if missing:
            raise InputError(f"{name} holds NaN in {missing} of {len(frame)} rows; drop or impute those rows first.")
        numbers, labels, rounded = [], [], False
        for _, column in frame.items():
            if holds_numbers(column):
                values = column.to_numpy(dtype=np.float64)
                if not np.isfinite(values).all():
                    raise InputError(f"{name} holds infinity; drop or impute those rows first.")
                rounded = rounded or _is_rounding(values)
                numbers.append(_standardised(values))
            else:
                labels.append(pd.factorize(column.astype(object))[0].astype(np.float64))
        rows = torch.as_tensor(np.stack([*numbers, *labels], axis=1))
        categories = (False,) * len(numbers) + (True,) * len(labels)
        return cls(rows, mixed_kernel(Gaussian("median"), categories), categories, rounded)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.rows.shape[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Places of the columns of numbers."""
        return tuple(place for place, is_category in enumerate(self.categories) if not is_category)

    @property
    def labels(self) -> tuple[int, ...]:
        """Places of the columns of labels."""
        return tuple(place for place, is_category in enumerate(self.categories) if is_category)

    @property
    def is_constant(self) -> bool:
        """Whether all rows are the same."""
        return bool((self.rows == self.rows[:1]).all())

    def take(self, places: Tensor) -> Variable:
        """Return some rows."""
        return replace(self, rows=self.rows[places])


@dataclass(frozen=True)
class Sides:
    """The three parts of Ŷ ⊥ R | S, encoded, with the same rows."""

    left: Variable
    right: Variable
    given: Variable | None  # None where there is nothing to condition on

    @classmethod
    def of(cls, y_hat: Any, right: Any, given: Any) -> Sides:
        """Encode each part and check that they belong together."""
        left, other = Variable.of(y_hat, "y_hat"), Variable.of(right, "right")
        context = None if given is None else Variable.of(given, "given")
        for name, side in (("right", other), ("given", context)):
            if side is not None and side.n != left.n:
                raise InputError(
                    f"y_hat and {name} must have the same number of rows, got {left.n} and {side.n}; pass the same "
                    "rows, in the same order."
                )
        return cls(left, other, context)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.left.n

    def sampled(self, most: int, generator: Generator) -> Sides:
        """Return a random part of the rows where there are more than ``most``."""
        if self.n <= most:
            return self
        places = torch.as_tensor(np.sort(generator.choice(self.n, most, replace=False)))
        given = None if self.given is None else self.given.take(places)
        return Sides(self.left.take(places), self.right.take(places), given)


def _as_frame(value: Any, name: str) -> pd.DataFrame:
    if isinstance(value, pd.Series):
        value = value.to_frame()
    if not isinstance(value, pd.DataFrame):
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.ndim not in (1, 2) or array.size == 0:
            raise InputTypeError(
                f"{name} must be a frame, or an array of shape (rows,) or (rows, columns), got shape {array.shape}."
            )
        value = pd.DataFrame(array)
    if value.shape[0] == 0 or value.shape[1] == 0:
        raise InputError(f"{name} is empty, got shape {value.shape}; pass at least one column and some rows.")
    return value


def _is_rounding(values: Any) -> bool:
    """Whether values differ, but by no more than a sum of a few numbers of their size is rounded."""
    # Halves, because the range of all finite numbers is not finite.
    spread = values.max() / 2 - values.min() / 2
    return bool(0 < spread <= _ROUNDING * np.abs(values).max() / 2)


def _standardised(values: Any) -> Any:
    """Mean zero and variance one, at every scale and offset that double precision can tell from a constant."""
    _, exponent = np.frexp(np.abs(values).max())
    # A power of two scales exactly; squares then neither overflow nor vanish.
    values = np.ldexp(values, -int(exponent))
    values = values - np.median(values)
    values = values / (np.abs(values).max() or 1.0)
    return (values - values.mean()) / (values.std() or 1.0)
