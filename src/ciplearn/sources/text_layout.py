"""How a table of text is laid out: by which sign its cells are parted, and whether it has a single column."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

# How the names of packed files end -> what pandas calls the packing; what it does not unpack is read as a stream.
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": None}


def unpacked_name(path: Path) -> str:
    """Return the name of a file in small letters, without the ending that says how it is packed."""
    name = path.name.lower()
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in PACKED else name


def separator_of(path: Path) -> str:
    """Return what parts the cells of a file where nothing else is said: a tab in ``.tsv`` files, else a comma."""
    return "\t" if unpacked_name(path).endswith((".tsv", ".tab")) else ","


def has_one_column(content: Any, reading: dict[str, Any]) -> bool:
    """Whether the first row has one cell; of a stream that can be read only once, as far as that is at hand.

    ``reading``: arguments of `pandas.read_csv`.
    """
    start = content
    again = not isinstance(content, Path) and content.seekable()
    if not isinstance(content, Path) and not again:
        lines = content.peek()
        start = BytesIO(lines[: lines.rfind(b"\n") + 1])
    try:
        return pd.read_csv(start, nrows=1, **reading).shape[1] == 1
    except (pd.errors.EmptyDataError, pd.errors.ParserError):
        # Whoever reads the rows says what is wrong.
        return False
    finally:
        if again:
            content.seek(0)
