"""What may be written in a graph: names, their order and which one a typo meant; edges and tiers; positions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from ciplearn._core.arguments import entries
from ciplearn._core.errors import GraphError

Names = str | Iterable[str]
Edge = tuple[str, str]

# Line breaks, control characters, surrogates and non-characters cannot be drawn, typed or written to XML.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_DIGITS = re.compile(r"([0-9]+)")

# So many letters at least are the beginning of a name.
_BEGINNING = 3


def natural_key(name: str) -> tuple[tuple[str | tuple[int, str], ...], str]:
    """Sort key that reads digits as numbers, so that ``x2`` stands before ``x10``."""
    # re.split puts digits at odd places only: text is compared with text and number with number, first by its length.
    parts = _DIGITS.split(name)
    parts[1::2] = [part.lstrip("0") for part in parts[1::2]]
    return tuple((len(part), part) if place % 2 else part for place, part in enumerate(parts)), name


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names in natural order."""
    return tuple(sorted(set(names), key=natural_key))


def checked_name(name: object) -> str:
    """Return `name` as a plain string, or say why it cannot name a node."""
    if not isinstance(name, str):
        raise GraphError(
            f"A node name must be a string, but {name!r} is of type {type(name).__name__}; convert it, for example "
            "with str()."
        )
    if not name.strip():
        raise GraphError(f"A node name must not be empty, but {name!r} was received; give the node a name.")
    if _UNPRINTABLE.search(name):
        raise GraphError(f"A node name must be one printable line, but {name!r} was received; rename the node.")
    return str(name)


def as_names(value: Names, role: str) -> tuple[str, ...]:
    """Read one name or several; a plain string is one name, repeats count once, the order is kept."""
    if isinstance(value, str):
        return (checked_name(value),)
    names = entries(value)
    if names is None:
        raise GraphError(f"{role} must be a name or a list of names, but {value!r} was received; pass node names.")
    if isinstance(value, set | frozenset):
        # A set has no order of its own: without this, results would change with the hash seed.
        names.sort(key=lambda name: natural_key(str(name)))
    return tuple(dict.fromkeys(checked_name(name) for name in names))


def closest(name: str, known: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Return the known name that was most likely meant, or none: one that begins with it, or is spelt much like it."""
    longer = [other for other in known if len(name) >= _BEGINNING and other.startswith(name)]
    return sorted(longer, key=len)[:1] or difflib.get_close_matches(name, known, n=1, cutoff=cutoff)


def nearest(name: str, known: Sequence[str], kind: str = "nodes") -> str:
    """Return a clause that points at the known name closest to `name`."""
    lowered = {candidate.lower(): candidate for candidate in reversed(known)}
    if meant := closest(name.lower(), list(lowered), 0.5):
        return f"did you mean {lowered[meant[0]]!r}?"
    if not known:
        return f"there are no {kind}."
    shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"the {kind} are {shown}."


def checked_edges(edges: Iterable[Edge], kind: str, *, symmetric: bool) -> tuple[Edge, ...]:
    """Return distinct pairs of names in natural order; the ends too where the edge is symmetric."""
    # A million edges have a few thousand names: each is checked and put in order once.
    checked: dict[str, str] = {}
    pairs = set()
    for edge in edges:
        ends = None if isinstance(edge, str) else entries(edge)
        if ends is None or len(ends) != 2:
            raise GraphError(f"A {kind} edge must be a pair of names, but {edge!r} was received; write ('A', 'B').")
        for end in ends:
            if not isinstance(end, str) or end not in checked:
                name = checked_name(end)
                checked[name] = name
        a, b = checked[ends[0]], checked[ends[1]]
        if a == b:
            raise GraphError(f"No node causes itself, but the {kind} edge {a!r} to {b!r} was received; remove it.")
        pairs.add((a, b))
    rank = {name: place for place, name in enumerate(in_order(checked.values()))}
    if symmetric:
        pairs = {(a, b) if rank[a] < rank[b] else (b, a) for a, b in pairs}
    return tuple(sorted(pairs, key=lambda pair: (rank[pair[0]], rank[pair[1]])))


def tiers_of(directed: Iterable[Edge]) -> list[tuple[str, ...]]:
    """Groups of nodes, each of which acts on all later ones; none where the edges are not exactly those of tiers."""
    parents: dict[str, set[str]] = {}
    for a, b in directed:
        parents.setdefault(a, set())
        parents.setdefault(b, set()).add(a)
    alike: dict[frozenset[str], list[str]] = {}
    for name, causes in parents.items():
        alike.setdefault(frozenset(causes), []).append(name)
    earlier: set[str] = set()
    tiers = []
    for before, names in sorted(alike.items(), key=lambda tier: len(tier[0])):
        if before != earlier:
            return []
        earlier.update(names)
        tiers.append(in_order(names))
    return tiers


def checked_point(name: str, place: Iterable[float | str]) -> tuple[float, float]:
    """Return the position of a node as two finite numbers."""
    try:
        x, y = (float(coordinate) for coordinate in place)
    except (TypeError, ValueError, OverflowError):
        x = y = float("nan")
    if not (abs(x) < float("inf") and abs(y) < float("inf")):
        raise GraphError(f"A position must be two finite numbers, but {name!r} was placed at {place!r}; correct it.")
    return x, y
