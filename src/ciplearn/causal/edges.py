"""Edges as pairs of names in a fixed order, and positions as pairs of numbers."""

from __future__ import annotations

from collections.abc import Iterable

from ciplearn._core.errors import GraphError
from ciplearn.causal.names import checked_name, natural_key

Edge = tuple[str, str]


def checked_edges(edges: Iterable[Edge], kind: str, *, symmetric: bool) -> tuple[Edge, ...]:
    """Return distinct pairs of names in natural order; the ends too where the edge is symmetric."""
    pairs = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Iterable):
            raise GraphError(f"A {kind} edge must be a pair of names, but {edge!r} was received; write ('A', 'B').")
        ends = tuple(edge)
        if len(ends) != 2:
            raise GraphError(f"A {kind} edge must be a pair of names, but {edge!r} was received; write ('A', 'B').")
        a, b = (checked_name(name) for name in ends)
        if a == b:
            raise GraphError(f"No node causes itself, but the {kind} edge {a!r} to {b!r} was received; remove it.")
        pairs.append((a, b) if not symmetric or natural_key(a) < natural_key(b) else (b, a))
    return tuple(sorted(set(pairs), key=lambda pair: (natural_key(pair[0]), natural_key(pair[1]))))


def checked_point(name: str, place: Iterable[float]) -> tuple[float, float]:
    """Return the position of a node as two finite numbers."""
    try:
        x, y = (float(coordinate) for coordinate in place)
    except (TypeError, ValueError):
        x = y = float("nan")
    if not (abs(x) < float("inf") and abs(y) < float("inf")):
        raise GraphError(f"A position must be two finite numbers, but {name!r} was placed at {place!r}; correct it.")
    return x, y
