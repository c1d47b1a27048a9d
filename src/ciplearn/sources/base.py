"""A table that is larger than memory: parts that can be read alone, in any process, again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd

# Rows that are read at a time: text takes ten times the memory of its numbers.
CHUNK_ROWS = 1 << 12

# Rows of a part, where the files leave a choice: a second of work, and little to do again where a worker is lost.
PART_ROWS = 1 << 18


class Part(ABC):
    r"""Rows of a table that one worker reads.

    Attributes
    ----------
    where : str
        What people call it: the name of a file.
    n_rows : int or None
        How many rows it has; None where that is known after reading only.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ciplearn.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.csv").write_text("a,b\n1,x\n2,y\n")
    ...     (part,) = open_source(folder).parts()
    ...     print([chunk["b"].tolist() for chunk in part.chunks(["b"])])
    [['x', 'y']]
    """

    where: str
    n_rows: int | None

    @abstractmethod
    def chunks(
        self, columns: Sequence[str], labels: Collection[str] = (), rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
        """Read some columns, a number of rows at a time, numbered from 0; ``labels`` as text, be they numbers."""


class Source(ABC):
    """A table in parts.

    Attributes
    ----------
    shown : str
        What people call it.

    Examples
    --------
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
