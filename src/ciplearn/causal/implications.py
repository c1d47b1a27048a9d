"""Independencies that a graph implies among its observed nodes, so that data can contradict the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ciplearn._core.numbers import first
from ciplearn.causal.independence import Independence
from ciplearn.causal.separation import separated
from ciplearn.causal.separators import smallest_separator

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


def implied_independencies(graph: CausalGraph, limit: int | None) -> Iterator[Independence]:
    """Yield a ⊥ b | Z with a smallest observed Z for each pair of observed nodes that some observed set separates.

    A pair that no observed set separates is left out: the graph says nothing that can be tested about it.
    """
    graph.dag()
    return first(_statements(graph), limit)


def _statements(graph: CausalGraph) -> Iterator[Independence]:
    dag, observed = graph.dag(), sorted(graph.numbers(graph.observed))
    for place, a in enumerate(observed):
        for b in observed[place + 1 :]:
            # Adjacent nodes are never separated; skipping them saves the search.
            if a in dag.parents[b] or b in dag.parents[a]:
                continue
            z = smallest_separator(dag, {a}, {b}, set(observed) - {a, b}, set())
            if z is not None:
                yield Independence(right=graph.names({b}), given=graph.names(z), left=graph.names({a}))


def local_independencies(graph: CausalGraph) -> Iterator[Independence]:
    """Yield v ⊥ u | parents of v for each observed v and each earlier observed u that is no parent.

    Earlier means in topological order. Without latent nodes and bidirected edges this is the ordered local Markov
    property, pair by pair, from which the other independencies of the graph follow. Where the observed parents do not
    separate a pair, because a cause is not observed, a smallest observed set does it; a pair that none separates is
    left out.
    """
    dag = graph.dag()
    observed = graph.numbers(graph.observed)
    order = [node for node in dag.topological_order() or [] if node in observed]
    for place, v in enumerate(order):
        parents = set(dag.parents[v]) & observed
        for u in order[:place]:
            if u in parents:
                continue
            z = parents
            if not separated(dag, {u}, {v}, z):
                found = smallest_separator(dag, {u}, {v}, observed - {u, v}, set())
                if found is None:
                    continue
                z = found
            yield Independence(right=graph.names({u}), given=graph.names(z), left=graph.names({v}))
