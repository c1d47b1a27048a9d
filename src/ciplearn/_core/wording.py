"""Names as they stand in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def as_set(names: Iterable[str]) -> str:
    """Write names as a set: ``{A, L}``, and ``∅`` for none."""
    inside = ", ".join(names)
    return f"{{{inside}}}" if inside else "∅"


def as_list(names: Iterable[str]) -> str:
    """Write one name or several as a list: ``A``, ``A and L``, ``A, L and S``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
