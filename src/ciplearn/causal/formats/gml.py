"""GML, through networkx: nodes and edges with the marks of `ciplearn.causal.formats.networkx_format`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphSyntaxError
from ciplearn.causal.formats.networkx_format import read_networkx, write_networkx
from ciplearn.causal.formats.parts import GraphParts

if TYPE_CHECKING:
    import networkx

_PLACE = re.compile(r"\((\d+), (\d+)\)")


def read_gml(text: str) -> GraphParts:
    """Read a directed graph from GML text; nodes are named by their label, else by their id."""
    try:
        graph = _parsed(text, "label")
    except GraphSyntaxError as problem:
        if "no 'label' attribute" not in str(problem):
            raise
        graph = _parsed(text, "id")
    for _, marks in graph.nodes(data=True):
        _flatten(marks)
    return read_networkx(graph)


def write_gml(parts: GraphParts) -> str:
    """Write GML text."""
    import networkx

    graph = write_networkx(parts)
    for _, marks in graph.nodes(data=True):
        if "latent" in marks:
            marks["latent"] = 1
        if "pos" in marks:
            # GML keeps positions in a block of its own.
            x, y = marks.pop("pos")
            marks["graphics"] = {"x": float(x), "y": float(y)}
    return "\n".join(networkx.generate_gml(graph)) + "\n"


def _parsed(text: str, label: str) -> networkx.Graph:
    import networkx

    # What networkx's reader raises on malformed text, its own error first.
    malformed = (networkx.NetworkXError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
    try:
        return networkx.parse_gml(text, label=label)
    except malformed as problem:
        found = _PLACE.search(str(problem))
        line, column = (max(1, int(number)) for number in found.groups()) if found else (1, 1)
        reason = " ".join(str(problem).split()).partition("; use sys")[0] or type(problem).__name__
        raise GraphSyntaxError(f"This is not GML: {reason}", line, column) from None


def _flatten(marks: dict[str, Any]) -> None:
    graphics = marks.pop("graphics", None)
    if isinstance(graphics, dict) and {"x", "y"} <= set(graphics):
        marks["pos"] = (graphics["x"], graphics["y"])
