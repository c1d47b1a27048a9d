"""Tables in parts that can be read alone, in any process, again and again: files, pyarrow datasets, Ray datasets."""

from __future__ import annotations

import glob
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.wording import shortened
from ciplearn.sources.formats import arrow_cells, reading, unpacked_name
from ciplearn.sources.table_file import TableFile, identity_of

CHUNK_ROWS = 1 << 12  # rows that are read at a time: text takes ten times the memory of its numbers

# Rows of a part, where the files leave a choice: a second of work, and little to do again where a worker is lost.
PART_ROWS = 1 << 18

_ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".tab", ".txt")
_LOOKED_AT = 1 << 16  # of each file, at both ends: enough to tell one from another without reading it all
Chunks = Iterator[pd.DataFrame]


class Part(ABC):
    r"""Rows of a table that one worker reads.

    ``where``: what people call it, the name of a file. ``n_rows``: None where that is known after reading only.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from ciplearn.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.csv").write_text("a,b\n1,x\n2,y\n")
    ...     [chunk["b"].tolist() for part in open_source(folder).parts() for chunk in part.chunks(["b"])]
    [['x', 'y']]
    """

    where: str
    n_rows: int | None

    @abstractmethod
    def chunks(self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS) -> Chunks:
        """Read some columns, a number of rows at a time, numbered from 0; ``labels`` as text, be they numbers."""


class Source(ABC):
    """A table in parts; people call it what ``shown`` says.

    >>> import pyarrow.dataset
    >>> from ciplearn.sources import open_source
    >>> source = open_source(pyarrow.dataset.dataset(pyarrow.table({"a": [1.0, 2.0]})))
    >>> source.names
    ('a',)
    """

    shown: str

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """The parts, in the order of the rows; which they are does not depend on the number of workers."""

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a table that others write to while it is read; one in memory stays as it is."""
        yield

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Say which table this is, so that it is known again: name, bytes, a digest and how it is read."""


@dataclass(frozen=True)
class TableFiles(Source):
    r"""Files that match a pattern, or that a folder holds.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from ciplearn.sources import TableFiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.csv").write_text("a,b\n1,x\n2,y\n")
    ...     TableFiles.matching(f"{folder}/*.csv").names
    ('a', 'b')
    """

    shown: str  # the pattern or the folder
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
                parts.append(FilePart(str(file.path), None, file, str(first)))
                continue
            with file.opened() as opened:
                groups, numeric = list(opened.row_groups(PART_ROWS)), opened.numeric_columns()  # type: ignore[attr-defined]
            kinds = kinds or numeric
            for name in kinds.keys() & numeric.keys():
                if numeric[name] != kinds[name]:
                    here, there = ("numbers" if numbers else "text" for numbers in (numeric[name], kinds[name]))
                    why = f"Column {name!r} holds {here} in {file.path} and {there} in {first}"
                    raise InputError(f"{why}; write one kind in all.")
            for chosen, n_rows in groups:
                parts.append(FilePart(str(file.path), n_rows, replace(file, row_groups=chosen), str(first)))
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

    where: str
    n_rows: int | None
    file: TableFile
    like: str  # the file whose columns all others must have

    def chunks(self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS) -> Chunks:
        """Open the file and read."""
        with self.file.opened(labels=labels) as opened:
            for name in columns:
                if name not in opened.names:
                    needed = "is needed" if self.like == self.where else f"{self.like} has"
                    why = f"{self.where} lacks the column {name!r}, which {needed}"
                    raise InputError(f"{why}; it has {shortened(opened.names)}.")
            yield from opened.chunks(rows, columns)


def as_source(table: Any) -> Source | None:
    """Return a path, a pattern, a pyarrow dataset or a Ray dataset as a source; None for anything else.

    >>> from ciplearn.sources import as_source
    >>> as_source([[1.0, 2.0]]) is None
    True
    """
    if isinstance(table, Source):
        return table
    if isinstance(table, str | os.PathLike):
        return TableFiles.matching(table)
    # Without importing what may not be installed.
    package = type(table).__module__
    if package.startswith("pyarrow") and hasattr(table, "get_fragments"):
        return _ArrowDataset(table)
    if package.startswith("ray.data") and hasattr(table, "to_arrow_refs"):
        return _RayDataset(table)
    return None


