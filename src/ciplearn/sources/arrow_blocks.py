"""Tables that other libraries hold: the fragments of a pyarrow dataset, the blocks of a Ray dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn.sources.arrow_cells import arrow_cells
from ciplearn.sources.base import CHUNK_ROWS, Part, Source
from ciplearn.sources.table_file import TableFile, shortened


class ArrowDataset(Source):
    """A ``pyarrow.dataset.Dataset``; a part is a fragment, usually a file."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.shown = dataset, "the pyarrow dataset"

    @property
    def names(self) -> tuple[str, ...]:
        """As its schema has them."""
        return tuple(self.dataset.schema.names)

    def parts(self) -> Sequence[Part]:
        """The fragments."""
        schema = self.dataset.schema
        return [
            ArrowPart(str(getattr(fragment, "path", f"fragment {place}")), fragment.count_rows(), fragment, schema)
            for place, fragment in enumerate(self.dataset.get_fragments())
        ]

    def identity(self) -> dict[str, Any]:
        """Rows and fragments."""
        return _identity(self.shown, self.parts())


class RayDataset(Source):
    """A ``ray.data.Dataset``; a part is a block, read by the worker that has it near."""

    def __init__(self, dataset: Any) -> None:
        import ray

        self.dataset, self.shown = dataset, "the Ray dataset"
        count, blocks = ray.remote(num_cpus=0)(_size), dataset.to_arrow_refs()
        self._blocks = list(zip(ray.get([count.remote(block) for block in blocks]), blocks, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """As its schema has them."""
        return tuple(self.dataset.schema().names)

    def parts(self) -> Sequence[Part]:
        """The blocks."""
        return [RayBlock(f"block {place}", n_rows, block) for place, (n_rows, block) in enumerate(self._blocks)]

    def identity(self) -> dict[str, Any]:
        """Rows and blocks."""
        return _identity(self.shown, self.parts())


@dataclass(frozen=True)
class ArrowPart(Part):
    """A fragment of a pyarrow dataset."""

    where: str
    n_rows: int | None
    fragment: Any
    schema: Any

    def chunks(
        self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
        """Read batch by batch."""
        import pyarrow

        try:
            batches = self.fragment.to_batches(schema=self.schema, columns=list(columns), batch_size=rows)
            yield from _numbered(batches, columns, labels, self.where)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{self.where} cannot be read: {reason}; mend the file or leave it out.") from error


@dataclass(frozen=True)
class RayBlock(Part):
    """A block of a Ray dataset, by reference."""

    where: str
    n_rows: int | None
    block: Any

    def chunks(
        self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
        """Fetch the block."""
        import ray

        yield from _numbered(ray.get(self.block).to_batches(rows), columns, labels, self.where)


def _size(block: Any) -> int:
    return len(block)


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


def _identity(shown: str, parts: Sequence[Part]) -> dict[str, Any]:
    text = " ".join(f"{part.where}:{part.n_rows}" for part in parts)
    rows = sum(part.n_rows or 0 for part in parts)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"name": shown, "bytes": rows, "sha256": digest, "reading": TableFile.usual_reading()}
