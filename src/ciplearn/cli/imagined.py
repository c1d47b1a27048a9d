"""A model that runs elsewhere: the rows that an audit would ask it about, and what it has said of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers, text_as_numbers
from ciplearn._core.errors import InputError
from ciplearn.cli.predict import ANSWER, PROBABILITY
from ciplearn.evaluation.any_model import Foreign
from ciplearn.sources.table_file import TableFile

ID = "id"  # the column by which a row is known again when predictions come back
_MOST_ROWS = 5_000_000  # more rows than people want in a file
_DIGITS = 9  # digits by which a row is known again, on this machine or another


class RowsNoted:
    """Stands in for a model: notes which rows it is asked about, and answers with numbers that mean nothing."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._tables: list[pd.DataFrame] = []

    def __call__(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        """Answer by what a row is, so that different rows have different answers."""
        if ID in frame.columns:
            raise InputError(f"A column is named {ID!r}, as the file names its rows; rename it in table and graph.")
        codes = _codes(frame)
        fresh = frame.assign(**{ID: [f"{code:016x}" for code in codes]}).drop_duplicates(ID)
        fresh = fresh[~fresh[ID].isin(self._known)]
        self._known.update(fresh[ID])
        if len(self._known) > _MOST_ROWS:
            raise InputError(f"The audit asks about over {_MOST_ROWS} rows; pass fewer --points or --interventions.")
        self._tables.append(fresh[[ID, *frame.columns]])
        return 0.05 + 0.9 * codes / 2.0**64

    def rows(self) -> pd.DataFrame:
        """Return them, each once."""
        return pd.concat(self._tables, ignore_index=True)


def from_predictions(path: Path, inputs: Sequence[str] | None) -> Foreign:
    """Read what a model has said about rows, to be looked up by what is in a row."""
    with TableFile(path).opened(labels=[ID]) as opened:
        probabilities = [name for name in opened.names if name.startswith(PROBABILITY) and name.endswith("]")]
        wanted = probabilities or [ANSWER]
        absent = [name for name in (ID, *wanted) if name not in opened.names]
        if absent:
            raise InputError(
                f"{path} lacks the column {absent[0]!r}; it needs {ID} as ciplearn imagine has written it, and "
                f"{ANSWER} or {PROBABILITY}LABEL]."
            )
        table = opened.read([ID, *wanted])
    columns = {}
    for name in wanted:
        column = text_as_numbers(table[name])
        if column is None or column.isna().any():
            words = [repr(cell) for cell in table[name] if text_as_numbers(pd.Series([cell])) is None]
            raise InputError(
                f"Column {name!r} of {path} holds {(words or ['an empty cell'])[0]}; every row needs a number."
            )
        columns[name] = column.to_numpy()
    answers = pd.DataFrame(columns, index=table[ID].astype(str))
    answers = answers[~answers.reset_index().duplicated().to_numpy()]
    if answers.index.has_duplicates:
        twice = answers.index[answers.index.duplicated()][0]
        raise InputError(f"{path} has several predictions for the row {twice}; keep one.")
    classes = [name[len(PROBABILITY) : -1] for name in probabilities] or None

    def ask(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        rows = answers.reindex([f"{code:016x}" for code in _codes(frame)])
        missing = int(rows.isna().any(axis=1).sum())
        if missing:
            raise InputError(
                f"{path} lacks {missing} of {len(frame)} rows that are asked about; pass the options that ciplearn "
                "imagine was called with, or imagine the rows anew."
            )
        return rows.to_numpy()

    return Foreign(str(path), ask, classes, None if inputs is None else tuple(inputs))


def _codes(frame: pd.DataFrame) -> np.ndarray[Any, Any]:  # (n,)
    """A number per row by which it is known: the hash of its cells in the order of their names."""
    cells = {}
    for name in sorted(frame.columns):
        column = frame[name]
        if holds_numbers(column):
            values = column.to_numpy(dtype=np.float64)
            size = np.where(values == 0, 1.0, np.abs(values))
            scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
            # Adding zero makes one of the two zeros.
            cells[name] = pd.Series(np.round(values * scale) / scale + 0.0)
        else:
            cells[name] = pd.Series(column.astype(str).to_numpy(dtype=object))
    return pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy()
