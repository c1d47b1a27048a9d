"""The graphs that a graph with undirected edges stands for.

A member directs every undirected edge so that no directed cycle and no new unshielded collider (a → b ← c with a and c
not adjacent) appears: the graphs that data with these independencies cannot tell apart. Bidirected edges count as
arrowheads on both ends. Orientation rules [meek1995] are applied after each choice, so that a choice rarely leads
nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING

from ciplearn._core.arguments import first
from ciplearn._core.errors import GraphError
from ciplearn.causal.names import Edge, Names

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


def members(graph: CausalGraph, limit: int | None) -> Iterator[CausalGraph]:
    """Yield the members of the class of `graph` in a fixed order, at most `limit` of them."""
    return first(_members(graph), limit)


def members_by_parents(graph: CausalGraph, nodes: Names, limit: int | None) -> Iterator[CausalGraph]:
    """Yield one member per choice of parents that the nodes may have, at most `limit` of them."""
    return first(_by_parents(graph, set(graph.known(nodes, "by_parents_of"))), limit)


def equivalence_class(graph: CausalGraph) -> CausalGraph:
    """Return the graph in which an edge has a direction only where all graphs with the same independencies agree.

    These are the graphs with the same adjacencies and the same unshielded colliders [verma1990].
    """
    if graph.bidirected or graph.latent:
        raise GraphError(
            "The graph has hidden causes, got latent nodes or bidirected edges; the class is known for graphs without."
        )
    fixed = {edge for a, b, c in _colliders(graph) for edge in ((a, b), (c, b))}
    loose = {edge for edge in (*graph.directed, *graph.undirected) if edge not in fixed and edge[::-1] not in fixed}
    # A graph without cycles is a member of its own class, so that no edge is forced both ways.
    directed, undirected = _closed(_neighbours(graph), (), fixed, loose) or (set(graph.directed), set())
    return replace(graph, directed=tuple(sorted(directed)), undirected=tuple(sorted(undirected)))


def chosen_directions(graph: CausalGraph, member: CausalGraph) -> tuple[Edge, ...]:
    """Return the directions that a member gives to the undirected edges of `graph`."""
    drawn = set(member.directed)
    return tuple((a, b) if (a, b) in drawn else (b, a) for a, b in graph.undirected)


def _members(graph: CausalGraph) -> Iterator[CausalGraph]:
    joined = _neighbours(graph)
    stack: list[tuple[set[Edge], set[Edge], Edge | None]] = [(set(graph.directed), set(graph.undirected), None)]
    while stack:
        closed = _closed(joined, graph.bidirected, *stack.pop())
        if closed is None:
            continue
        directed, undirected = closed
        if not undirected:
            # No collider is new here, since rule 1 has directed every edge that could have made one; a cycle may be.
            with suppress(GraphError):
                yield replace(graph, directed=tuple(directed), undirected=())
            continue
        a, b = min(undirected)
        for edge in ((b, a), (a, b)):
            stack.append((directed | {edge}, undirected - {(a, b)}, edge))


def _by_parents(graph: CausalGraph, nodes: set[str]) -> Iterator[CausalGraph]:
    open_here = [edge for edge in graph.undirected if nodes & set(edge)]
    rest = tuple(edge for edge in graph.undirected if not nodes & set(edge))
    colliders = _colliders(graph)
    for turned in product((False, True), repeat=len(open_here)):
        chosen = [(b, a) if turn else (a, b) for (a, b), turn in zip(open_here, turned, strict=True)]
        try:
            candidate = replace(graph, directed=(*graph.directed, *chosen), undirected=rest)
        except GraphError:
            continue
        if _colliders(candidate) == colliders:
            yield from members(candidate, 1)


def _neighbours(graph: CausalGraph) -> dict[str, set[str]]:
    joined: dict[str, set[str]] = {node: set() for node in graph.nodes}
    for a, b in (*graph.directed, *graph.bidirected, *graph.undirected):
        joined[a].add(b)
        joined[b].add(a)
    return joined


def _colliders(graph: CausalGraph) -> set[tuple[str, str, str]]:
    """Unshielded colliders a → b ← c with a < c."""
    joined = _neighbours(graph)
    into: dict[str, set[str]] = {node: set() for node in graph.nodes}
    for a, b in (*graph.directed, *graph.bidirected, *((b, a) for a, b in graph.bidirected)):
        into[b].add(a)
    return {(a, b, c) for b, ends in into.items() for a, c in combinations(sorted(ends), 2) if c not in joined[a]}


def _closed(
    joined: dict[str, set[str]],
    bidirected: tuple[Edge, ...],
    directed: set[Edge],
    undirected: set[Edge],
    new: Edge | None = None,
) -> tuple[set[Edge], set[Edge]] | None:
    """Apply the orientation rules until nothing changes; None where an edge is forced both ways.

    Where everything but the edge `new` was closed before, only what it bears on is looked at.
    """
    directed, undirected = set(directed), set(undirected)
    parents, children, loose, into = (dict[str, set[str]]((node, set()) for node in joined) for _ in range(4))
    for a, b in directed:
        parents[b].add(a)
        children[a].add(b)
        into[b].add(a)
    for a, b in bidirected:
        into[a].add(b)
        into[b].add(a)
    for a, b in undirected:
        loose[a].add(b)
        loose[b].add(a)

    def forced(a: str, b: str) -> bool:
        """Tell whether a − b must become a → b."""
        # Rule 1: c → a − b with c, b not adjacent would become a collider at a.
        if into[a] - joined[b] - {b}:
            return True
        # Rule 2: a → c → b would close a cycle.
        if children[a] & parents[b]:
            return True
        # Rule 3: a − c → b and a − d → b with c, d not adjacent.
        through = loose[a] & parents[b]
        if any(through - joined[c] - {c} for c in through):
            return True
        # Rule 4: a − c → d → b with c, b not adjacent and a, d adjacent.
        aside = loose[a] - joined[b]
        return bool(aside) and any(aside & parents[d] for d in joined[a] & parents[b])

    def touched(x: str, y: str) -> set[str]:
        # An arrow bears on the edges at its ends, and by rule 4 on those at the effects of its head.
        return {x, y} | children[y]

    around = set(joined) if new is None else touched(*new)
    while waiting := [edge for edge in undirected if not around.isdisjoint(edge)]:
        around = set()
        for a, b in sorted(waiting):
            forward, backward = forced(a, b), forced(b, a)
            if forward and backward:
                return None
            if forward or backward:
                undirected.remove((a, b))
                x, y = (a, b) if forward else (b, a)
                directed.add((x, y))
                parents[y].add(x)
                children[x].add(y)
                into[y].add(x)
                loose[x].discard(y)
                loose[y].discard(x)
                around |= touched(x, y)
    return directed, undirected
