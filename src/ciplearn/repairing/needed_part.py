"""The part of a graph whose mechanisms a repair needs."""

from __future__ import annotations

from collections.abc import Collection

from ciplearn.causal import CausalGraph
from ciplearn.repairing.ratio import causes_of


def needed_part(
    graph: CausalGraph, protected: tuple[str, ...], inputs: Collection[str], outcome: str, *, own_law: bool
) -> CausalGraph:
    """Return the nodes between A and what the model reads, with their parents; all others have no equation here.

    What comes before A stays as it is in every world, so nothing has to be known of how it came about. The same holds
    for the outcome where it acts on nothing that is read.

    Parameters
    ----------
    inputs : collection of nodes
        That the model reads.
    own_law : bool
        Whether the law of A given its parents is needed, too.
    """
    moved = (graph.descendants(protected) & graph.ancestors([*inputs, *protected])) - set(protected)
    made = set(moved) | (set(protected) if own_law else set())
    if any(outcome in graph.parents(node) for node in moved):
        made.add(outcome)
    near = {parent for node in made for parent in graph.parents(node)}
    kept = {*inputs, *protected, *made, *near, *causes_of(graph, protected)}
    return CausalGraph.from_edges(
        [edge for edge in graph.directed if edge[1] in made],
        bidirected=[edge for edge in graph.bidirected if set(edge) <= kept],
        undirected=[edge for edge in graph.undirected if set(edge) <= kept],
        nodes=[node for node in graph.nodes if node in kept],
        latent=[node for node in graph.latent if node in kept],
    )
