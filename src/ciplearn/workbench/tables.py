"""`Table`: the table of a desk, its columns matched with the nodes of the drawing, and what it says against that."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.columns import CATEGORY, CLASSIFICATION, NUMBER, looks_like_codes, task_of, text_as_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.wording import written
from ciplearn.sources.table_file import TableFile
from ciplearn.workbench.document import Document

_LEAST_ROWS = 60  # fewer cannot be split into those that train, judge and are kept
_MOST_TESTS = 200  # that a person waits for
_MOST_COLUMNS = 500  # that the page lists whether they are nodes or not: more than people look through


@dataclass(frozen=True)
class Table:
    """A file with rows."""

    path: Path
    shown: str  # the name that a person knows it by

    @cached_property
    def digest(self) -> str:
        """A checksum of the file: what was trained on another table is told from it."""
        try:
            with self.path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"{self.shown} cannot be read: {error.strerror}; drop it on the page again.") from error

    @cached_property
    def _opened(self) -> tuple[list[str], pd.DataFrame]:
        with TableFile(self.path).opened() as table:
            return table.names, table.read(table.names[:_MOST_COLUMNS])

    @property
    def text(self) -> pd.DataFrame:
        """The cells of the columns that are listed whatever the drawing, as they stand in the file."""
        return self._opened[1]

    @cached_property
    def _columns(self) -> dict[str, tuple[pd.Series, pd.Series | None]]:
        # The text of each column, and its numbers where it reads as such.
        return {str(name): (self.text[name], text_as_numbers(self.text[name])) for name in self.text.columns}

    def _read(self, columns: Iterable[str]) -> None:
        missing = [name for name in columns if name not in self._columns]
        if missing:
            with TableFile(self.path).opened() as table:
                cells = table.read(missing)
            self._columns.update({name: (cells[name], text_as_numbers(cells[name])) for name in missing})

    def kind(self, column: str, kinds: Mapping[str, str]) -> str:
        """Return ``"number"`` or ``"category"``: what a person said, or what the cells read as."""
        return kinds.get(column, CATEGORY if self._columns[column][1] is None else NUMBER)

    def describe(self, document: Document) -> dict[str, Any]:
        """Return what the page shows: each column with its kind, and which nodes have none."""
        every, observed = set(self._opened[0]), document.graph.observed
        drawn = [name for name in observed if name in every]
        self._read(drawn)
        columns = list(dict.fromkeys([*map(str, self.text.columns), *drawn]))
        complete = pd.DataFrame({name: self._columns[name][0] for name in drawn}, index=self.text.index).notna()
        return {
            "name": self.shown,
            "rows": len(self.text),
            "complete": int(complete.all(axis=1).sum()),
            "columns": [self._column(name, document.kinds) for name in columns],
            "columns_left_out": len(every) - len(columns),
            "without_column": [name for name in observed if name not in every],
        }

    def usual_limit(self, document: Document) -> dict[str, Any]:
        """Return how far predictions may move by default, and whether they are probabilities."""
        from ciplearn.evaluation import Limits  # loads torch: the page is greeted without

        outcome = self.typed(document)[document.verdict().outcome]
        probability = task_of(outcome) == CLASSIFICATION
        deviation = 1.0 if probability else float(outcome.std(ddof=0))
        return {"amount": Limits().effect(probability=probability, deviation=deviation), "probability": probability}

    def _column(self, name: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        cells, numbers = self._columns[name]
        kind = self.kind(name, kinds)
        distinct = int(cells.nunique())
        if kind == NUMBER and numbers is not None:
            values = f"{written(numbers.min())} to {written(numbers.max())}"
        else:
            levels = [str(level) for level in cells.value_counts().index[:3]]
            values = ", ".join(levels) + (f" and {distinct - 3} more" if distinct > 3 else "")
        return {
            "name": name,
            "kind": kind,
            "can_be_number": numbers is not None,
            "perhaps_codes": numbers is not None and looks_like_codes(numbers),
            "values": values,
            "missing": int(cells.isna().sum()),
        }

    def typed(self, document: Document) -> pd.DataFrame:
        """Return the complete rows of the drawing's columns, in their kinds."""
        absent = [name for name in document.graph.observed if name not in self._opened[0]]
        if absent:
            raise InputError(
                f"{self.shown} has no column {absent[0]!r}; rename the node, make it latent, or drop another table."
            )
        self._read(document.graph.observed)
        columns = {}
        for name in document.graph.observed:
            text, numbers = self._columns[name]
            if self.kind(name, document.kinds) == CATEGORY:
                columns[name] = text.astype("category")
            elif numbers is not None:
                columns[name] = numbers
            else:
                raise InputError(f"The column {name!r} holds text that is no number; let it be a category.")
        rows = pd.DataFrame(columns).dropna()
        if len(rows) < _LEAST_ROWS:
            raise InputError(
                f"{self.shown} has {len(rows)} rows without a missing value; training needs at least {_LEAST_ROWS}."
            )
        return rows

    def falsified(self, document: Document) -> dict[str, Any]:
        """Test the statements that the graph implies, by `CausalGraph.falsify`."""
        result = document.graph.falsify(self.typed(document), limit=_MOST_TESTS, random_state=0)
        violated = set(result.violated)
        rows = result.tests.astype(object).where(result.tests.notna(), None)
        return {
            "refuted": result.refuted,
            "sentence": str(result),
            "tests": [
                {
                    "statement": str(statement),
                    "left": list(statement.left),
                    "right": list(statement.right),
                    "p": row["p_adjusted"],
                    # The smallest partial correlation that would have been noticed with probability 0.8.
                    "detectable": row["detectable"],
                    "obstacle": row["obstacle"] or "",
                    "refuted": statement in violated,
                }
                for statement, (_, row) in zip(result.statements, rows.iterrows(), strict=True)
            ],
        }
