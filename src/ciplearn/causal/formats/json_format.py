"""JSON: the fields of a graph by name.

    {"nodes": ["A", "Y"], "directed": [["A", "Y"]], "bidirected": [], "undirected": [], "latent": [],
     "exposures": [], "outcomes": [], "adjusted": [], "positions": {"A": [0.0, 1.0]}}

Every key may be left out; a key that is not known is an error.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from ciplearn._core.errors import GraphSyntaxError
from ciplearn.causal.formats.parts import GraphParts, syntax_error
from ciplearn.causal.names import nearest

_KEYS = tuple(field.name for field in fields(GraphParts))
_LONGEST_INTEGER = 300
_EDGE_KEYS = ("directed", "bidirected", "undirected")


def read_json(text: str) -> GraphParts:
    """Read a graph from JSON text."""
    reader = _JsonReader(text)
    try:
        content = json.loads(
            text, object_pairs_hook=reader.pairs, parse_int=reader.integer, parse_constant=reader.constant
        )
    except json.JSONDecodeError as problem:
        raise GraphSyntaxError(f"This is not JSON: {problem.msg}", problem.lineno, problem.colno) from None
    except RecursionError:
        raise syntax_error(text, 0, "This JSON is nested too deeply to be a graph") from None
    return reader.graph(content)


def write_json(parts: GraphParts) -> str:
    """Write a graph as JSON text; empty fields other than nodes and directed are left out."""
    content = {key: value for key, value in asdict(parts).items() if value or key in ("nodes", "directed")}
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, wrong: Any, message: str) -> GraphSyntaxError:
        """Point at the first place where the wrong value is written; at the start where it cannot be found."""
        written = (json.dumps(wrong, ensure_ascii=ascii, default=str) for ascii in (False, True))
        offsets = (self.text.find(text) for text in written)
        return syntax_error(self.text, next((offset for offset in offsets if offset >= 0), 0), message)

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = {}
        for key, value in pairs:
            if key in read:
                raise self.error(key, f"The key {key!r} stands twice in one object; keep one")
            read[key] = value
        return read

    def integer(self, written: str) -> int | float:
        # The only numbers of a graph are positions, and none needs more digits than a float has.
        return int(written) if len(written) < _LONGEST_INTEGER else float(written)

    def constant(self, name: str) -> Any:
        raise syntax_error(self.text, max(0, self.text.find(name)), f"{name} is not a position; use finite numbers")

    def graph(self, content: Any) -> GraphParts:
        if not isinstance(content, dict):
            kind = type(content).__name__
            raise self.error(
                content, f"A graph is an object with keys such as nodes and directed, but {kind} was found"
            )
        for key in content:
            if key not in _KEYS:
                raise self.error(key, f"The key {key!r} is not known; {nearest(key, _KEYS, 'keys').rstrip('.')}")
        parts = GraphParts()
        for key, value in content.items():
            if key == "positions":
                parts.positions = self.positions(value)
            elif not isinstance(value, list):
                raise self.error(key, f"{key!r} must be an array, but {value!r} was found")
            else:
                read = partial(self.edge, key) if key in _EDGE_KEYS else self.name
                getattr(parts, key).extend(map(read, value))
        return parts

    def name(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self.error(value, f"A node name must be a string, but {value!r} was found")
        return value

    def edge(self, key: str, pair: Any) -> tuple[str, str]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise self.error(pair, f"An edge in {key!r} must be a pair of names, but {pair!r} was found")
        return self.name(pair[0]), self.name(pair[1])

    def positions(self, value: Any) -> dict[str, tuple[float, float]]:
        if not isinstance(value, dict):
            raise self.error("positions", f"'positions' must be an object, but {value!r} was found")
        for node, spot in value.items():
            if not isinstance(spot, list) or [type(c) in (int, float) for c in spot] != [True, True]:
                raise self.error(node, f"A position must be a pair of numbers, but {node!r} has {spot!r}")
        return {node: (float(x), float(y)) for node, (x, y) in value.items()}
