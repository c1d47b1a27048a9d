"""Labels of categories.

A label is its text without blanks around it; a whole number reads the same with and without a fraction of zero.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

Array = np.ndarray[Any, Any]

# Beyond, a double does not tell one whole number from the next.
LARGEST_WHOLE = 2**53

# Whole numbers below are written without an exponent.
_WRITTEN_OUT = 10**21

# A name that no level can have.
MISSING = "\0missing"

# Of these, two values in an object column that are equal have the same label.
_EQUAL_READS_EQUAL = {str, float, type(None), type(pd.NA)}

# A label that was held impossible costs this much: −log of it is 27.6.
_SMALLEST = 1e-12

_WRITTEN_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")


def distinct_labels(column: pd.Series) -> tuple[list[str], Array]:  # (n,)
    """Labels that occur, perhaps twice, and for each row the place of its label among them."""
    values = _distinct_values(column)
    if values is None:
        return _labels(column), np.arange(len(column))
    # A row that has the value; a category that no row has takes the first row's label, which occurs.
    rows = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    rows[values] = np.arange(len(column))
    return _labels(column.iloc[rows]), values


def _distinct_values(column: pd.Series) -> Array | None:  # (n,)
    """One number per row, the same only where labels are the same; None where equal values may have two labels."""
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
    return [MISSING if missing else label_of(value) for value, missing in zip(column, column.isna(), strict=True)]


def label_of(value: Any) -> str:
    """Return the label that a value has."""
    # Text is what survives a round trip through a file. A whole number reads the same where a gap in the column made
    # it a float; a far larger one would have digits that nobody wrote.
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _WRITTEN_OUT
    return str(int(value)) if whole else str(value).strip()


def written_number(label: str) -> bool:
    """Whether a label is a number as people write it."""
    return _WRITTEN_NUMBER.fullmatch(label) is not None


def log_losses(probabilities: np.ndarray, places: np.ndarray) -> np.ndarray:  # (n, classes), (n,) -> (n,)
    """−log of the right class's probability; a place of −1 is a class that training has not seen."""
    right = np.where(places >= 0, probabilities[np.arange(len(places)), places], 0.0)
    return -np.log(np.maximum(right, _SMALLEST))
