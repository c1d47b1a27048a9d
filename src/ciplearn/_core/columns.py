"""What a column of a table holds: numbers or labels."""

from __future__ import annotations

import pandas as pd

from ciplearn._core.errors import InputError

# In the words of pandas.
_NUMBERS = ("floating", "integer", "mixed-integer-float", "decimal")
_NEITHER = ("complex", "date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")


def holds_numbers(column: pd.Series) -> bool:
    """Whether a column holds numbers, be it as objects; else it holds labels. Times and complex numbers are refused."""
    held = pd.api.types.infer_dtype(column, skipna=True)
    if held in _NEITHER:
        raise InputError(f"Column {column.name!r} holds {held} values; convert them to numbers or labels.")
    return held in _NUMBERS
