"""What the columns of a table are taken for: numbers or categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError

NUMBER, CATEGORY = "number", "category"

# Thousands, units and blanks, as people and spreadsheets write them.
_SIGNS_IN_NUMBERS = r"[,'_%$€£\s]"


@dataclass(frozen=True)
class Schema:
    """Columns and their kinds, in the order of the training table.

    Attributes
    ----------
    kinds : mapping from column to ``"number"`` or ``"category"``
    """

    kinds: Mapping[str, str]

    @classmethod
    def of(cls, table: pd.DataFrame, categories: Sequence[str] = ()) -> Schema:
        """Find out: a column holds numbers if every value that is there reads as one and nobody said otherwise."""
        absent = [name for name in categories if name not in table.columns]
        if absent:
            raise InputError(f"The column {absent[0]!r} of --categories is not in the table; it has {_few(table)}.")
        return cls({name: CATEGORY if name in categories else _kind(table[name]) for name in table.columns})

    def restricted(self, columns: Sequence[str]) -> Schema:
        """Keep some columns."""
        return Schema({name: self.kinds[name] for name in columns})

    def require(self, columns: Sequence[str], where: str) -> None:
        """Complain about the first column that a table lacks."""
        absent = [name for name in self.kinds if name not in columns]
        if absent:
            raise InputError(
                f"{where} lacks the column {absent[0]!r}, which the model was trained with; it has "
                f"{', '.join(map(str, columns[:12]))}{', ...' if len(columns) > 12 else ''}."
            )

    def typed(self, table: pd.DataFrame, where: str, first_row: int = 1) -> pd.DataFrame:
        """Return the columns in their kinds; what does not read as a number where one is due is named with its row."""
        self.require(list(table.columns), where)
        columns = {}
        for name, kind in self.kinds.items():
            column = table[name]
            columns[name] = column if kind == CATEGORY else _numbers(column, where, first_row)
        return pd.DataFrame(columns, index=table.index)


def _kind(column: pd.Series) -> str:
    known = column.dropna()
    if known.empty:
        return NUMBER
    return CATEGORY if pd.to_numeric(known, errors="coerce").isna().any() else NUMBER


def stray_text(column: pd.Series) -> str | None:
    """Return a cell that keeps a column from being numbers, where most of its values are numbers or nearly so."""
    values = pd.Series(column.dropna().unique()).astype(str)
    bare = values.str.replace(_SIGNS_IN_NUMBERS, "", regex=True)
    if not pd.to_numeric(bare, errors="coerce").notna().mean() > 0.5:
        return None
    stray = values[pd.to_numeric(values, errors="coerce").isna()]
    return None if stray.empty else str(stray.iloc[0])


def _numbers(column: pd.Series, where: str, first_row: int) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if wrong.any():
        place = int(wrong.argmax())
        raise InputError(
            f"Column {column.name!r} of {where} held numbers in training, got {column.iloc[place]!r} in row "
            f"{first_row + place}; correct it, or leave the cell empty."
        )
    return numbers


def _few(table: pd.DataFrame) -> str:
    names: list[Any] = list(table.columns)
    return ", ".join(map(str, names[:12])) + (", ..." if len(names) > 12 else "")
