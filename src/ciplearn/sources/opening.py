"""What people pass as a table that is read piece by piece."""

from __future__ import annotations

import os
from typing import Any

from ciplearn._core.errors import InputTypeError
from ciplearn.sources.base import Source
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
        from ciplearn.sources.arrow_blocks import ArrowDataset

        return ArrowDataset(table)
    if package.startswith("ray.data") and hasattr(table, "to_arrow_refs"):
        from ciplearn.sources.arrow_blocks import RayDataset

        return RayDataset(table)
    return None


def open_source(table: Any) -> Source:
    """The same, where nothing else will do.

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
