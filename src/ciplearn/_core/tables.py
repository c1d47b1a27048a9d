"""Tables at the doorway: what people pass as a table, as a pandas frame with text for column names."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError


def as_frame(X: Any) -> pd.DataFrame | None:
    """Return a pandas frame with text labels for a pandas or polars frame, None for anything else."""
    refuse_lazy(X)
    if isinstance(X, pd.DataFrame):
        frame = X.set_axis([str(label) for label in X.columns], axis=1)
    elif hasattr(X, "get_column") and hasattr(X, "columns"):  # polars, without importing it
        frame = pd.DataFrame({str(name): X.get_column(name).to_list() for name in X.columns})
    else:
        return None
    repeated = frame.columns[frame.columns.duplicated()].tolist()
    if repeated:
        raise InputError(f"X has several columns of the same name, got {repeated} more than once; rename them.")
    return frame.assign(**{name: _plain(column) for name, column in frame.items() if column.dtype == object})


def refuse_lazy(X: Any) -> None:
    """Refuse a table whose rows are yet to be computed: every look at it would compute them anew."""
    if _is_lazy(X):
        raise InputTypeError(f"A {type(X).__name__} has no rows yet; pass what its collect() returns.")


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "collect") and hasattr(X, "collect_schema") and not hasattr(X, "get_column")


def checked_table(table: Any, name: str) -> pd.DataFrame:
    """Return ``table`` if it is a pandas frame whose columns have names of their own."""
    if not isinstance(table, pd.DataFrame):
        kind, advice = f"{type(table).__module__}.{type(table).__name__}".removeprefix("builtins."), "the table"
        if _is_lazy(table) or hasattr(table, "to_pandas"):
            advice = f"what its {'collect().' if _is_lazy(table) else ''}to_pandas() returns"
        raise InputTypeError(f"{name} must be a pandas DataFrame, got {kind}; pass {advice}.")
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{name} has several columns named {repeated[0]!r}; rename all but one of them.")
    return table


def _plain(column: pd.Series) -> pd.Series:
    """Return numbers that came as objects, as from a database or an array of objects, in a type of their own."""
    try:
        return as_numbers(column) if holds_numbers(column) else column
    except InputError:
        # Refused where the column is used; it may well not be.
        return column
