"""`Document`: what is drawn on the page, as the page sends it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.verdict import Change
from ciplearn.workbench.schema import Schema, check

_NAME = {"type": "string", "maxLength": 10_000}
_NAMES = {"type": "array", "items": _NAME}
_EDGES = {"type": "array", "items": {"type": "array", "items": _NAME, "minItems": 2, "maxItems": 2}}
_SPOT = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}

# What is drawn, as JSON; whether its graph can be is another question, which `Document.read` asks too.
DOCUMENT: Schema = {
    "type": "object",
    "properties": {
        "graph": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("nodes", "latent", "exposures", "outcomes", "adjusted"), _NAMES),
                **dict.fromkeys(("directed", "bidirected", "undirected"), _EDGES),
                "positions": {"type": "object", "additionalProperties": _SPOT},
            },
            "additionalProperties": False,
        },
        "context": {**_NAMES, "type": ["array", "null"]},
        "inputs": {**_NAMES, "type": ["array", "null"]},
        # Kinds of columns that a person can choose on the page.
        "kinds": {"type": "object", "additionalProperties": {"type": "string", "enum": ["number", "category"]}},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Document:
    """A graph with its roles, and what was said about the table's columns.

    The graph itself carries three roles: its exposures are protected, its outcome is the outcome, its adjusted nodes
    are the set to condition on.

    ``context``, ``inputs``: None leaves the choice to the criterion, which takes every observed node but the outcome;
    ``kinds``: "number" or "category" of columns that a person has changed.
    """

    graph: CausalGraph = field(default_factory=CausalGraph)
    context: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, content: Any) -> Self:
        """Read a document from JSON data; an `InputError` or `GraphError` says what is wrong with it."""
        check(content, DOCUMENT, "the drawing")
        # By way of text: the reader of graphs in JSON says what is wrong with them.
        graph = CausalGraph.from_json(json.dumps(content.get("graph", {}), ensure_ascii=False))
        return cls(
            graph,
            _names(graph, content.get("context"), "context"),
            _names(graph, content.get("inputs"), "inputs"),
            content.get("kinds", {}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON data, the reverse of `read`."""
        return {
            "graph": json.loads(self.graph.to_json()),
            "context": None if self.context is None else list(self.context),
            "inputs": None if self.inputs is None else list(self.inputs),
            "kinds": dict(self.kinds),
        }

    def missing_roles(self) -> list[str]:
        """The roles that a verdict waits for."""
        roles = {"outcome": self.graph.outcomes, "protected": self.graph.exposures}
        return [role for role, nodes in roles.items() if not nodes]

    @property
    def labels(self) -> list[str]:
        """Columns of the drawing that a person has called categories."""
        return [name for name, kind in self.kinds.items() if kind == "category" and name in self.graph.index]

    def verdict(self) -> Verdict:
        """Ask the criterion."""
        return self._verdict

    @cached_property
    def _verdict(self) -> Verdict:
        return self.graph.criterion(context=self.context, inputs=self.inputs)

    def fingerprint(self, table: str) -> str:
        """Tell trainings apart by edges, roles, kinds and the digest of the table, wherever nodes stand."""
        graph, verdict = self.graph, self.verdict()
        either_way = [sorted(map(sorted, edges)) for edges in (graph.bidirected, graph.undirected)]
        drawn = [sorted(graph.nodes), sorted(graph.latent), sorted(graph.directed), *either_way]
        roles = [verdict.outcome, verdict.protected, verdict.context, verdict.inputs, verdict.adjustment]
        content = json.dumps([drawn, roles, sorted(self.kinds.items()), table])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def repaired(self, verdict: Verdict, changes: tuple[Change, ...]) -> Document:
        """Apply the changes of a repair that `verdict` proposes."""
        # The repair was judged for these roles and without an adjustment set of the user's.
        changed = replace(self, graph=replace(self.graph, adjusted=()), context=verdict.context, inputs=verdict.inputs)
        for change in changes:
            changed = _applied(changed, change)
        return changed.with_defaults()

    def with_defaults(self) -> Document:
        """Write roles that are the default as the default."""
        others = tuple(name for name in self.graph.observed if name not in self.graph.outcomes)
        return replace(
            self,
            context=None if self.context == others else self.context,
            inputs=None if self.inputs == others else self.inputs,
        )


def _applied(document: Document, change: Change) -> Document:
    graph, context, inputs = document.graph, document.context or (), document.inputs or ()
    nodes = change.nodes
    if change.kind == "measure" and len(nodes) == 1:
        graph = replace(graph, latent=graph.latent - set(nodes))
    elif change.kind == "measure":
        graph = _with_cause(graph, (nodes[0], nodes[1]))
    elif change.kind == "drop edge":
        graph = replace(graph, directed=tuple(edge for edge in graph.directed if edge != nodes))
    elif change.kind == "drop common cause":
        graph = replace(graph, bidirected=tuple(edge for edge in graph.bidirected if edge != nodes))
    elif change.kind == "direct edge":
        kept = tuple(edge for edge in graph.undirected if set(edge) != set(nodes))
        graph = replace(graph, undirected=kept, directed=(*graph.directed, (nodes[0], nodes[1])))
    elif change.kind == "adjust for":
        graph = replace(graph, adjusted=nodes)
    elif change.kind == "add to context":
        context = tuple(name for name in graph.observed if name in {*context, *nodes})
    elif change.kind == "drop from context":
        context = tuple(name for name in context if name not in nodes)
    elif change.kind == "drop from inputs":
        inputs = tuple(name for name in inputs if name not in nodes)
    else:
        raise InputError(f"The workbench cannot apply {change.kind!r}; change the drawing by hand.")
    return replace(document, graph=graph, context=context, inputs=inputs)


def _with_cause(graph: CausalGraph, pair: tuple[str, str]) -> CausalGraph:
    cause = f"common cause of {pair[0]} and {pair[1]}"
    while cause in graph.index:
        cause += "′"
    return replace(
        graph,
        bidirected=tuple(edge for edge in graph.bidirected if edge != pair),
        directed=(*graph.directed, (cause, pair[0]), (cause, pair[1])),
    )


def _names(graph: CausalGraph, content: Any, role: str) -> tuple[str, ...] | None:
    if content is None:
        return None
    chosen = set(graph.known_observed(content, role))
    return tuple(name for name in graph.nodes if name in chosen)
