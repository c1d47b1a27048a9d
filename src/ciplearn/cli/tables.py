"""Tables in files: CSV, TSV and Parquet, whole or in chunks, always in the order of the file."""

from __future__ import annotations

import hashlib
import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError, MissingDependencyError

# Beside the empty cell and pandas' own list (NA, NaN, null, ...).
_MISSING = "?"

_BLOCK = 1 << 20


@dataclass(frozen=True)
class TableFile:
    """A file that holds a table.

    Attributes
    ----------
    path : Path
    separator : str, optional
        Between the cells of text; by default a comma, or a tab in ``.tsv`` files.
    columns : tuple of str, optional
        Names, for text without a header line.
    skip : int
        Lines to pass over at the top.
    missing : tuple of str
        Further cells that stand for a missing value.
    """

    path: Path
    separator: str | None = None
    columns: tuple[str, ...] | None = None
    skip: int = 0
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.path.exists():
            raise InputError(f"There is no file {str(self.path)!r}; check the path.")
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder, not a table; pass a CSV, TSV or Parquet file.")

    @property
    def is_parquet(self) -> bool:
        """Whether the name says Parquet; every other name is taken for text."""
        return self.path.suffix.lower() in (".parquet", ".pq")

    def read(self, categories: Sequence[str] = ()) -> pd.DataFrame:
        """Read everything: cells of text as text, numbers of Parquet as numbers."""
        with _complaints(self.path):
            frames = list(self._pieces(None, None, categories))
        table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        if table.empty:
            raise InputError(f"{self.path} has no rows; pass a table with at least one.")
        return table

    def chunks(self, rows: int, columns: Sequence[str], categories: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        """Read some columns, a number of rows at a time."""
        with _complaints(self.path):
            yield from self._pieces(rows, columns, categories)

    def names(self) -> list[str]:
        """Return the names of the columns, each there once."""
        with _complaints(self.path):
            names = self._parquet().schema_arrow.names if self.is_parquet else self._header()
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(f"{self.path} has several columns named {repeated[0]!r}; rename all but one of them.")
        return names

    def digest(self) -> str:
        """Return the SHA-256 of the file, by which it is known again."""
        found = hashlib.sha256()
        with _complaints(self.path), self.path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                found.update(block)
        return found.hexdigest()

    def _pieces(
        self, rows: int | None, columns: Sequence[str] | None, categories: Sequence[str]
    ) -> Iterator[pd.DataFrame]:
        names = self.names()
        if self.is_parquet:
            yield from self._parquet_pieces(rows or _BLOCK, list(columns or names), set(categories))
            return
        options: dict[str, Any] = self._text_options() | {
            "names": names,
            "header": 0 if self.columns is None else None,
            "na_values": [_MISSING, *self.missing],
            "index_col": False,
        }
        if rows is None:
            yield pd.read_csv(self.path, **options)
            return
        # All columns are read even where few are asked for: only then does pandas notice a row of too many cells.
        with pd.read_csv(self.path, chunksize=rows, **options) as reader:
            yield from (piece if columns is None else piece[list(columns)] for piece in reader)

    def _text_options(self) -> dict[str, Any]:
        tabs = self.path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        separator = self.separator or ("\t" if tabs else ",")
        # Everything as text: kinds are settled by one rule, not chunk by chunk.
        return {
            "sep": separator,
            "dtype": str,
            "skiprows": self.skip,
            "skipinitialspace": True,
            "encoding": "utf-8-sig",
        }

    def _header(self) -> list[str]:
        first = pd.read_csv(self.path, nrows=1, header=None, keep_default_na=False, **self._text_options())
        found = [str(cell).strip() or f"unnamed {place}" for place, cell in enumerate(first.iloc[0], start=1)]
        if self.columns is None:
            if len(found) == 1 and self.separator is None and any(mark in found[0] for mark in ";\t|"):
                raise InputError(f"{self.path} has the single column {found[0][:60]!r}; pass --separator.")
            return found
        if len(self.columns) != len(found):
            raise InputError(
                f"--columns names {len(self.columns)} columns, but the first row of {self.path} has {len(found)} "
                "cells; name every column."
            )
        return list(self.columns)

    def _parquet(self) -> Any:
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise MissingDependencyError(
                "Parquet files need pyarrow, which is not installed; pip install 'ciplearn[parquet]', or pass CSV."
            ) from error
        return parquet.ParquetFile(self.path)

    def _parquet_pieces(self, rows: int, columns: list[str], categories: set[str]) -> Iterator[pd.DataFrame]:
        import pyarrow

        file = self._parquet()
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            cells = {}
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                numeric = pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)
                if not numeric or name in categories:
                    # In arrow, where whole numbers stay whole beside missing ones.
                    column = column.cast(pyarrow.string())
                cells[name] = column.to_pandas()
            yield pd.DataFrame(cells)


@contextmanager
def _complaints(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would cut them off and go on.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty; pass a table with a header and rows.") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}; pass another file.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save the table as UTF-8 or Parquet.") from error
    except pd.errors.ParserError as error:
        raise InputError(f"{path} is no regular table: {str(error).strip()}; correct that line.") from error
    except pd.errors.ParserWarning as error:
        raise InputError(f"{path} has rows with more cells than its header; name every column.") from error
    except (ValueError, ArithmeticError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a table: {error}; pass a CSV, TSV or Parquet file.") from error
