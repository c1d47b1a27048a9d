"""Independencies that a graph implies among its observed nodes, so that data can contradict the graph."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ciplearn.causal.independence import Independence
from ciplearn.causal.separators import smallest_separator

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


def implied_independencies(graph: CausalGraph, limit: int | None) -> Iterator[Independence]:
    """Yield a ⊥ b | Z with a smallest observed Z for each pair of observed nodes that some observed set separates.

    A pair that no observed set separates is left out: the graph says nothing that can be tested about it.
    """
    graph.dag()
    return islice(_statements(graph), limit)


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
