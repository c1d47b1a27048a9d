"""Columns of Arrow's, as Parquet files and datasets have them, as cells of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import LARGEST_WHOLE
from ciplearn._core.errors import InputError


def arrow_cells(
    name: str, array: Any, where: str, labels: Collection[str] = (), missing: Sequence[str] = ()
) -> pd.Series:
    """Return a column of Arrow's: numbers as they are, all else and what is asked for as labels as text."""
    from pyarrow import string, types
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
    held = array.dictionary if types.is_dictionary(array.type) else array
    # As Python writes booleans, and with it frames and CSV files.
    text = (if_else(held, "True", "False") if types.is_boolean(held.type) else held.cast(string())).to_pandas()
    if held is not array:
        # A label stays one object however many rows have it: written out, a few bytes of a file could fill the memory.
        codes = array.indices.fill_null(len(text)).to_numpy(zero_copy_only=False)
        text = pd.Series(np.array([*text, None], dtype=object)[codes], dtype=object)
    return text.mask(text.isin(list(missing))) if missing else text


def _is_large(array: Any) -> bool:
    from pyarrow.compute import min_max

    ends = min_max(array).as_py().values()
    return any(value is not None and abs(value) > LARGEST_WHOLE for value in ends)


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow's is one of numbers."""
    from pyarrow import types

    return types.is_floating(kind) or types.is_integer(kind)
