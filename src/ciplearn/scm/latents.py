"""What becomes of unobserved causes when a model is estimated."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph


@dataclass(frozen=True)
class LatentPlan:
    """A graph without bidirected edges, and the latent nodes that need a law.

    Attributes
    ----------
    graph : CausalGraph
        Every bidirected edge is a latent root, and latent roots that are one child's noise are gone.
    absorbed : dict
        Those roots, with their child.
    learned : dict
        The latent nodes that stay, with their children.
    """

    graph: CausalGraph
    absorbed: dict[str, str]
    learned: dict[str, tuple[str, ...]]


def plan_latents(graph: CausalGraph, named: Collection[str]) -> LatentPlan:
    """Decide about latent nodes; ``named`` are those that a user gave a mechanism.

    Raises
    ------
    InputError
        For a latent node with parents, or a node with two latent parents that both need a law: neither is supported.
    """
    graph = _with_explicit_roots(graph)
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
    return LatentPlan(slim, absorbed, learned)


def _with_explicit_roots(graph: CausalGraph) -> CausalGraph:
    graph.dag()  # refuses undirected edges
    if not graph.bidirected:
        return graph
    roots = {f"U({a},{b})": (a, b) for a, b in graph.bidirected}
    edges = [(root, child) for root, pair in roots.items() for child in pair]
    return CausalGraph.from_edges([*graph.directed, *edges], nodes=graph.nodes, latent=[*graph.latent, *roots])
