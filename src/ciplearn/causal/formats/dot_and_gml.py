"""DOT of Graphviz, graphs of networkx, and GML by way of networkx.

In DOT ``a -> b`` is a cause, ``a -> b [dir=both]`` a bidirected edge, ``a -> b [dir=none]`` an undirected one. An edge
of networkx may carry ``kind``: ``"directed"`` (the default), ``"bidirected"`` or ``"undirected"``. A node may carry
``latent`` (or ``observed="no"``), ``roles`` (``"exposure"``, ``"outcome"``, ``"adjusted"``, several separated by
commas) and ``pos``, two numbers. Other attributes say how to draw, or are the caller's, and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphError, GraphSyntaxError
from ciplearn.causal.formats.json_format import EDGES, ROLES, GraphParts
from ciplearn.causal.formats.text import Cursor, Token
from ciplearn.causal.names import checked_name, in_quotes

if TYPE_CHECKING:
    import networkx

    from ciplearn.causal.drawn_graph import DrawnGraph

_ARROWS = {"forward": "->", "back": "<-", "both": "<->", "none": "--"}
_MEANT = ("dir", "latent", "observed", "roles")
_DEEPEST = 50
_FLAGS: dict[object, bool] = dict.fromkeys((True, "1", "yes", "true", "True"), True)
_FLAGS |= dict.fromkeys((False, "0", "no", "false", "False"), False)
_GML_PLACE = re.compile(r"\((\d+), (\d+)\)")


def read_dot(text: str) -> GraphParts:
    """Read the one graph of a DOT text."""
    return _DotReader(text).graph()


def write_dot(graph: DrawnGraph) -> str:
    """Write DOT text that Graphviz draws: latent nodes and bidirected edges dashed."""
    lines = ["digraph {"]
    for name in graph.nodes:
        roles, position = graph._marks(name)
        marks = ["latent=true", "style=dashed"] if roles[:1] == ["latent"] else []
        if roles := [role for role in roles if role != "latent"]:
            marks.append(f'roles="{",".join(roles)}"')
        marks += [f'pos="{position}"'] if position else []
        attributes = f" [{', '.join(marks)}]" if marks else ""
        lines.append(f"  {in_quotes(name)}{attributes};")
    looks = {"directed": "", "bidirected": " [dir=both, style=dashed]", "undirected": " [dir=none]"}
    for kind, look in looks.items():
        lines += [f"  {in_quotes(a)} -> {in_quotes(b)}{look};" for a, b in getattr(graph, kind)]
    return "\n".join([*lines, "}", ""])


class _DotReader(Cursor):
    """A graph of statements, each a chain of nodes and subgraphs with attributes behind it."""

    pattern = re.compile(
        r"""
        (?P<space>[\s\ufeff]+)
      | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)
      | (?P<arrow>->|--)
      | (?P<sign>[{}\[\];,=:+])
      | (?P<quoted>"(?:[^"\\]|\\.)*+")
      | (?P<word>[\w.]+|(?<!\w)-[\d.]+|[^\s\x00-\x7f]+)
      | (?P<html><(?:[^<>]|<[^<>]*+>)*+>)
        """,
        re.VERBOSE | re.DOTALL,
    )

    refusal = "This is not DOT: "
    directed = False
    depth = -1

    def graph(self) -> GraphParts:
        self.word("strict")
        self.directed = self.word("digraph")
        if not self.directed and not self.word("graph"):
            raise self.error(self.peek(), "This is not DOT: it begins with neither digraph nor graph")
        if self.peek().kind == "name":
            self.name("A name")
        if not self.passes("{"):
            raise self.error(self.peek(), f"This is not DOT: '{{' is missing before {self.peek().text!r}")
        self.block()
        return self.finished()

    def block(self) -> Collection[Token]:
        """Read on up to the closing brace and return the nodes, each once."""
        self.depth += 1
        if self.depth > _DEEPEST:
            wrong = f"Subgraphs stand more than {_DEEPEST} deep within each other; write them flat"
            raise self.error(self.peek(), wrong)
        inside: dict[str, Token] = {}
        while not self.passes("}"):
            if not self.passes(";,"):
                inside.update((node.text, node) for node in self.statement())
        self.depth -= 1
        return inside.values()

    def statement(self) -> list[Token]:
        first = self.peek()
        if any(self.word(default) for default in ("node", "edge", "graph")):
            for attribute in set(_MEANT) & {key.text for key, _ in self.attributes()}:
                wrong = f"{attribute} in the defaults of {first.text!r} is not read; write it at each node or edge"
                raise self.error(first, wrong)
            return []
        ends, arrows = self.chain()
        if first.kind == "name" and not arrows and self.passes("="):
            self.parts.nodes.pop()  # an attribute of the graph: no node after all
            self.value()
            return []
        is_node = self.tokens[self.next - 1].text != "}"
        for arrow in arrows:
            if arrow.text != ("->" if self.directed else "--"):
                raise self.error(arrow, f"This is not DOT: {arrow.text!r} is no edge of this kind of graph")
        marks: dict[str, Any] = {key.text: "true" if value is None else value.text for key, value in self.attributes()}
        if arrows:
            direction = marks.get("dir", "forward" if self.directed else "none").lower()
            if direction not in _ARROWS:
                raise self.error(first, f"dir={direction} is not known; use forward, back, both or none")
            for left, right in pairwise(ends):
                self.join(left, _ARROWS[direction], right)
        elif is_node:
            if "pos" in marks:
                marks["pos"] = marks["pos"].rstrip("!").split(",")
            read_marks(self.parts, next(iter(ends[0])).text, marks)
        return [node for side in ends for node in side]

    def end(self) -> Collection[Token]:
        """Read one end of an edge: a node, or all nodes of a subgraph."""
        if self.word("subgraph") and self.peek().kind == "name":
            self.name("A name")
        if self.passes("{"):
            return self.block()
        node = self.declare(self.name("A name"))
        # What follows the colon is a port: the side of the node at which the edge is drawn.
        while self.passes(":"):
            self.name("A port")
        return [node]

    def name(self, what: str) -> Token:
        """Read a word, or quoted pieces that a plus joins."""
        token = super().name(what)
        while token.quoted and self.passes("+"):
            token = replace(token, text=token.text + super().name(what).text)
        return token

    def word(self, keyword: str) -> bool:
        """Pass a keyword, in letters of any size, if it comes next."""
        token = self.peek()
        comes = token.kind == "name" and not token.quoted and token.text.lower() == keyword
        self.next += comes
        return comes


def read_networkx(graph: networkx.Graph) -> GraphParts:
    """Read a ``DiGraph`` or ``MultiDiGraph``."""
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise GraphError(f"A networkx graph is expected, but {type(graph).__name__} was received; pass a DiGraph.")
    if not graph.is_directed():
        why = "An undirected networkx graph does not say which node causes which"
        raise GraphError(f"{why}; pass a DiGraph, with kind='undirected' on the edges whose direction is not known.")
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
    """Return a networkx ``DiGraph``, or a ``MultiDiGraph`` where there are bidirected or undirected edges."""
    import networkx

    plain = not graph.bidirected and not graph.undirected
    written = networkx.DiGraph() if plain else networkx.MultiDiGraph()
    for name in graph.nodes:
        roles = ",".join(role for role in graph._marks(name)[0] if role != "latent")
        marks = {"latent": name in graph.latent, "roles": roles, "pos": graph.positions.get(name)}
        written.add_node(name, **{mark: value for mark, value in marks.items() if value})
    for kind in EDGES.values():
        written.add_edges_from(getattr(graph, kind), **({} if plain else {"kind": kind}))
    return written


def _flag(name: str, mark: str, value: object) -> bool:
    plain = value.strip() if isinstance(value, str) else value
    if isinstance(plain, str | bool | int) and plain in _FLAGS:
        return _FLAGS[plain]
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
        spot = _GML_PLACE.search(str(problem))
        line, column = (max(1, int(number)) for number in spot.groups()) if spot else (1, 1)
        reason = " ".join(str(problem).split()).partition("; use sys")[0] or type(problem).__name__
        raise GraphSyntaxError(f"This is not GML: {reason}", line, column) from None
