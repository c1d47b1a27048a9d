"""What becomes of unobserved causes when a model is estimated."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import networkx as nx

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph


@dataclass(frozen=True)
class LatentPlan:
    """A graph without bidirected edges, and the latent nodes that need a law.

    In the graph, latent roots that are one child's noise are gone; nodes that bidirected edges join have one latent
    root, unless all of them are roots otherwise.
    """

    graph: CausalGraph
    absorbed: dict[str, str]  # the latent roots that are gone, with their child
    learned: dict[str, tuple[str, ...]]  # the latent nodes that stay, with their children
    together: tuple[tuple[str, ...], ...] = ()  # roots that bidirected edges join: their joint law is what was seen

    def notes(self) -> tuple[str, ...]:
        """Say what became of latent nodes and bidirected edges."""
        part = [f"{latent} is part of the noise of {child}, its only child." for latent, child in self.absorbed.items()]
        learned = [
            f"{latent} is a latent law learned with {', '.join(children)}; data cannot confirm it."
            for latent, children in self.learned.items()
        ]
        together = [
            f"{', '.join(nodes)} share hidden causes and have no others: they are drawn together as observed, and an "
            "action on one leaves the others as they are."
            for nodes in self.together
        ]
        return (*part, *learned, *together)


def plan_latents(graph: CausalGraph, named: Collection[str]) -> LatentPlan:
    """Decide about latent nodes; ``named`` are those that a user gave a mechanism."""
    graph.dag()  # refuses undirected edges
    graph, together = _without_bidirected(graph, named)
    absorbed: dict[str, str] = {}
    learned: dict[str, tuple[str, ...]] = {}
    for latent in sorted(graph.latent):
        if graph.parents(latent):
            raise InputError(
                f"{latent} is latent and has the parent {graph.parents(latent)[0]}; only latent nodes without parents "
                "can be estimated, so measure it, or connect its parents to its children."
            )
        children = graph.children(latent)
        if len(children) == 1 and latent not in named:
            absorbed[latent] = children[0]
        elif children:
            learned[latent] = children
    owner: dict[str, str] = {}
    for latent, children in learned.items():
        for child in children:
            if child in owner:
                raise InputError(
                    f"{child} has two latent parents that need a law, {owner[child]} and {latent}; draw one latent "
                    "node for both."
                )
            owner[child] = latent
    kept = [node for node in graph.nodes if node not in graph.latent or node in learned]
    slim = CausalGraph.from_edges(
        [edge for edge in graph.directed if edge[0] in kept], nodes=kept, latent=list(learned)
    )
    return LatentPlan(slim, absorbed, learned, together)


def _without_bidirected(graph: CausalGraph, named: Collection[str]) -> tuple[CausalGraph, tuple[tuple[str, ...], ...]]:
    """Give every set of nodes that bidirected edges join one latent root, or draw it together where it has no causes.

    One latent node for a set is no less general than one for each edge: its numbers can be split among the edges.
    """
    if not graph.bidirected:
        return graph, ()
    together, roots = [], {}
    for joined in nx.connected_components(nx.Graph(graph.bidirected)):
        nodes = tuple(node for node in graph.nodes if node in joined)
        name = f"U({','.join(nodes)})"
        if name not in named and not any(graph.parents(node) or node in graph.latent for node in nodes):
            together.append(nodes)
        else:
            roots[name] = nodes
    edges = [(root, child) for root, children in roots.items() for child in children]
    plain = CausalGraph.from_edges([*graph.directed, *edges], nodes=graph.nodes, latent=[*graph.latent, *roots])
    return plain, tuple(together)
