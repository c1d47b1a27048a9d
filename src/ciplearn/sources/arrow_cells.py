"""Columns of Arrow's, as Parquet files and datasets have them, as cells of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn._core.labels import LARGEST_WHOLE


def arrow_cells(
    name: str, array: Any, where: str, labels: Collection[str] = (), missing: Sequence[str] = ()
) -> pd.Series:
    """Return a column of Arrow's: numbers as they are, all else and what is asked for as labels as text."""
    from pyarrow import bool_, string, types
    from pyarrow.compute import if_else

    if types.is_nested(array.type):
        raise InputError(
            f"Column {name!r} of {where} holds {array.type}, not one value per row; spread it over columns of numbers "
            "or text."
        )
    if name not in labels and is_numeric(array.type):
        # As objects beside gaps where floats would lose digits.
        exact = types.is_integer(array.type) and array.null_count and array.type.bit_width == 64
        return array.to_pandas(integer_object_nulls=exact and _is_large(array))
    if name not in labels and (types.is_duration(array.type) or types.is_time(array.type)):
        raise InputError(
            f"Column {name!r} of {where} holds dates or times ({array.type}); convert them to numbers, days since a "
            "start for example."
        )
    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    # As Python writes booleans, and with it frames and CSV files.
    cells = if_else(array.cast(bool_()), "True", "False") if types.is_boolean(kind) else array.cast(string())
    text = cells.to_pandas()
    return text.mask(text.isin(list(missing))) if missing else text


def _is_large(array: Any) -> bool:
    from pyarrow.compute import min_max

    found = min_max(array).as_py()
    return any(value is not None and abs(value) > LARGEST_WHOLE for value in found.values())


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow's is one of numbers."""
    from pyarrow import types

    return types.is_floating(kind) or types.is_integer(kind)
