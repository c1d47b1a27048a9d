"""Graphs near a graph: every single change of an edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ciplearn._core.errors import GraphError, InputError, InputTypeError
from ciplearn.causal import CausalGraph

DRAWN = "as drawn"

# Of a larger class, one member per set of parents that the protected nodes may have is compared.
_MOST_MEMBERS = 200


@dataclass(frozen=True)
class Variant:
    """A graph and what makes it differ."""

    # ``"as drawn"``, ``"without A → B"``, ``"A → B reversed"``, ``"with A → B"``, ``"with A ↔ B"``, ``"member 3"``, or
    # the name that a user gave
    change: str
    graph: CausalGraph
    hidden: bool = False  # whether an unobserved common cause was added

    @property
    def key(self) -> str:
        """What tells it apart from others, also from one of another list that has the same name."""
        return f"{self.change}: {self.graph.to_dagitty()}"


def single_changes(graph: CausalGraph) -> Iterator[Variant]:
    """Yield the graph with each edge removed or reversed, each edge added, and each pair given a hidden common cause.

    Changes that would make a cycle are left out, and so are edges at latent nodes. Hidden causes come last: a model
    with one takes longest to learn.
    """
    observed = set(graph.observed)
    edges = [edge for edge in graph.directed if set(edge) <= observed]
    for a, b in edges:
        rest = [edge for edge in graph.directed if edge != (a, b)]
        yield Variant(f"without {a} → {b}", replace(graph, directed=tuple(rest)))
        yield from _acyclic(f"{a} → {b} reversed", graph, (*rest, (b, a)))
    common = {frozenset(edge) for edge in graph.bidirected}
    joined = common | {frozenset(edge) for edge in graph.directed}
    for a, b in combinations(graph.observed, 2):
        if frozenset((a, b)) not in joined:
            yield from _acyclic(f"with {a} → {b}", graph, (*graph.directed, (a, b)))
            yield from _acyclic(f"with {b} → {a}", graph, (*graph.directed, (b, a)))
    for a, b in combinations(graph.observed, 2):
        if frozenset((a, b)) not in common:
            yield Variant(f"with {a} ↔ {b}", replace(graph, bidirected=(*graph.bidirected, (a, b))), hidden=True)


def variants_of(graph: CausalGraph, graphs: Any, protected: Sequence[str] = ()) -> list[Variant]:
    """Return the graph as drawn and those to compare it with: a user's, its members, or its single changes."""
    if graphs is None:
        if graph.undirected:
            found = list(graph.members(_MOST_MEMBERS + 1))
            if len(found) > _MOST_MEMBERS:
                found = list(graph.members(by_parents_of=protected))
            members = [Variant(f"member {place}", member) for place, member in enumerate(found, start=1)]
            return [replace(members[0], change=f"{DRAWN}, member 1"), *members[1:]]
        return [Variant(DRAWN, graph), *single_changes(graph)]
    return [Variant(DRAWN, _directed(graph)), *_named(graph, graphs)]


def _named(graph: CausalGraph, graphs: Any) -> Iterator[Variant]:
    if isinstance(graphs, Mapping):
        named = [(str(name), each) for name, each in graphs.items()]
    elif isinstance(graphs, Sequence) and not isinstance(graphs, str):
        named = [(f"graph {place}", each) for place, each in enumerate(graphs, start=1)]
    else:
        raise InputTypeError(f"graphs must be a list or a dict of graphs, got {type(graphs).__name__}.")
    if not named:
        raise InputError("graphs is empty; pass at least one graph, or leave it out for all single changes.")
    for name, each in named:
        if not isinstance(each, CausalGraph):
            raise InputTypeError(f"{name} must be a CausalGraph, got {type(each).__name__}.")
        if set(each.observed) != set(graph.observed):
            differing = sorted(set(each.observed) ^ set(graph.observed))
            raise InputError(
                f"{name} is over other observed nodes than the graph: {', '.join(differing)} is in one of them only; "
                "compare graphs of the same columns."
            )
        yield Variant(name, _directed(each), hidden=bool(each.bidirected or each.latent))


def _directed(graph: CausalGraph) -> CausalGraph:
    return next(graph.members()) if graph.undirected else graph


def _acyclic(change: str, graph: CausalGraph, directed: Sequence[tuple[str, str]]) -> Iterator[Variant]:
    try:
        yield Variant(change, replace(graph, directed=tuple(directed)))
    except GraphError:
        return
