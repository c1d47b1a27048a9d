"""Tables in files and pipes: CSV, TSV and Parquet, whole or in chunks, always in the order of the rows."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import pandas as pd

from ciplearn._core.errors import InputError, optional_module
from ciplearn._core.files import checksum
from ciplearn._core.wording import shortened
from ciplearn.sources.formats import (
    PACKED,
    ZstandardStream,
    arrow_cells,
    first_row_width,
    is_numeric,
    reading,
    separator_of,
)

# Cells of text that mean a missing value, unless people say otherwise: what spreadsheets, databases and pandas write.
USUAL_MISSING = frozenset(
    {"?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)

# What is said about how to read a table; which cells are missing is the same wherever its columns are.
MISSING = ("missing", "only_missing")
READING = ("separator", "columns", "skip", *MISSING)

COPIED = "\0copied"  # where the cells of a copied column are found: a name that no column has
_ROWS = 100_000
_BLOCK = 1 << 20

# Before 3.1, pandas cuts the first row of a chunk to the width of the table without a word. One column more than the
# first row has then shows the cells that would be lost.
_PANDAS_CUTS_ROWS = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)


@dataclass(frozen=True)
class TableFile:
    """A file or a pipe that holds a table."""

    path: Path
    separator: str | None = None  # between the cells of text; by default a comma, or a tab in ``.tsv`` files
    columns: tuple[str, ...] | None = None  # names, for text without a header line
    skip: int = 0  # lines to pass over at the top
    missing: tuple[str, ...] = ()  # further cells that stand for a missing value, beside empty ones
    # whether these are all: the usual ones, such as NA and None, are then values like others
    only_missing: bool = False
    row_groups: tuple[int, ...] | None = None  # of a Parquet file, the only ones to read
    kept: IO[bytes] | None = field(default=None, compare=False)  # what came out of a pipe

    def __post_init__(self) -> None:
        if not self.path.exists():
            raise InputError(f"There is no file {str(self.path)!r}; check the path.")
        mode = self.path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{self.path} is a folder, not a table; pass a CSV, TSV or Parquet file.")
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not self._is_terminal()):
            raise InputError(f"{self.path} is a device, not a table; pass a CSV, TSV or Parquet file.")

    def _is_terminal(self) -> bool:
        with self.path.open("rb") as stream:
            return stream.isatty()

    @property
    def is_parquet(self) -> bool:
        """Whether the name says Parquet; every other name is taken for text."""
        return self.path.suffix.lower() in (".parquet", ".pq")

    @property
    def is_pipe(self) -> bool:
        """Whether the table can be read only once."""
        return self.kept is None and not self.path.is_file()

    @contextmanager
    def kept_from_pipe(self) -> Iterator[TableFile]:
        """Yield the table so that it can be read several times: a pipe's content is copied once."""
        if not self.is_pipe:
            yield self
            return
        # Without a name, so that a kill leaves nothing behind.
        with tempfile.TemporaryFile() as copy:
            with reading(self.path), self.path.open("rb") as pipe:
                shutil.copyfileobj(pipe, copy, _BLOCK)
            yield replace(self, kept=copy)

    @contextmanager
    def opened(self, labels: Collection[str] = (), copied: str | None = None) -> Iterator[OpenTable]:
        """Read the names of the columns, then yield the table, to be read once.

        ``labels``: columns to return as text, even where they hold numbers. ``copied``: A column to return cell by cell
        as it is, blanks and all, under the name `COPIED`.
        """
        if self.is_pipe and (self.is_parquet or PACKED.get(self.path.suffix.lower())):
            with self.kept_from_pipe() as copy, copy.opened(labels, copied) as again:
                yield again
            return
        with ExitStack() as closing:
            with reading(self.path):
                zstandard = self.path.suffix.lower() == ".zst"
                opens = self.is_pipe or (zstandard and self.kept is None)
                content = closing.enter_context(self.path.open("rb", _BLOCK)) if opens else self._content()
                content = BufferedReader(ZstandardStream(content)) if zstandard else content
                table: OpenTable = (_ParquetTable if self.is_parquet else _TextTable)(self, content, labels, copied)
            closing.callback(table.close)
            yield table

    def numbered(self, columns: Sequence[str], labels: Collection[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read some columns, a number of rows at a time, numbered from 0."""
        with self.opened(labels=labels) as opened:
            yield from opened.chunks(rows, columns)

    @property
    def reading(self) -> dict[str, Any]:
        """How it is read, where that is not in the file."""
        return {entry: getattr(self, entry) for entry in READING}

    @staticmethod
    def usual_reading() -> dict[str, Any]:
        """How a file is read of which nothing is said."""
        return {"separator": None, "columns": None, "skip": 0, "missing": (), "only_missing": False}

    def read_as(self, described: Mapping[str, Any]) -> TableFile:
        """Return the same file, to be read in another way."""
        return TableFile(self.path, **described, kept=self.kept)

    def identity(self) -> dict[str, Any]:
        """Say which table this is and how it is read, so that it is known again."""
        return identity_of(self)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a table that is written to by others while it is read."""
        before = self._state()
        yield
        if self._state() != before:
            raise InputError(f"{self.path} was changed while it was read; wait until it is written, and run again.")

    def digest(self) -> str:
        """Return the SHA-256 of the content, by which it is known again."""
        with reading(self.path):
            return checksum(self.path if self.kept is None else self._content())

    def size(self) -> int:
        """Return the bytes of the content."""
        return os.fstat(self.kept.fileno()).st_size if self.kept is not None else self.path.stat().st_size

    def _state(self) -> tuple[int, ...]:
        """Return what changes when others write to the file, or replace it."""
        if self.kept is not None:
            return ()
        with reading(self.path):
            state = self.path.stat()
        return state.st_ino, state.st_size, state.st_mtime_ns

    def _content(self) -> Any:
        if self.kept is None:
            return self.path
        self.kept.seek(0)
        return self.kept


class OpenTable(ABC):
    """A table whose column names have been read, and whose rows have not."""

    def __init__(self, file: TableFile, names: list[str], labels: Collection[str], copied: str | None) -> None:
        self.file, self.names, self.labels, self.copied = file, names, labels, copied

    def require(self, columns: Collection[str]) -> None:
        """Refuse a table that lacks one of the columns, or has it twice; how others are called does not matter."""
        counts = Counter(self.names)
        for name in columns:
            if not counts[name]:
                why = f"{self.file.path} lacks the column {name!r}, which the model was trained with"
                raise InputError(f"{why}; add it, or rename one of {shortened(self.names)}.")
            if counts[name] > 1:
                raise InputError(f"{self.file.path} has several columns named {name!r}; rename all but one of them.")

    def chunks(self, rows: int, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns, a number of rows at a time, numbered as in the file."""
        self.require([*columns, *([] if self.copied is None else [self.copied])])
        wanted = list(dict.fromkeys(columns))
        start = 0
        while True:
            with reading(self.file.path):
                cells = self._next(rows, wanted)
                if cells is None:
                    return
                chunk = pd.DataFrame(cells)
            chunk.index = pd.RangeIndex(start, start + len(chunk))
            start += len(chunk)
            yield chunk

    def read(self, columns: Sequence[str]) -> pd.DataFrame:
        """Read everything."""
        pieces = list(self.chunks(_ROWS, columns))
        if not any(map(len, pieces)):
            raise InputError(f"{self.file.path} has no rows; pass a table with at least one.")
        return pd.concat(pieces)

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    @abstractmethod
    def _next(self, rows: int, columns: list[str]) -> dict[str, pd.Series] | None:
        """Read the columns of the next rows; None after the last."""


class _TextTable(OpenTable):
    def __init__(self, file: TableFile, content: Any, labels: Collection[str], copied: str | None) -> None:
        separator = file.separator or separator_of(file.path)
        # Every cell as the text it is: kinds and missing values are settled by one rule, not chunk by chunk.
        how: dict[str, Any] = {
            "sep": separator,
            # The quick reader knows separators of one byte.
            "engine": "c" if separator.isascii() else "python",
            "header": None,
            "dtype": str,
            "na_filter": False,
            "index_col": False,
            "skiprows": file.skip,
            "skipinitialspace": copied is None,
            "encoding": "utf-8-sig",
            "compression": "infer" if isinstance(content, Path) else PACKED.get(file.path.suffix.lower()),
        }
        self._width = width = first_row_width(content, how)
        if width == 1:
            # There a blank line is a cell that is missing; elsewhere it is no row.
            how["skip_blank_lines"] = False
        if width is not None and (width == 1 or _PANDAS_CUTS_ROWS):
            how["names"] = range(width + _PANDAS_CUTS_ROWS)
        self._reader = pd.read_csv(content, iterator=True, **how)
        try:
            names = self._named(file)
        except BaseException:
            self._reader.close()
            raise
        super().__init__(file, names, labels, copied)
        self._missing = ["", *file.missing, *(() if file.only_missing else USUAL_MISSING)]

    def _row(self) -> list[str]:
        try:
            self._first: pd.DataFrame | None = self._reader.get_chunk(1)
        except StopIteration:
            raise pd.errors.EmptyDataError from None
        return [str(cell).strip() for cell in self._first.fillna("").iloc[0, : self._width]]

    def _named(self, file: TableFile) -> list[str]:
        """Read the first row: the names of the columns, or cells where these are named already."""
        row = self._row()
        while file.columns is None and row == [""]:
            # Blank lines above the name of a single column.
            row = self._row()
        cells = [cell or f"unnamed {number}" for number, cell in enumerate(row, start=1)]
        if file.columns is None:
            self._first = None
            if len(cells) == 1 and file.separator is None and any(mark in cells[0] for mark in ";\t|"):
                raise InputError(f"{file.path} has the single column {cells[0][:60]!r}; pass --separator.")
        elif len(file.columns) != len(cells):
            raise InputError(
                f"--columns names {len(file.columns)} columns, but the first row of {file.path} has {len(cells)} "
                "cells; name every column."
            )
        return cells if file.columns is None else list(file.columns)

    def close(self) -> None:
        self._reader.close()

    def _next(self, rows: int, columns: list[str]) -> dict[str, pd.Series] | None:
        chunk, self._first = self._first, None
        if chunk is None:
            try:
                # All columns are read even where few are asked for: only then is a row of too many cells noticed.
                chunk = self._reader.get_chunk(rows)
            except StopIteration:
                return None
            if chunk.shape[1] > len(self.names):
                self._refuse_long_rows(chunk)
        numbers = {name: number for number, name in enumerate(self.names)}
        cells = {name: self._cells(name, chunk.iloc[:, numbers[name]]) for name in columns}
        return cells if self.copied is None else {**cells, COPIED: chunk.iloc[:, numbers[self.copied]]}

    def _refuse_long_rows(self, chunk: pd.DataFrame) -> None:
        """Refuse a row with a cell in the column that the table does not have."""
        extra = chunk.iloc[:, len(self.names) :].fillna("")
        long = extra.index[(extra != "").any(axis=1)]
        if len(long):
            row = int(long[0]) + (self.file.columns is not None)
            raise InputError(
                f"{self.file.path} is no regular table: row {row} has more cells than the {len(self.names)} of the "
                "first line; correct that row."
            )

    def _cells(self, name: str, text: pd.Series) -> pd.Series:
        bare = text.str.strip()
        quoted = (bare != text) & bare.str.startswith('"')
        if quoted.any():
            raise InputError(
                f"{self.file.path} has blanks before a quotation mark, as in {text[quoted].iloc[0]!r} of column "
                f"{name!r}, so that cells cannot be told apart while {self.copied!r} is copied; remove these blanks."
            )
        return bare.mask(bare.isin(self._missing))


class _ParquetTable(OpenTable):
    def __init__(self, file: TableFile, content: Any, labels: Collection[str], copied: str | None) -> None:
        advice = "pip install 'ciplearn[parquet]', or pass CSV"
        parquet = optional_module("pyarrow.parquet", "Parquet files need pyarrow", advice)
        # Bytes that were changed on the way are noticed where whoever wrote the file left checksums.
        self._content = parquet.ParquetFile(content, page_checksum_verification=True)
        self._batches: Iterator[Any] | None = None
        super().__init__(file, list(self._content.schema_arrow.names), labels, copied)

    def close(self) -> None:
        self._content.close()

    def row_groups(self, most: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield neighbouring row groups that have at most so many rows together, and how many they have."""
        about, start, n_rows = self._content.metadata, 0, 0
        for group in range(about.num_row_groups):
            size = about.row_group(group).num_rows
            if group > start and n_rows + size > most:
                yield tuple(range(start, group)), n_rows
                start, n_rows = group, 0
            n_rows += size
        if about.num_row_groups:
            yield tuple(range(start, about.num_row_groups)), n_rows

    def numeric_columns(self) -> dict[str, bool]:
        """Whether each column holds numbers, as the file itself says."""
        return {field.name: is_numeric(field.type) for field in self._content.schema_arrow}

    def _next(self, rows: int, columns: list[str]) -> dict[str, pd.Series] | None:
        if self._batches is None:
            read = dict.fromkeys([*columns, *([] if self.copied is None else [self.copied])])
            groups = self.file.row_groups
            self._batches = self._content.iter_batches(batch_size=rows, columns=list(read), row_groups=groups)
        batch = next(self._batches, None)
        if batch is None:
            return None
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        cells = {name: self._cells(name, arrays[name]) for name in columns}
        if self.copied is not None:
            # In arrow's own types, where whole numbers stay whole beside missing ones.
            cells[COPIED] = arrays[self.copied].to_pandas(types_mapper=pd.ArrowDtype)
        return cells

    def _cells(self, name: str, array: Any) -> pd.Series:
        return arrow_cells(name, array, str(self.file.path), self.labels, self.file.missing)


def identity_of(table: Any) -> dict[str, Any]:
    """Say by name, bytes, digest and reading which file or files these are."""
    name = os.fsencode(table.path.name).decode("utf-8", "replace")
    return {"name": name, "bytes": table.size(), "sha256": table.digest(), "reading": table.reading}
