"""The classes that a saved causal model may be made of: each registers itself by the line ``@kept`` above it."""

from __future__ import annotations

from typing import TypeVar

_Part = TypeVar("_Part", bound=type)

# By name; nothing else is ever made from a file.
KEPT: dict[str, type] = {}


def kept(part: _Part) -> _Part:
    """Register a dataclass whose fields are data, networks, or registered themselves.

    A class that cannot be made from its fields alone has a ``restored(fields)`` that makes one.
    """
    KEPT[part.__name__] = part
    return part
