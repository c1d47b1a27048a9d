"""What may be written in a graph: names, their order and which one a typo meant; edges, tiers and positions.

A node ``A`` may be a vector, whose values stand in columns ``A[0]``, ``A[1]``, ...
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ciplearn._core.arguments import entries
from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.wording import as_list

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

Names = str | Iterable[str]
Edge = tuple[str, str]

# Line breaks, control characters, surrogates and non-characters cannot be drawn, typed or written to XML.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_DIGITS = re.compile(r"([0-9]+)")
_ENTRY = re.compile(r"(.+)\[\d+\]")

# A keyword at the beginning of a text would make it one of another notation.
_KEYWORD = r"(?:strict|graph|digraph|subgraph|node|edge|dag|pdag|mag|pag|creator|version|comment)\Z"
_BARE = re.compile(rf"(?!{_KEYWORD})[a-z_][a-z0-9_.]*\Z", re.IGNORECASE)

_MOST_SENTENCES = 40  # for readers who see no picture
_BEGINNING = 3  # so many letters at least are the beginning of a name
_ALIKE = 0.65  # two letters of three exchanged are a slip, `income` for `region_code` is none


def quoted(name: str) -> str:
    """Write a name so that it is read back as one word: bare where every reader agrees, else in quotes."""
    return name if _BARE.match(name) else in_quotes(name)


def in_quotes(name: str) -> str:
    """Write a name in quotes."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def natural_key(name: str) -> tuple[tuple[str | tuple[int, str], ...], str]:
    """Sort key that reads digits as numbers, so that ``x2`` stands before ``x10``."""
    # re.split puts digits at odd places only: text is compared with text and number with number, first by its length.
    parts = _DIGITS.split(name)
    parts[1::2] = [part.lstrip("0") for part in parts[1::2]]
    return tuple((len(part), part) if rank % 2 else part for rank, part in enumerate(parts)), name


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names in natural order."""
    return tuple(sorted(set(names), key=natural_key))


def unused(name: str, taken: Collection[str]) -> str:
    """Return the name with as many primes as make it another than those that are taken."""
    while name in taken:
        name += "′"
    return name


def checked_name(name: object) -> str:
    """Return `name` as a plain string, or say why it cannot name a node."""
    if not isinstance(name, str):
        why = f"A node name must be a string, but {name!r} is of type {type(name).__name__}"
        raise GraphError(f"{why}; convert it, for example with str().")
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


def closest(name: str, names: Sequence[str]) -> list[str]:
    """Return the known name that was most likely meant, or none: one that begins with it, or is spelt much like it."""
    longer = [other for other in names if len(name) >= _BEGINNING and other.startswith(name)]
    return sorted(longer, key=len)[:1] or difflib.get_close_matches(name, names, n=1, cutoff=_ALIKE)


def nearest(name: str, names: Sequence[str], kind: str = "nodes") -> str:
    """Return a clause that points at the known name closest to `name`."""
    lowered = {candidate.lower(): candidate for candidate in reversed(names)}
    if meant := closest(name.lower(), list(lowered)):
        return f"did you mean {lowered[meant[0]]!r}?"
    if not names:
        return f"there are no {kind}."
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
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
    rank = {name: number for number, name in enumerate(in_order(checked.values()))}
    if symmetric:
        pairs = {(a, b) if rank[a] < rank[b] else (b, a) for a, b in pairs}
    return tuple(sorted(pairs, key=lambda pair: (rank[pair[0]], rank[pair[1]])))


def heads(nodes: Iterable[str], edges: Iterable[Edge]) -> dict[str, set[str]]:
    """Return for each node the nodes that its edges lead to."""
    led_to: dict[str, set[str]] = {node: set() for node in nodes}
    for a, b in edges:
        led_to[a].add(b)
    return led_to


def turned(edges: Iterable[Edge]) -> list[Edge]:
    """Return edges with their ends exchanged."""
    return [(b, a) for a, b in edges]


def tiers_of(directed: Collection[Edge]) -> list[tuple[str, ...]]:
    """Groups of nodes, each of which acts on all later ones; none where the edges are not exactly those of tiers."""
    alike: dict[frozenset[str], list[str]] = {}
    for name, causes in heads((name for edge in directed for name in edge), turned(directed)).items():
        alike.setdefault(frozenset(causes), []).append(name)
    earlier: set[str] = set()
    tiers = []
    for before, names in sorted(alike.items(), key=lambda tier: len(tier[0])):
        if before != earlier:
            return []
        earlier.update(names)
        tiers.append(in_order(names))
    return tiers


def in_words(graph: CausalGraph) -> str:
    """Return the graph in a sentence, for readers who see no picture."""
    tiers = tiers_of(graph.directed)
    effects: dict[str, list[str]] = {}
    for cause, effect in graph.directed:
        effects.setdefault(cause, []).append(effect)
    sentences = [f"{cause} acts on {as_list(names)}" for cause, names in effects.items()]
    if len(tiers) > 2:
        line = " | ".join(", ".join(tier) for tier in tiers)
        sentences = [f"tiers, each of which acts on all later ones, are {line}"]
    sentences += [f"{a} and {b} have a common cause that nobody measured" for a, b in graph.bidirected]
    sentences += [f"{a} acts on {b}, or {b} on {a}" for a, b in graph.undirected]
    if len(sentences) > _MOST_SENTENCES:
        sentences = [f"{len(graph.nodes)} nodes and {len(graph.directed)} arrows"]
    return f"causal graph: {'; '.join(sentences)}" if sentences else "causal graph"


def checked_point(name: str, point: Iterable[float | str]) -> tuple[float, float]:
    """Return the position of a node as two finite numbers."""
    try:
        x, y = (float(coordinate) for coordinate in point)
    except (TypeError, ValueError, OverflowError):
        x = y = float("nan")
    if not (abs(x) < float("inf") and abs(y) < float("inf")):
        raise GraphError(f"A position must be two finite numbers, but {name!r} was placed at {point!r}; correct it.")
    return x, y


def node_of(column: str, nodes: Collection[str]) -> str:
    """Return the node that a column is an entry of, or the column itself."""
    entry = _ENTRY.fullmatch(column)
    return entry[1] if column not in nodes and entry and entry[1] in nodes else column


def columns_of(node: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold a node: one of its name, or its entries in order; none if there are neither."""
    if node in columns:
        return (node,)
    return tuple(sorted((column for column in columns if node_of(column, (node,)) == node), key=natural_key))


def nodes_of(named: Sequence[str], nodes: Collection[str], columns: Sequence[str], role: str) -> tuple[str, ...]:
    """Return the nodes that names of nodes or columns stand for; a vector counts only if all its entries are named."""
    meant = tuple(node_of(name, nodes) for name in named)
    for name, node in zip(named, meant, strict=True):
        entries = columns_of(node, columns)
        left_out = [entry for entry in entries if name != node and entry not in named]
        if left_out:
            raise InputError(
                f"{role} names {name!r}, one of {len(entries)} columns of the node {node!r}, and leaves out "
                f"{left_out[0]!r}; name the node, or all its columns."
            )
    return tuple(dict.fromkeys(meant))
