"""networkx graphs.

A node may carry ``latent=True`` (or ``observed="no"``), ``roles`` (``"exposure"``, ``"outcome"``, ``"adjusted"``,
several separated by commas) and ``pos=(x, y)``. An edge may carry ``kind``: ``"directed"`` (the default),
``"bidirected"`` or ``"undirected"``. Other attributes are the caller's own and are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphError
from ciplearn.causal.formats.parts import GraphParts
from ciplearn.causal.names import checked_name

if TYPE_CHECKING:
    import networkx

_ARROWS = {"directed": "->", "bidirected": "<->", "undirected": "--"}
_YES = {True, "1", "yes", "true", "True"}
_NO = {False, "0", "no", "false", "False"}
_ROLES = ("exposure", "outcome", "adjusted")


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
        if kind not in _ARROWS:
            raise GraphError(f"The edge {a!r} to {b!r} has kind {kind!r}; use directed, bidirected or undirected.")
        parts.add_edge(a, _ARROWS[kind], b)
    return parts


def read_marks(parts: GraphParts, name: str, marks: dict[str, Any]) -> None:
    """Read the attributes of a node that have a meaning here."""
    latent = _flag(name, "latent", marks.get("latent", False))
    if "observed" in marks and _flag(name, "observed", marks["observed"]) == latent and "latent" in marks:
        raise GraphError(f"The node {name!r} is marked both latent and observed; keep one mark.")
    if latent or ("observed" in marks and not _flag(name, "observed", marks["observed"])):
        parts.latent.append(name)
    for role in str(marks.get("roles", "")).split(","):
        if role.strip() in _ROLES:
            parts.list_for(role.strip()).append(name)
        elif role.strip():
            raise GraphError(f"The node {name!r} has the role {role.strip()!r}; use exposure, outcome or adjusted.")
    if "pos" in marks:
        try:
            x, y = (float(number) for number in marks["pos"])
        except (TypeError, ValueError, OverflowError):
            raise GraphError(f"The node {name!r} has pos={marks['pos']!r}; a position is two numbers.") from None
        parts.positions[name] = (x, y)


def write_networkx(parts: GraphParts) -> networkx.DiGraph:
    """Write a ``DiGraph``; a ``MultiDiGraph`` where two nodes may need two edges, that is with other kinds of edges."""
    import networkx

    plain = not parts.bidirected and not parts.undirected
    graph = networkx.DiGraph() if plain else networkx.MultiDiGraph()
    for name in parts.nodes:
        graph.add_node(name, **_marks(parts, name))
    for kind, edges in (
        ("directed", parts.directed),
        ("bidirected", parts.bidirected),
        ("undirected", parts.undirected),
    ):
        for a, b in edges:
            if plain:
                graph.add_edge(a, b)
            else:
                graph.add_edge(a, b, kind=kind)
    return graph


def _marks(parts: GraphParts, name: str) -> dict[str, Any]:
    marks: dict[str, Any] = {}
    if name in parts.latent:
        marks["latent"] = True
    if roles := ",".join(parts.roles_of(name)):
        marks["roles"] = roles
    if name in parts.positions:
        marks["pos"] = parts.positions[name]
    return marks


def _flag(name: str, mark: str, value: object) -> bool:
    plain = value.strip() if isinstance(value, str) else value
    if isinstance(plain, str | bool | int):
        if plain in _YES:
            return True
        if plain in _NO:
            return False
    raise GraphError(f"The node {name!r} has {mark}={value!r}; use true or false.")
