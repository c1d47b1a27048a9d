"""Files of the same columns that are one table, one below the other in the order of their names."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn._core.wording import shortened
from ciplearn.sources.base import CHUNK_ROWS, PART_ROWS, Part, Source
from ciplearn.sources.table_file import TableFile, identity_of
from ciplearn.sources.text_layout import unpacked_name
from ciplearn.sources.unreadable import reading

_ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".tab", ".txt")

# Of each file, at both ends: enough to tell one from another without reading it all.
_LOOKED_AT = 1 << 16


@dataclass(frozen=True)
class TableFiles(Source):
    r"""Files that match a pattern, or that a folder holds.

    Attributes
    ----------
    shown : str
        The pattern or the folder.
    files : tuple of TableFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ciplearn.sources import TableFiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(2):
    ...         _ = Path(folder, f"{number}.csv").write_text("a,b\n1,x\n2,y\n")
    ...     source = TableFiles.matching(f"{folder}/*.csv")
    ...     print(source.names, [len(chunk) for part in source.parts() for chunk in part.chunks(["a"])])
    ('a', 'b') [2, 2]
    """

    shown: str
    files: tuple[TableFile, ...]

    @classmethod
    def matching(cls, pattern: str | os.PathLike[str], **described: Any) -> TableFiles:
        """Take a file, all files of a folder and its folders, or all that match a pattern such as ``rows/*.parquet``.

        ``described``: how text is read, see `TableFile`.
        """
        path = Path(pattern)
        with reading(path):
            is_folder = path.is_dir()
        if is_folder:
            tables = (file for file in sorted(path.rglob("*")) if unpacked_name(file).endswith(_ENDINGS))
            files = [file for file in tables if file.is_file() and file.name[0] not in "._"]
            if not files:
                raise InputError(f"{path} is a folder without CSV, TSV or Parquet files; pass a folder that has some.")
        elif path.exists() or not glob.has_magic(str(path)):
            files = [path]
        else:
            files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]
            if not files:
                raise InputError(f"No file matches {str(path)!r}; check the pattern.")
        return cls(str(pattern), tuple(TableFile(file, **described) for file in files))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Those of the first file."""
        with self.files[0].opened() as opened:
            return tuple(opened.names)

    def parts(self) -> list[FilePart]:
        """Text file by text file; of Parquet files some row groups each."""
        first, parts = self.files[0].path, list[FilePart]()
        kinds: dict[str, bool] = {}
        for file in self.files:
            if not file.is_parquet:
                parts.append(FilePart(file, str(first), None))
                continue
            with file.opened() as opened:
                groups, numeric = opened.row_group_sizes(), opened.numeric_columns()  # type: ignore[attr-defined]
            kinds = kinds or numeric
            for name in kinds.keys() & numeric.keys():
                if numeric[name] != kinds[name]:
                    here, there = ("numbers" if numbers else "text" for numbers in (numeric[name], kinds[name]))
                    raise InputError(
                        f"Column {name!r} holds {here} in {file.path} and {there} in {first}; write all files with the "
                        "same kinds."
                    )
            for places, n_rows in _grouped(groups):
                parts.append(FilePart(replace(file, row_groups=places), str(first), n_rows))
        return parts

    def numbered(self, columns: Sequence[str], labels: Collection[str], rows: int) -> Iterator[pd.DataFrame]:
        """Read some columns of all files, a number of rows at a time, numbered from 0."""
        start = 0
        for part in self.parts():
            for chunk in part.chunks(columns, labels, rows):
                yield chunk.set_axis(pd.RangeIndex(start, start + len(chunk)))
                start += len(chunk)

    @property
    def is_pipe(self) -> bool:
        """Files are read as often as needed."""
        return False

    @contextmanager
    def kept_from_pipe(self) -> Iterator[TableFiles]:
        """Yield it as it is."""
        yield self

    @property
    def path(self) -> Path:
        """What people call it."""
        return Path(self.shown)

    @property
    def reading(self) -> dict[str, Any]:
        """How the files are read, where that is not in them."""
        return self.files[0].reading

    def read_as(self, described: Mapping[str, Any]) -> TableFiles:
        """Return the same files, to be read in another way."""
        return replace(self, files=tuple(file.read_as(described) for file in self.files))

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(file.size() for file in self.files)

    def digest(self) -> str:
        """Return the SHA-256 of names, sizes and both ends of the files; of a single file that of all its content."""
        if len(self.files) == 1:
            return self.files[0].digest()
        digest = hashlib.sha256()
        for file in self.files:
            with reading(file.path), file.path.open("rb") as stream:
                content = stream.read(_LOOKED_AT)
                stream.seek(-min(_LOOKED_AT, file.size()), os.SEEK_END)
                digest.update(f"{file.path.name} {file.size()} ".encode() + content + stream.read())
        return digest.hexdigest()

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse files that are written to by others while they are read."""
        with ExitStack() as watched:
            for file in self.files:
                watched.enter_context(file.unchanged())
            yield

    def identity(self) -> dict[str, Any]:
        """Name, bytes, digest and reading of all files."""
        return identity_of(self)


@dataclass(frozen=True)
class FilePart(Part):
    """A text file, or some row groups of a Parquet file."""

    file: TableFile
    like: str  # the file whose columns all others must have
    n_rows: int | None = None

    @property
    def where(self) -> str:  # type: ignore[override]
        """The file's path."""
        return str(self.file.path)

    def chunks(
        self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
        """Open the file and read."""
        with self.file.opened(labels=labels) as opened:
            for name in columns:
                if name not in opened.names:
                    needed = "is needed" if self.like == self.where else f"{self.like} has"
                    raise InputError(
                        f"{self.where} lacks the column {name!r}, which {needed}; it has {shortened(opened.names)}."
                    )
            yield from opened.chunks(rows, columns)


def _grouped(sizes: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Neighbouring row groups, as many as make a part."""
    places, n_rows = list[int](), 0
    for place, size in enumerate(sizes):
        if places and n_rows + size > PART_ROWS:
            yield tuple(places), n_rows
            places, n_rows = [], 0
        places.append(place)
        n_rows += size
    if places:
        yield tuple(places), n_rows
