"""DOT, through pydot (the extra ``ciplearn[dot]``).

``a -> b`` is a cause, ``a -> b [dir=both]`` a bidirected edge, ``a -> b [dir=none]`` an undirected one. A node may
carry ``latent=true``, ``roles="exposure,outcome"`` and ``pos="x,y"``. Other attributes say how to draw, and are not
read.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphError, GraphSyntaxError, MissingDependencyError
from ciplearn.causal.formats.lexer import syntax_error
from ciplearn.causal.formats.networkx_format import read_marks
from ciplearn.causal.formats.parts import GraphParts
from ciplearn.causal.names import checked_name

if TYPE_CHECKING:
    import pydot

_ARROWS = {"forward": "->", "back": "<-", "both": "<->", "none": "--"}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(:.*)?\Z', re.DOTALL)
_BARE = re.compile(r"([^\s\":<>]+)(:.*)?\Z", re.DOTALL)
_DEFAULTS = ("node", "edge", "graph")


def read_dot(text: str) -> GraphParts:
    """Read the one graph of a DOT text."""
    parsed = _parse(text)
    if len(parsed) != 1:
        raise syntax_error(text, 0, f"One graph is expected, but the DOT text holds {len(parsed)}")
    parts = GraphParts()
    graph = parsed[0]
    _read_block(text, parts, graph.obj_dict, directed=graph.get_type() == "digraph")
    return parts


def write_dot(parts: GraphParts) -> str:
    """Write DOT text that Graphviz draws: latent nodes and bidirected edges dashed."""
    lines = ["digraph {"]
    for name in parts.nodes:
        marks = ["latent=true", "style=dashed"] if name in parts.latent else []
        roles = [role for role in ("exposure", "outcome", "adjusted") if name in parts.list_for(role)]
        if roles:
            marks.append(f'roles="{",".join(roles)}"')
        if name in parts.positions:
            x, y = parts.positions[name]
            marks.append(f'pos="{x!r},{y!r}"')
        attributes = f" [{', '.join(marks)}]" if marks else ""
        lines.append(f"  {_written(name)}{attributes};")
    lines += [f"  {_written(a)} -> {_written(b)};" for a, b in parts.directed]
    lines += [f"  {_written(a)} -> {_written(b)} [dir=both, style=dashed];" for a, b in parts.bidirected]
    lines += [f"  {_written(a)} -> {_written(b)} [dir=none];" for a, b in parts.undirected]
    return "\n".join([*lines, "}", ""])


def _parse(text: str) -> list[pydot.Dot]:
    with warnings.catch_warnings():
        # pydot calls pyparsing by its former names: nothing that a reader of graphs can mend.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _parse_quietly(text)


def _parse_quietly(text: str) -> list[pydot.Dot]:
    try:
        from pydot.dot_parser import GraphParser
        from pyparsing import ParseBaseException
    except ImportError:
        raise MissingDependencyError(
            "Reading DOT needs pydot, which is not installed; run: pip install 'ciplearn[dot]'"
        ) from None
    try:
        return list(GraphParser.parser.parse_string(text, parse_all=True))
    except ParseBaseException as problem:
        raise GraphSyntaxError(f"This is not DOT: {problem.msg}", problem.lineno, problem.column) from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as problem:
        raise syntax_error(text, 0, f"This is not DOT: {problem}") from None


def _read_block(text: str, parts: GraphParts, block: Mapping[str, Any], *, directed: bool) -> list[str]:
    """Read the statements of a graph or subgraph, and return the names of its nodes."""
    inside: list[str] = []
    for key, statements in block["nodes"].items():
        for statement in statements:
            attributes = _attributes(statement)
            if key in _DEFAULTS:
                _refuse_meaning(text, key, attributes)
                continue
            name = _name(text, key)
            inside.append(name)
            parts.nodes.append(name)
            read_marks(parts, name, _marks(attributes))
    for statements in block["subgraphs"].values():
        for statement in statements:
            inside += _read_block(text, parts, statement, directed=directed)
    for statements in block["edges"].values():
        for statement in statements:
            for a, b, left, right in _ends(text, parts, statement, directed=directed):
                inside += [a, b]
                _join(text, parts, a, b, _arrow(text, _attributes(statement), directed=directed), (left, right))
    return list(dict.fromkeys(inside))


def _ends(
    text: str, parts: GraphParts, statement: Mapping[str, Any], *, directed: bool
) -> Iterator[tuple[str, str, Any, Any]]:
    sides = []
    for point in statement["points"]:
        if isinstance(point, str):
            names = [_name(text, point)]
            parts.nodes += names
        else:
            names = _read_block(text, parts, getattr(point, "obj_dict", point), directed=directed)
        sides.append((point, names))
    for (left, lefts), (right, rights) in pairwise(sides):
        for a in lefts:
            for b in rights:
                yield a, b, left, right


def _join(text: str, parts: GraphParts, a: str, b: str, arrow: str, written: tuple[Any, Any]) -> None:
    if a == b:
        offset = text.find(written[0]) if isinstance(written[0], str) else 0
        said = f"No node causes itself, but an edge from {a!r} to itself was found; remove it"
        raise syntax_error(text, max(0, offset), said)
    parts.add_edge(a, arrow, b)


def _arrow(text: str, attributes: Mapping[str, str], *, directed: bool) -> str:
    direction = attributes.get("dir", "forward" if directed else "none").lower()
    if direction not in _ARROWS:
        raise syntax_error(
            text, max(0, text.find(direction)), f"dir={direction} is not known; use forward, back, both or none"
        )
    return _ARROWS[direction]


def _marks(attributes: Mapping[str, str]) -> dict[str, Any]:
    marks: dict[str, Any] = {key: attributes[key] for key in ("latent", "observed", "roles") if key in attributes}
    if "pos" in attributes:
        marks["pos"] = attributes["pos"].rstrip("!").split(",")
    return marks


def _attributes(statement: Mapping[str, Any]) -> dict[str, str]:
    return {str(key).strip('"'): _unquoted(str(value)) for key, value in statement["attributes"].items()}


def _refuse_meaning(text: str, key: str, attributes: Mapping[str, str]) -> None:
    for attribute in ("dir", "latent", "observed", "roles"):
        if attribute in attributes:
            raise syntax_error(
                text,
                max(0, text.find(key)),
                f"{attribute} in the defaults of {key!r} is not read; write it at each node or edge",
            )


def _name(text: str, written: str) -> str:
    # What follows the colon is a port: the side of the node at which the edge is drawn.
    match = _QUOTED.match(written) or _BARE.match(written)
    if match is None:
        raise syntax_error(text, max(0, text.find(written)), f"{written!r} is not a name; put it in double quotes")
    name = _unescaped(match.group(1)) if written.startswith('"') else match.group(1)
    try:
        return checked_name(name)
    except GraphError as problem:
        raise syntax_error(text, max(0, text.find(written)), str(problem).rstrip(".")) from None


def _unquoted(value: str) -> str:
    return _unescaped(value[1:-1]) if len(value) > 1 and value.startswith('"') and value.endswith('"') else value


def _unescaped(inside: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", inside)


def _written(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