def open_source(table: Any) -> Source:
    """Return the same, and refuse anything else.

    >>> from ciplearn.sources import open_source
    >>> open_source(3)
    Traceback (most recent call last):
    ...
    ciplearn._core.errors.InputTypeError: A table that streams is a path, a pattern, a pyarrow dataset or a Ray dataset, got int; pass for example 'rows/*.parquet'.
    """  # noqa: E501
    if (source := as_source(table)) is not None:
        return source
    why = f"A table that streams is a path, a pattern, a pyarrow dataset or a Ray dataset, got {type(table).__name__}"
    raise InputTypeError(f"{why}; pass for example 'rows/*.parquet'.")


class _Dataset(Source):
    """A table in pieces that another library holds; it is known by the sizes of these."""

    def identity(self) -> dict[str, Any]:
        parts = self.parts()
        digest = hashlib.sha256(" ".join(f"{part.where}:{part.n_rows}" for part in parts).encode()).hexdigest()
        rows = sum(part.n_rows or 0 for part in parts)
        return {"name": self.shown, "bytes": rows, "sha256": digest, "reading": TableFile.usual_reading()}


class _ArrowDataset(_Dataset):
    """A ``pyarrow.dataset.Dataset``; a part is a fragment, usually a file."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.shown = dataset, "the pyarrow dataset"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dataset.schema.names)

    def parts(self) -> Sequence[Part]:
        pieces = list(self.dataset.get_fragments())
        names = (str(getattr(piece, "path", f"fragment {number}")) for number, piece in enumerate(pieces))
        named, schema = zip(names, pieces, strict=True), self.dataset.schema
        return [_ArrowFragment(name, piece.count_rows(), piece, schema) for name, piece in named]


class _RayDataset(_Dataset):
    """A ``ray.data.Dataset``; a part is a block, read by the worker that has it near."""

    def __init__(self, dataset: Any) -> None:
        import ray

        self.dataset, self.shown = dataset, "the Ray dataset"
        count, blocks = ray.remote(num_cpus=0)(lambda block: len(block)), dataset.to_arrow_refs()
        self._blocks = list(zip(ray.get([count.remote(block) for block in blocks]), blocks, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dataset.schema().names)

    def parts(self) -> Sequence[Part]:
        return [_RayBlock(f"block {number}", n_rows, block) for number, (n_rows, block) in enumerate(self._blocks)]


@dataclass(frozen=True)
class _ArrowFragment(Part):
    where: str
    n_rows: int | None
    fragment: Any
    schema: Any

    def chunks(self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS) -> Chunks:
        import pyarrow

        try:
            batches = self.fragment.to_batches(schema=self.schema, columns=list(columns), batch_size=rows)
            yield from _numbered(batches, columns, labels, self.where)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{self.where} cannot be read: {reason}; mend the file or leave it out.") from error


@dataclass(frozen=True)
class _RayBlock(Part):
    where: str
    n_rows: int | None
    block: Any  # by reference

    def chunks(self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS) -> Chunks:
        import ray

        yield from _numbered(ray.get(self.block).to_batches(rows), columns, labels, self.where)


def _numbered(batches: Any, columns: Sequence[str], labels: Collection[str], where: str) -> Iterator[pd.DataFrame]:
    start = 0
    for batch in batches:
        names = list(batch.schema.names)
        for name in columns:
            if name not in names:
                raise InputError(f"{where} lacks the column {name!r}; it has {shortened(names)}.")
        cells = {name: arrow_cells(name, batch.column(name), where, labels) for name in columns}
        frame = pd.DataFrame(cells).set_axis(pd.RangeIndex(start, start + len(batch)))
        start += len(batch)
        if len(frame):
            yield frame
