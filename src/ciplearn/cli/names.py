"""Lists of names as people type them, and as files hold them."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterable


def split_names(text: str | None, known: Container[str] = ()) -> tuple[str, ...] | None:
    """Split at commas; a name that holds a comma stands in double quotes, or is the whole text."""
    if text is None:
        return None
    if text in known:
        return (text,)
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(name.strip() for name in cells if name.strip())


def join_names(names: Iterable[object]) -> str:
    """Return the text that `split_names` reads back."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()
