"""Which columns of a file hold numbers and which labels, and text that was hardly meant as either."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers, read_numbers, text_as_numbers
from ciplearn._core.errors import InputError

# Thousands, units and blanks, as people and spreadsheets write them.
_SIGNS_IN_NUMBERS = r"[,'_%$€£\s]"

# A day, alone or with a time of day.
_DATE = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2}))(?:[ T].*)?"

# So many different texts, of which most stand in one row only, are names or free text.
FEW_TEXTS = 20


def in_their_kinds(
    cells: pd.DataFrame, categories: Collection[str], confirmed: Collection[str] = (), outcome: str | None = None
) -> pd.DataFrame:
    """Return columns as numbers where every value reads as one and nobody has called them categories.

    Text that was hardly meant as categories is refused, unless the column is confirmed.
    """
    columns = {}
    for name in cells.columns:
        numbers = None if name in categories else text_as_numbers(cells[name])
        if numbers is not None and np.isinf(numbers).any():
            place = int(np.isinf(numbers).to_numpy().argmax())
            raise InputError(
                f"Column {name!r} holds infinity, {cells[name].iloc[place]!r} in row {place + 1}; correct it, or name "
                "it with --na."
            )
        if numbers is None and name not in categories and name not in confirmed:
            confirm = "--task classification" if name == outcome else f"--categories {name}"
            if name != outcome or cells[name].nunique() != 2:
                refuse_beyond_floats(cells[name], confirm)
            _refuse_what_is_no_category(cells[name], confirm)
        columns[name] = _text(cells[name]) if numbers is None else numbers
    return pd.DataFrame(columns)


def _text(column: pd.Series) -> pd.Series:
    """Return whole numbers that floats do not tell apart as text; text stays as it is."""
    return column.map(str, na_action="ignore").astype(object) if holds_numbers(column) else column


def _refuse_what_is_no_category(column: pd.Series, confirm: str) -> None:
    """Refuse numbers with text among them, dates and names: each would become a category of its own."""
    stray = stray_text(column)
    if stray is not None:
        number = pd.to_numeric(re.sub(_SIGNS_IN_NUMBERS, "", stray), errors="coerce") if stray else math.nan
        how = " (a number has a decimal point and no other sign)" if not math.isnan(number) else ""
        raise InputError(
            f"Column {column.name!r} holds mostly numbers, but also cells like {stray!r}; correct these{how}, name "
            f"them with --na, or pass {confirm}."
        )
    values = pd.Series(column.dropna().unique()).astype(str)
    dates = values[values.str.fullmatch(_DATE)]
    if len(dates) > len(values) / 2:
        raise InputError(
            f"Column {column.name!r} holds dates such as {dates.iloc[0]!r}; put numbers in their place, such as days "
            f"since the first, leave it out of the graph, or pass {confirm}."
        )
    if len(values) > max(FEW_TEXTS, column.notna().sum() / 2):
        raise InputError(
            f"Column {column.name!r} has {len(values)} different texts such as {values.iloc[0][:30]!r} in "
            f"{column.notna().sum()} rows: it looks like free text or an identifier; leave it out of the "
            f"graph, group its values, or pass {confirm}."
        )


def refuse_beyond_floats(column: pd.Series, confirm: str) -> None:
    """Refuse a column of numbers of which some are whole and equal to no float."""
    present = column.dropna()
    large = present[read_numbers(present).isna()]
    if len(large) and pd.to_numeric(present, errors="coerce").notna().all():
        raise InputError(
            f"Column {column.name!r} holds {large.iloc[0]}, and numbers beyond 2**53 are not told from their "
            f"neighbours; pass {confirm} where they are labels, rescale amounts, or leave it out of the graph."
        )


def stray_text(column: pd.Series) -> str | None:
    """Return a cell that keeps a column from being numbers, where most of its values are numbers or nearly so."""
    values = pd.Series(column.dropna().unique()).astype(str)
    bare = values.str.replace(_SIGNS_IN_NUMBERS, "", regex=True)
    if not pd.to_numeric(bare, errors="coerce").notna().mean() > 0.5:
        return None
    stray = values[pd.to_numeric(values, errors="coerce").isna()]
    return None if stray.empty else str(stray.iloc[0])
