"""The fields of a graph that is being read, which all notations share, and the notation that names them: JSON.

    {"nodes": ["A", "Y"], "directed": [["A", "Y"]], "bidirected": [], "undirected": [], "latent": [],
     "exposures": [], "outcomes": [], "adjusted": [], "positions": {"A": [0.0, 1.0]}}

Every key may be left out; a key that is not known is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

from ciplearn._core.errors import GraphSyntaxError
from ciplearn.causal.names import nearest

# Marks of a node, and kinds of edges as they are written -> the fields of a graph that hold them.
ROLES = {"exposure": "exposures", "outcome": "outcomes", "adjusted": "adjusted"}
EDGES = {"->": "directed", "<->": "bidirected", "--": "undirected"}

_LONGEST_INTEGER = 300


@dataclass
class GraphParts:
    """The fields of a `CausalGraph` in the making."""

    nodes: list[str] = field(default_factory=list)
    directed: list[tuple[str, str]] = field(default_factory=list)
    bidirected: list[tuple[str, str]] = field(default_factory=list)
    undirected: list[tuple[str, str]] = field(default_factory=list)
    latent: list[str] = field(default_factory=list)
    exposures: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    adjusted: list[str] = field(default_factory=list)
    positions: dict[str, tuple[float, float]] = field(default_factory=dict)


_KEYS = tuple(field.name for field in fields(GraphParts))


def syntax_error(text: str, offset: int, message: str) -> GraphSyntaxError:
    """Make the error for a place in the text, given by line and column from 1."""
    before = text[:offset]
    return GraphSyntaxError(message, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def read_json(text: str) -> GraphParts:
    """Read a graph from JSON text."""

    def error(wrong: Any, message: str) -> GraphSyntaxError:
        """Point at the first place where the wrong value is written; at the start where it cannot be found."""
        written = (json.dumps(wrong, ensure_ascii=ascii, default=str) for ascii in (False, True))
        offsets = (text.find(words) for words in written)
        return syntax_error(text, next((offset for offset in offsets if offset >= 0), 0), message)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict[str, Any]()
        for key, value in pairs:
            if key in read:
                raise error(key, f"The key {key!r} stands twice in one object; keep one")
            read[key] = value
        return read

    def integer(written: str) -> int | float:
        # The only numbers of a graph are positions, and none needs more digits than a float has.
        return int(written) if len(written) < _LONGEST_INTEGER else float(written)

    def constant(name: str) -> Any:
        raise syntax_error(text, max(0, text.find(name)), f"{name} is not a position; use finite numbers")

    try:
        content = json.loads(text, object_pairs_hook=unique, parse_int=integer, parse_constant=constant)
    except json.JSONDecodeError as problem:
        raise GraphSyntaxError(f"This is not JSON: {problem.msg}", problem.lineno, problem.colno) from None
    except RecursionError:
        raise syntax_error(text, 0, "This JSON is nested too deeply to be a graph") from None
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise error(content, f"A graph is an object with keys such as nodes and directed, but {kind} was found")
    for key, value in content.items():
        if key not in _KEYS:
            raise error(key, f"The key {key!r} is not known; {nearest(key, _KEYS, 'keys').rstrip('.')}")
        if not isinstance(value, dict if key == "positions" else list):
            words = "object" if key == "positions" else "array"
            raise error(key, f"{key!r} must be an {words}, but {value!r} was found")
        for entry in value:
            if key == "positions":
                spot = value[entry]
                if not isinstance(spot, list) or [type(c) in (int, float) for c in spot] != [True, True]:
                    raise error(entry, f"A position must be a pair of numbers, but {entry!r} has {spot!r}")
            elif key in EDGES.values() and (not isinstance(entry, list) or len(entry) != 2):
                raise error(entry, f"An edge in {key!r} must be a pair of names, but {entry!r} was found")
            for name in entry if key in EDGES.values() else [entry]:
                if not isinstance(name, str):
                    raise error(name, f"A node name must be a string, but {name!r} was found")
    return GraphParts(**content)
