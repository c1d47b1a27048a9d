"""Results as plain data: what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd


def as_data(value: Any) -> Any:
    """Return a value as plain data, all the way down.

    A number that JSON does not have, NaN or infinity, is None. A frame is a list of its rows, a dataclass a dict of its
    fields, unless it has a ``to_dict`` of its own. What is none of this is its text.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.generic):
        number = value.item() if isinstance(value, np.generic) else value
        return None if isinstance(number, float) and not math.isfinite(number) else number
    if isinstance(value, Mapping):
        return {str(key): as_data(entry) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return as_data(value.astype(object).where(value.notna(), None).to_dict(orient="records"))
    if hasattr(value, "_asdict"):
        return as_data(value._asdict())
    if isinstance(value, list | tuple | range):
        return [as_data(entry) for entry in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return fields_as_data(value) if is_dataclass(value) else str(value)


def fields_as_data(result: Any, *left_out: str, **more: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain data, some of them left out, with what else there is to say."""
    values = {field.name: getattr(result, field.name) for field in fields(result) if field.name not in left_out}
    return {name: as_data(value) for name, value in {**values, **more}.items()}
