"""`TableWriter`: a table that is written piece by piece, in the notation that the ending of its name says."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from ciplearn._core.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

_PARQUET = (".parquet", ".pq")
_TABS = (".tsv", ".tab")
_COMMAS = (".csv", ".txt")

# Values that a column may hold, by its name.
Examples = Mapping[str, Sequence[Any]]


class TableWriter(Protocol):
    """Takes the rows of a table, piece by piece."""

    def write(self, rows: pd.DataFrame) -> None:
        """Append rows."""


def check_ending(out: Path) -> None:
    """Refuse a name whose ending says a notation that is not written, before any work is done."""
    name = out.name.lower()
    if name.endswith(_PARQUET):
        _arrow()
    elif not name.removesuffix(".gz").endswith(_TABS + _COMMAS) and "." in name and not _is_device(out):
        raise InputError(f"{out} must end in .csv, .csv.gz, .tsv or .parquet; name it so.")


@contextmanager
def written_table(out: Path | None, examples: Examples | None = None) -> Iterator[TableWriter]:
    """Open a table to write; after an error nothing has changed.

    ``out``: Parquet, tabs or commas by its ending; without an ending, on a device and on standard output, commas.
    ``examples``: of columns whose first rows may hold no value, so that these do not tell what the column holds.
    """
    import gzip

    from ciplearn._core.files import whole_file

    if out is None:
        yield _Text(sys.stdout.buffer, ",")
        return
    check_ending(out)
    name = out.name.lower()
    with whole_file(out) as stream:
        separator = "\t" if name.removesuffix(".gz").endswith(_TABS) else ","
        if name.endswith(_PARQUET):
            parquet = _Parquet(stream, examples or {})
            yield parquet
            parquet.close()
        elif name.endswith(".gz"):
            # Without name and time, so that the same rows are the same bytes.
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                yield _Text(packed, separator)
        else:
            yield _Text(stream, separator)


class _Text:
    def __init__(self, stream: Any, separator: str) -> None:
        self.stream, self.separator, self.header = stream, separator, True

    def write(self, rows: pd.DataFrame) -> None:
        rows.to_csv(self.stream, sep=self.separator, index=False, header=self.header, lineterminator="\n")
        self.header = False


class _Parquet:
    def __init__(self, stream: IO[bytes], examples: Examples) -> None:
        self.stream, self.arrow = stream, _arrow()
        self.kinds = {name: self.arrow.array(list(values)).type for name, values in examples.items()}
        self.writer: Any = None

    def write(self, rows: pd.DataFrame) -> None:
        schema = self.writer.schema if self.writer is not None else self._schema(rows)
        table = self.arrow.Table.from_pandas(rows, schema=schema, preserve_index=False)
        if self.writer is None:
            self.writer = self.arrow.parquet.ParquetWriter(self.stream, schema, write_page_checksum=True)
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()

    def _schema(self, rows: pd.DataFrame) -> Any:
        found = self.arrow.Schema.from_pandas(rows, preserve_index=False).remove_metadata()
        for name, kind in self.kinds.items():
            found = found.set(found.get_field_index(name), self.arrow.field(name, kind))
        return found


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet files need pyarrow, which is not installed; pip install 'ciplearn[parquet]', or write CSV."
        ) from error
    return pyarrow


def _is_device(out: Path) -> bool:
    """Tell whether a name is one of a device or a pipe, which has no ending of its own; a folder is refused later."""
    return out.exists() and not out.is_file()
