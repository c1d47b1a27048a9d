"""`Table`: the table of a desk, its columns matched with the nodes of the drawing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.columns import CATEGORY, NUMBER, looks_like_codes, text_as_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.wording import written
from ciplearn.sources.table_file import TableFile
from ciplearn.workbench.document import Document

# Fewer complete rows cannot be split into those that train, judge and are kept.
_LEAST_ROWS = 60


@dataclass(frozen=True)
class Table:
    """A file with rows.

    Attributes
    ----------
    path : Path
    shown : str
        The name that a person knows it by.
    """

    path: Path
    shown: str

    @cached_property
    def digest(self) -> str:
        """A checksum of the file: what was trained on another table is told from it."""
        try:
            with self.path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"{self.shown} cannot be read: {error.strerror}; drop it on the page again.") from error

    @cached_property
    def text(self) -> pd.DataFrame:
        """The cells as they stand in the file."""
        with TableFile(self.path).opened() as table:
            return table.read(table.names)

    @cached_property
    def _numbers(self) -> dict[str, pd.Series]:
        # The text of each column as numbers, for those columns that read as such.
        found = {str(name): text_as_numbers(self.text[name]) for name in self.text.columns}
        return {name: numbers for name, numbers in found.items() if numbers is not None}

    def kind(self, column: str, kinds: Mapping[str, str]) -> str:
        """Return ``"number"`` or ``"category"``: what a person said, or what the cells read as."""
        return kinds.get(column, NUMBER if column in self._numbers else CATEGORY)

    def describe(self, document: Document) -> dict[str, Any]:
        """Return what the page shows: each column with its kind, and which nodes have none."""
        nodes, columns = set(document.graph.observed), [str(name) for name in self.text.columns]
        return {
            "name": self.shown,
            "rows": len(self.text),
            "complete": int(self.text[[name for name in columns if name in nodes]].notna().all(axis=1).sum()),
            "columns": [self._column(name, document.kinds) for name in columns],
            "without_column": [name for name in document.graph.observed if name not in columns],
        }

    def _column(self, name: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        cells = self.text[name]
        kind = self.kind(name, kinds)
        distinct = int(cells.nunique())
        if kind == NUMBER and name in self._numbers:
            numbers = self._numbers[name]
            values = f"{written(numbers.min())} to {written(numbers.max())}"
        else:
            levels = [str(level) for level in cells.value_counts().index[:3]]
            values = ", ".join(levels) + (f" and {distinct - 3} more" if distinct > 3 else "")
        return {
            "name": name,
            "kind": kind,
            "can_be_number": name in self._numbers,
            "perhaps_codes": name in self._numbers and looks_like_codes(self._numbers[name]),
            "values": values,
            "missing": int(cells.isna().sum()),
        }

    def typed(self, document: Document) -> pd.DataFrame:
        """Return the complete rows of the drawing's columns, in their kinds.

        Raises
        ------
        InputError
            If an observed node has no column, a number does not read as one, or too few rows are complete.
        """
        absent = [name for name in document.graph.observed if name not in self.text.columns]
        if absent:
            raise InputError(
                f"{self.shown} has no column {absent[0]!r}; rename the node, make it latent, or drop another table."
            )
        columns = {}
        for name in document.graph.observed:
            if self.kind(name, document.kinds) == CATEGORY:
                columns[name] = self.text[name].astype("category")
            elif name in self._numbers:
                columns[name] = self._numbers[name]
            else:
                raise InputError(f"The column {name!r} holds text that is no number; let it be a category.")
        rows = pd.DataFrame(columns).dropna()
        if len(rows) < _LEAST_ROWS:
            raise InputError(
                f"{self.shown} has {len(rows)} rows without a missing value; training needs at least {_LEAST_ROWS}."
            )
        return rows
