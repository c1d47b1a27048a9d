"""Columns of a table as numbers: for a network, and for kernels that see each column in its own kind."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn.kernels import Categorical, Gaussian, Kernel, Laplace, Product

# Two rows that differ in one of several categorical columns are still half alike; with a single column they are not.
_SEVERAL_CATEGORIES_MISMATCH = 0.5


# A column with more levels is no category that a model could learn from.
_MOST_LEVELS = 1000

# Networks compute in single precision.
_LARGEST = float(np.finfo(np.float32).max)

# Of these, two values in an object column that are equal have the same label.
_EQUAL_READS_EQUAL = {str, float, type(None), type(pd.NA)}

_KINDS_OF_TIME = ("date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, scaled so that the training rows span [0, 1]; missing values become the median."""

    name: str
    low: float
    high: float
    median: float

    @property
    def is_category(self) -> bool:
        """Numbers have distances."""
        return False

    @property
    def width(self) -> int:
        """How many network inputs the column becomes."""
        return 1

    @classmethod
    def of(cls, column: pd.Series) -> Self:
        """Read range and median off training rows."""
        values = column.to_numpy(dtype=float, na_value=np.nan)
        known = values[~np.isnan(values)]
        if not len(known):
            raise InputError(f"Column {column.name!r} has no values at all; drop it from the roles.")
        if np.isinf(known).any():
            raise InputError(f"Column {column.name!r} holds infinity; replace or drop those rows.")
        low, high = float(known.min()), float(known.max())
        if math.isinf(high - low):
            raise InputError(f"Column {column.name!r} spans {low:g} to {high:g}, too far to be scaled; rescale it.")
        return cls(str(column.name), low, high, float(np.median(known)))

    def numbers(self, column: pd.Series) -> np.ndarray:  # (n,)
        """Scale the values."""
        values = column.to_numpy(dtype=float, na_value=np.nan)
        if np.isinf(values).any():
            raise InputError(f"Column {self.name!r} holds infinity; replace or drop those rows.")
        values = np.where(np.isnan(values), self.median, values)
        with np.errstate(over="ignore"):
            scaled = (values - self.low) / (self.high - self.low or 1.0)
        beyond = np.abs(scaled) > _LARGEST
        if beyond.any():
            raise InputError(
                f"Column {self.name!r} holds {values[beyond][0]:g}, too far from the training rows' {self.low:g} to "
                f"{self.high:g} for single precision; check its units."
            )
        return scaled

    def write_features(self, column: pd.Series, inputs: np.ndarray) -> None:  # (n, 1)
        """Put the scaled values, for a network, where there are zeros."""
        inputs[:, 0] = self.numbers(column)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories; a level not seen in training has a code of its own, and no input of its own."""

    name: str
    levels: tuple[Any, ...]

    @property
    def is_category(self) -> bool:
        """Categories are equal or not."""
        return True

    @property
    def width(self) -> int:
        """How many network inputs the column becomes."""
        return len(self.levels)

    @classmethod
    def of(cls, column: pd.Series) -> Self:
        """Read the levels off training rows; missing is a level where it occurs."""
        if pd.api.types.infer_dtype(column, skipna=True) in _KINDS_OF_TIME:
            raise InputError(
                f"Column {column.name!r} holds dates; convert it to numbers, days since a start for example."
            )
        if column.isna().all():
            raise InputError(f"Column {column.name!r} has no values at all; drop it from the roles.")
        levels = tuple(sorted(set(_distinct_labels(column)[0])))
        if len(levels) > _MOST_LEVELS:
            raise InputError(
                f"Column {column.name!r} has {len(levels)} different values, more than {_MOST_LEVELS}: it looks like "
                f"free text or an identifier; leave it out, or group its values."
            )
        return cls(str(column.name), levels)

    def numbers(self, column: pd.Series) -> np.ndarray:  # (n,)
        """Codes of the levels."""
        return self._codes(column).astype(float)

    def write_features(self, column: pd.Series, inputs: np.ndarray) -> None:  # (n, levels)
        """Put a one at each row's level where there are zeros."""
        codes = self._codes(column)
        rows = np.flatnonzero(codes < len(self.levels))
        inputs[rows, codes[rows]] = 1

    def _codes(self, column: pd.Series) -> np.ndarray:  # (n,)
        codes = {level: code for code, level in enumerate(self.levels)}
        labels, places = _distinct_labels(column)
        return np.array([codes.get(label, len(codes)) for label in labels], dtype=np.int64)[places]


Column = NumberColumn | CategoryColumn


