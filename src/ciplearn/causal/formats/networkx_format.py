"""networkx graphs, and through networkx GML.

A node may carry ``latent=True`` (or ``observed="no"``), ``roles`` (``"exposure"``, ``"outcome"``, ``"adjusted"``,
several separated by commas) and ``pos=(x, y)``. An edge may carry ``kind``: ``"directed"`` (the default),
``"bidirected"`` or ``"undirected"``. Other attributes are the caller's own and are not read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal.formats.parts import EDGES, ROLES, GraphParts, marks_of
from ciplearn.causal.names import checked_name

if TYPE_CHECKING:
    import networkx

    from ciplearn.causal.drawn_graph import DrawnGraph

_YES = {True, "1", "yes", "true", "True"}
_NO = {False, "0", "no", "false", "False"}
_GML_PLACE = re.compile(r"\((\d+), (\d+)\)")


def read_networkx(graph: networkx.Graph) -> GraphParts:
    """Read a ``DiGraph`` or ``MultiDiGraph``."""
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise GraphError(f"A networkx graph is expected, but {type(graph).__name__} was received; pass a DiGraph.")
    if not graph.is_directed():
        raise GraphError(
            "An undirected networkx graph does not say which node causes which; pass a DiGraph, with kind='undirected' "
            "on the edges whose direction is not known."
        )
    parts = GraphParts()
    for node, marks in graph.nodes(data=True):
        name = checked_name(node)
        parts.nodes.append(name)
        read_marks(parts, name, marks)
    for a, b, marks in graph.edges(data=True):
        kind = marks.get("kind", "directed")
        if kind not in EDGES.values():
            raise GraphError(f"The edge {a!r} to {b!r} has kind {kind!r}; use directed, bidirected or undirected.")
        getattr(parts, kind).append((a, b))
    return parts


def read_marks(parts: GraphParts, name: str, marks: dict[str, Any]) -> None:
    """Read the attributes of a node that have a meaning here."""
    flags = {mark: _flag(name, mark, marks[mark]) for mark in ("latent", "observed") if mark in marks}
    if len(flags) == 2 and flags["latent"] == flags["observed"]:
        raise GraphError(f"The node {name!r} is marked both latent and observed; keep one mark.")
    if flags.get("latent") or not flags.get("observed", True):
        parts.latent.append(name)
    for role in str(marks.get("roles", "")).split(","):
        if role.strip() in ROLES:
            getattr(parts, ROLES[role.strip()]).append(name)
        elif role.strip():
            raise GraphError(f"The node {name!r} has the role {role.strip()!r}; use exposure, outcome or adjusted.")
    if "pos" in marks:
        try:
            x, y = (float(number) for number in marks["pos"])
        except (TypeError, ValueError, OverflowError):
            raise GraphError(f"The node {name!r} has pos={marks['pos']!r}; a position is two numbers.") from None
        parts.positions[name] = (x, y)


def write_networkx(graph: DrawnGraph) -> networkx.DiGraph:
    """Write a ``DiGraph``; a ``MultiDiGraph`` where two nodes may need two edges, that is with other kinds of edges."""
    import networkx

    plain = not graph.bidirected and not graph.undirected
    written = networkx.DiGraph() if plain else networkx.MultiDiGraph()
    for name in graph.nodes:
        roles = ",".join(role for role in marks_of(graph, name)[0] if role != "latent")
        marks = {"latent": name in graph.latent, "roles": roles, "pos": graph.positions.get(name)}
        written.add_node(name, **{mark: value for mark, value in marks.items() if value})
    for kind in EDGES.values():
        written.add_edges_from(getattr(graph, kind), **({} if plain else {"kind": kind}))
    return written


def _flag(name: str, mark: str, value: object) -> bool:
    plain = value.strip() if isinstance(value, str) else value
    if isinstance(plain, str | bool | int):
        if plain in _YES:
            return True
        if plain in _NO:
            return False
    raise GraphError(f"The node {name!r} has {mark}={value!r}; use true or false.")


def read_gml(text: str) -> GraphParts:
    """Read a directed graph from GML text; nodes are named by their label, else by their id."""
    try:
        graph = _parsed(text, "label")
    except GraphSyntaxError as problem:
        if "no 'label' attribute" not in str(problem):
            raise
        graph = _parsed(text, "id")
    for _, marks in graph.nodes(data=True):
        graphics = marks.pop("graphics", None)
        if isinstance(graphics, dict) and {"x", "y"} <= set(graphics):
            marks["pos"] = (graphics["x"], graphics["y"])
    return read_networkx(graph)


def write_gml(graph: DrawnGraph) -> str:
    """Write GML text."""
    import networkx

    written = write_networkx(graph)
    for _, marks in written.nodes(data=True):
        if "latent" in marks:
            marks["latent"] = 1
        if "pos" in marks:
            # GML keeps positions in a block of its own.
            x, y = marks.pop("pos")
            marks["graphics"] = {"x": float(x), "y": float(y)}
    return "\n".join(networkx.generate_gml(written)) + "\n"


def _parsed(text: str, label: str) -> networkx.Graph:
    import networkx

    # What networkx's reader raises on malformed text, its own error first.
    malformed = (networkx.NetworkXError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
    try:
        return networkx.parse_gml(text, label=label)
    except malformed as problem:
        place = _GML_PLACE.search(str(problem))
        line, column = (max(1, int(number)) for number in place.groups()) if place else (1, 1)
        reason = " ".join(str(problem).split()).partition("; use sys")[0] or type(problem).__name__
        raise GraphSyntaxError(f"This is not GML: {reason}", line, column) from None
