"""The definitions, word for word and slowly: every path is enumerated, every set is tried."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from ciplearn.causal import CausalGraph

Pair = tuple[str, str]
PREDICTOR = "Ŷ"


@dataclass(frozen=True)
class Drawing:
    """Directed edges only: each bidirected edge has become a latent root."""

    nodes: frozenset[str]
    edges: frozenset[Pair]
    latent: frozenset[str]

    def descendants(self, node: str) -> set[str]:
        found, grown = {node}, True
        while grown:
            grown = False
            for a, b in self.edges:
                if a in found and b not in found:
                    found.add(b)
                    grown = True
        return found

    def paths(self, start: str, end: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Every path as nodes and arrows; no node twice."""
        beside: dict[str, list[Pair]] = {node: [] for node in self.nodes}
        for a, b in self.edges:
            beside[a].append((b, "→"))
            beside[b].append((a, "←"))
        stack: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((start,), ())]
        while stack:
            nodes, arrows = stack.pop()
            if nodes[-1] == end:
                yield nodes, arrows
                continue
            for node, arrow in beside[nodes[-1]]:
                if node not in nodes:
                    stack.append(((*nodes, node), (*arrows, arrow)))

    def blocked(self, nodes: tuple[str, ...], arrows: tuple[str, ...], z: set[str]) -> bool:
        for place in range(1, len(nodes) - 1):
            collider = arrows[place - 1] == "→" and arrows[place] == "←"
            if collider and not self.descendants(nodes[place]) & z:
                return True
            if not collider and nodes[place] in z:
                return True
        return False

    def separated(self, x: set[str], y: set[str], z: set[str]) -> bool:
        return all(self.blocked(*path, z) for a in x for b in y for path in self.paths(a, b))

    def proper_paths(self, x: set[str], y: set[str]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        return [p for a in x for b in y for p in self.paths(a, b) if not x & set(p[0][1:])]

    def forbidden(self, x: set[str], y: set[str]) -> set[str]:
        cut = Drawing(self.nodes, frozenset((a, b) for a, b in self.edges if b not in x), self.latent)
        causal = [nodes for nodes, arrows in self.proper_paths(x, y) if set(arrows) <= {"→"}]
        return {below for nodes in causal for node in nodes[1:] for below in cut.descendants(node)}

    def valid(self, x: set[str], y: set[str], z: set[str]) -> bool:
        if self.forbidden(x, y) & z:
            return False
        non_causal = [path for path in self.proper_paths(x, y) if "←" in path[1]]
        return all(self.blocked(*path, z) for path in non_causal)


def drawing(graph: CausalGraph, inputs: tuple[str, ...] | None = None) -> Drawing:
    """Expand bidirected edges; with inputs, add the predictor."""
    edges = set(graph.directed)
    latent = set(graph.latent)
    for a, b in graph.bidirected:
        root = f"root of {a} and {b}"
        latent.add(root)
        edges |= {(root, a), (root, b)}
    nodes = {*graph.nodes, *latent}
    if inputs is not None:
        nodes.add(PREDICTOR)
        edges |= {(name, PREDICTOR) for name in inputs}
    return Drawing(frozenset(nodes), frozenset(edges), frozenset(latent))


def conditions(
    graph: CausalGraph, protected: set[str], context: set[str], inputs: tuple[str, ...], s: set[str]
) -> dict:
    """Conditions on validity, parents, noise and inputs for X = (A ∪ W) without S, straight from their wording."""
    drawn = drawing(graph, inputs)
    known = protected | context
    x = known - s
    strict = {below for a in protected for below in drawn.descendants(a) if below != a} - protected
    responding = {v for v in x - protected if v in strict}
    grown = True
    while grown:
        more = {a for a, b in drawn.edges if b in responding and a in strict} - responding
        responding |= more
        grown = bool(more)
    roots = {v for v in drawn.latent if not any(b == v for _, b in drawn.edges)}
    inside = known | s
    parents = all(v in inside for v in responding) and all(
        a in inside or a in roots for a, b in drawn.edges if b in responding
    )
    shared = {r for r in roots if sum(a == r for a, _ in drawn.edges) > 1}
    return {
        "validity": drawn.valid(x, {PREDICTOR}, s),
        "parents": parents,
        "injective": {b for a, b in drawn.edges if a in shared and b in responding},
        "inputs": set(inputs) <= inside and not set(inputs) & s & strict,
    }


def certifies(wording: dict) -> bool:
    """Either way of the criterion, from the answer of `conditions`."""
    return wording["inputs"] or (wording["validity"] and wording["parents"])


def subsets(names: list[str]) -> Iterator[set[str]]:
    for size in range(len(names) + 1):
        yield from (set(chosen) for chosen in combinations(names, size))


def random_graph(rng: random.Random, largest: int, *, smallest: int = 2, confounded: bool = True) -> CausalGraph:
    """A random graph with `smallest` to `largest` nodes, some latent, some pairs confounded."""
    names = [f"v{number}" for number in range(rng.randint(smallest, largest))]
    order = rng.sample(names, len(names))
    pairs = list(combinations(order, 2))
    density, hidden = rng.choice((0.25, 0.4, 0.6)), rng.choice((0.0, 0.15)) if confounded else 0.0
    return CausalGraph.from_edges(
        [pair for pair in pairs if rng.random() < density],
        bidirected=[pair for pair in pairs if rng.random() < hidden],
        latent=[name for name in names if confounded and rng.random() < 0.12],
        nodes=names,
    )


def random_split(rng: random.Random, names: list[str], *chances: float) -> list[list[str]]:
    """Give each name to at most one list, to the lists with the given chances."""
    lists: list[list[str]] = [[] for _ in chances]
    for name in names:
        draw = rng.random()
        for place, chance in enumerate(chances):
            draw -= chance
            if draw < 0:
                lists[place].append(name)
                break
    return lists
