"""GML, through networkx: nodes and edges with the marks of `ciplearn.causal.formats.networkx_format`."""

from __future__ import annotations

import re
from typing import Any

from ciplearn._core.errors import GraphSyntaxError
from ciplearn.causal.formats.networkx_format import read_networkx, write_networkx
from ciplearn.causal.formats.parts import GraphParts

_PLACE = re.compile(r"\((\d+), (\d+)\)")


def read_gml(text: str) -> GraphParts:
    """Read a directed graph from GML text; nodes are named by their label, else by their id."""
    import networkx

    graph = None
    # What networkx's reader raises on malformed text, its own error first.
    malformed = (networkx.NetworkXError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
    for label in ("label", "id"):
        try:
            graph = networkx.parse_gml(text, label=label)
            break
        except malformed as problem:
            if label == "id" or "no 'label' attribute" not in str(problem):
                found = _PLACE.search(str(problem))
                line, column = (int(number) for number in found.groups()) if found else (1, 1)
                raise GraphSyntaxError(f"This is not GML: {_one_line(problem)}", max(line, 1), max(column, 1)) from None
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


def _flatten(marks: dict[str, Any]) -> None:
    graphics = marks.pop("graphics", None)
    if isinstance(graphics, dict) and {"x", "y"} <= set(graphics):
        marks["pos"] = (graphics["x"], graphics["y"])


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