@dataclass(frozen=True)
class TableEncoding:
    """How some columns of a table become numbers, as learnt on training rows."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: pd.DataFrame, names: tuple[str, ...]) -> Self:
        """Learn the encoding of the named columns."""
        return cls(
            tuple(NumberColumn.of(table[n]) if is_number(table[n]) else CategoryColumn.of(table[n]) for n in names)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        """How many network inputs the columns become."""
        return sum(column.width for column in self.columns)

    def features(self, table: pd.DataFrame) -> Tensor:  # (n, width)
        """Network inputs."""
        # Few of many inputs differ from zero: they are written in place, in the networks' precision.
        inputs = np.zeros((len(table), self.width), dtype=np.float32)
        start = 0
        for column in self.columns:
            column.write_features(self._kind_checked(column, table), inputs[:, start : start + column.width])
            start += column.width
        return torch.from_numpy(inputs)

    def numbers(self, table: pd.DataFrame) -> Tensor:  # (n, columns)
        """One number a column, for kernels: scaled values, or codes of categories."""
        parts = [column.numbers(self._kind_checked(column, table)) for column in self.columns]
        return torch.from_numpy(np.stack(parts, axis=1)).float()

    def kernel(self, kernel: Kernel) -> Kernel:
        """Let a kernel for all columns see numbers, and a categorical kernel the categories.

        A kernel that names its columns is left as it is: its author has decided.
        """
        numbers = [i for i, column in enumerate(self.columns) if not column.is_category]
        categories = [i for i, column in enumerate(self.columns) if column.is_category]
        if not categories or not isinstance(kernel, Gaussian | Laplace) or kernel.columns is not None:
            return kernel
        mismatch = _SEVERAL_CATEGORIES_MISMATCH if len(categories) > 1 else 0.0
        equal = Categorical(mismatch=mismatch, columns=tuple(categories))
        return Product(replace(kernel, columns=tuple(numbers)), equal) if numbers else equal

    def _kind_checked(self, column: Column, table: pd.DataFrame) -> pd.Series:
        values = table[column.name]
        if values.isna().all():
            return values
        if isinstance(column, NumberColumn) and not is_number(values):
            raise InputError(
                f"Column {column.name!r} held numbers in training, got {values.dtype} with values like "
                f"{values.dropna().iloc[0]!r}; convert it to numbers."
            )
        if isinstance(column, CategoryColumn) and is_number(values) and not any(map(_reads_as_number, column.levels)):
            raise InputError(
                f"Column {column.name!r} held categories such as {column.levels[0]!r} in training, got {values.dtype}; "
                f"convert it to these categories."
            )
        return values


def is_number(column: pd.Series) -> bool:
    """Whether a column holds numbers; booleans, text and categories are kinds of their own."""
    kind = column.dtype
    if pd.api.types.is_complex_dtype(kind):
        raise InputError(f"Column {column.name!r} holds complex numbers; pass real and imaginary part as two columns.")
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def _distinct_labels(column: pd.Series) -> tuple[list[str], np.ndarray]:  # (n,)
    """Labels that occur, perhaps twice, and for each row the place of its label among them."""
    values = _distinct_values(column)
    if values is None:
        return _labels(column), np.arange(len(column))
    # A row that has the value; a category that no row has takes the first row's label, which occurs.
    rows = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    rows[values] = np.arange(len(column))
    return _labels(column.iloc[rows]), values


def _distinct_values(column: pd.Series) -> np.ndarray | None:  # (n,)
    """A number a row, the same only where labels are the same; None where equal values may have different labels."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(np.int64) + 1
    # True == 1 == Decimal(1), an Enum may equal its text, and some kinds of float read 0.0 and -0.0 as two.
    if pd.api.types.is_object_dtype(kind):
        reads_equal = set(map(type, column.to_numpy())) <= _EQUAL_READS_EQUAL
    else:
        whole = pd.api.types.is_integer_dtype(kind) or pd.api.types.is_bool_dtype(kind)
        reads_equal = whole or kind == np.float64 or isinstance(kind, pd.StringDtype)
    return pd.factorize(column)[0] + 1 if reads_equal else None


def _labels(column: pd.Series) -> list[str]:
    # Missing has a name that no level can have.
    return ["\0missing" if missing else _label(value) for value, missing in zip(column, column.isna(), strict=True)]


def _label(value: Any) -> str:
    # Text is what survives a round trip through a file. A whole number reads the same where a gap in the column made
    # it a float.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _reads_as_number(level: str) -> bool:
    try:
        float(level)
    except ValueError:
        return False
    return True
