"""Rows by their digests: the same for the same values, however a file writes them; and which rows are copies.

Rows of a few categories agree by chance, and are no copies. A row is distinctive if no other different row agrees with it
in all columns but one, or if one of its numbers stands in no other, as do nearly all numbers of that column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import as_numbers, distinct_labels, holds_numbers, written_number
from ciplearn._core.errors import InputError
from ciplearn._core.sampled_numbers import keys

# Of fewer different rows nobody can say which agree by chance.
_LEAST_DIFFERENT = 20

# Of the numbers of a column; where fewer stand in one row only, the next row may well have one of them.
_NEARLY_ALL = 0.9

Array = np.ndarray[Any, Any]


def column_digests(table: pd.DataFrame, names: Sequence[str]) -> Array:  # (n, columns)
    """Return a number per cell, the same for the same value of a column; rows are told by their sum."""
    columns = [keys(_cells(table[name]), place + 1) for place, name in enumerate(names)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), dtype=np.uint64)


def row_digests(table: pd.DataFrame, names: Sequence[str]) -> Array:  # (n,)
    """Return a number per row, the same for the same values in the named columns."""
    return column_digests(table, names).sum(axis=1)


def distinctive(cells: Array, numbers: Sequence[bool]) -> Array:  # (n, columns) -> (n,)
    """Whether each row is one that chance hardly brings twice, so that a row like it is a copy.

    Parameters
    ----------
    cells : array
        Of `column_digests`.
    numbers : sequence of bool
        Whether each column holds numbers.
    """
    totals, first, inverse = np.unique(cells.sum(axis=1), return_index=True, return_inverse=True)
    different = cells[first]
    if len(different) < _LEAST_DIFFERENT:
        return np.zeros(len(cells), dtype=bool)
    rare, neighboured = np.zeros(len(different), dtype=bool), np.zeros(len(different), dtype=bool)
    for place, holds in enumerate(numbers):
        if holds and (once := _stands_once(different[:, place])).mean() > _NEARLY_ALL:
            rare |= once
    if not rare.all():
        for place in range(cells.shape[1]):
            neighboured |= ~_stands_once(totals - different[:, place])
    return (rare | ~neighboured)[inverse]


def copy_groups(table: pd.DataFrame) -> Array:  # (n,)
    """Return a number per row: that of the first row that it is a copy of, its own where it is none."""
    cells = column_digests(table, list(table.columns))
    _, first, inverse, counts = np.unique(cells.sum(axis=1), return_index=True, return_inverse=True, return_counts=True)
    if len(counts) == len(cells):
        return np.arange(len(cells))
    told = distinctive(cells, [_is_number(column) for _, column in table.items()])
    return np.where(told, first[inverse], np.arange(len(cells)))


def _stands_once(values: Array) -> Array:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse] == 1


def _is_number(column: pd.Series) -> bool:
    try:
        return holds_numbers(column)
    except InputError:
        # Dates, lists: refused where the column is used, and text here.
        return False


def _cells(column: pd.Series) -> Array:  # (n,)
    if _is_number(column):
        # In single precision, in which networks compute and files may keep them; 0 and -0 are the same.
        with np.errstate(over="ignore"):
            numbers = as_numbers(column).to_numpy().astype(np.float32) + np.float32(0)
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint32).astype(np.uint64)
    labels, places = distinct_labels(column)
    hashed = [hashlib.blake2b(_plain(label).encode("utf-8", "replace"), digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64)[places]


def _plain(label: str) -> str:
    """Return a label so that codes read the same however a program writes them: ``01`` and ``1.0`` as ``1``."""
    if not written_number(label):
        return label
    whole, _, fraction = label.lstrip("+-").partition(".")
    bare = ".".join(part for part in (whole.lstrip("0") or "0", fraction.rstrip("0")) if part)
    return f"-{bare}" if label.startswith("-") and bare != "0" else bare
