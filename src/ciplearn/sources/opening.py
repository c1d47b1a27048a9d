"""What people pass as a table that is read piece by piece: paths, and what other libraries hold in pieces."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.wording import shortened
from ciplearn.sources.arrow_cells import arrow_cells
from ciplearn.sources.base import CHUNK_ROWS, Part, Source
from ciplearn.sources.table_file import TableFile
from ciplearn.sources.table_files import TableFiles


def as_source(table: Any) -> Source | None:
    """Return a path, a pattern, a pyarrow dataset or a Ray dataset as a source; None for anything else.

    Examples
    --------
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

    Examples
    --------
    >>> from ciplearn.sources import open_source
    >>> open_source(3)
    Traceback (most recent call last):
    ...
    ciplearn._core.errors.InputTypeError: A table that streams is a path, a pattern, a pyarrow dataset or a Ray dataset, got int; pass for example 'rows/*.parquet'.
    """  # noqa: E501
    source = as_source(table)
    if source is None:
        raise InputTypeError(
            f"A table that streams is a path, a pattern, a pyarrow dataset or a Ray dataset, got "
            f"{type(table).__name__}; pass for example 'rows/*.parquet'."
        )
    return source


class _Dataset(Source):
    """A table in pieces that another library holds; it is known by the sizes of these."""

    def identity(self) -> dict[str, Any]:
        parts = self.parts()
        text = " ".join(f"{part.where}:{part.n_rows}" for part in parts)
        digest = hashlib.sha256(text.encode()).hexdigest()
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
        return [
            _ArrowFragment(
                str(getattr(piece, "path", f"fragment {place}")), piece.count_rows(), piece, self.dataset.schema
            )
            for place, piece in enumerate(self.dataset.get_fragments())
        ]


class _RayDataset(_Dataset):
    """A ``ray.data.Dataset``; a part is a block, read by the worker that has it near."""

    def __init__(self, dataset: Any) -> None:
        import ray

        self.dataset, self.shown = dataset, "the Ray dataset"
        count, blocks = ray.remote(num_cpus=0)(_size), dataset.to_arrow_refs()
        self._blocks = list(zip(ray.get([count.remote(block) for block in blocks]), blocks, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dataset.schema().names)

    def parts(self) -> Sequence[Part]:
        return [_RayBlock(f"block {place}", n_rows, block) for place, (n_rows, block) in enumerate(self._blocks)]


def _size(block: Any) -> int:
    return len(block)


@dataclass(frozen=True)
class _ArrowFragment(Part):
    """A fragment of a pyarrow dataset."""

    where: str
    n_rows: int | None
    fragment: Any
    schema: Any

    def chunks(
        self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
        import pyarrow

        try:
            batches = self.fragment.to_batches(schema=self.schema, columns=list(columns), batch_size=rows)
            yield from _numbered(batches, columns, labels, self.where)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{self.where} cannot be read: {reason}; mend the file or leave it out.") from error


@dataclass(frozen=True)
class _RayBlock(Part):
    """A block of a Ray dataset, by reference."""

    where: str
    n_rows: int | None
    block: Any

    def chunks(
        self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
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
