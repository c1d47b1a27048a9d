"""Paths as things a person can read: ``A ← U → Y``, and why such a path is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_set
from ciplearn.causal.dag import Adjustment, Dag
from ciplearn.causal.independence import PREDICTOR

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


@dataclass(frozen=True)
class Path:
    """Nodes in order and the arrow between each and the next: ``→``, ``←``, ``↔`` or ``−``.

    Examples
    --------
    >>> from ciplearn.causal import Path
    >>> print(Path(("A", "U", "Y"), ("←", "→")))
    A ← U → Y
    """

    nodes: tuple[str, ...]
    arrows: tuple[str, ...]

    def __str__(self) -> str:
        tail = "".join(f" {arrow} {node}" for arrow, node in zip(self.arrows, self.nodes[1:], strict=True))
        return self.nodes[0] + tail

    @property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """Triples (node, arrow, next node)."""
        return tuple(zip(self.nodes, self.arrows, self.nodes[1:], strict=False))

    def to_list(self) -> list[str]:
        """Return nodes and arrows in turn, JSON-ready: a name may hold an arrow, so the text alone could be misread."""
        return [self.nodes[0], *(step for edge in self.edges for step in edge[1:])]

    @classmethod
    def from_list(cls, steps: Sequence[str]) -> Path:
        """Read what `to_list` wrote."""
        return cls(tuple(steps[::2]), tuple(steps[1::2]))


def predictor_name(graph: CausalGraph) -> str:
    """Return the name under which Ŷ is shown: one that no node of the graph has."""
    name = PREDICTOR
    while name in graph.index:
        name += "′"
    return name


def as_path(graph: CausalGraph, dag: Dag, walk: Sequence[int]) -> Path:
    """Write a walk over numbers as a path; roots of bidirected edges melt into ``↔``."""
    named = len(graph.nodes)
    roots = range(named, named + len(graph.bidirected))
    arrows = [
        "↔" if before in roots else "→" if node in dag.children[before] else "←"
        for before, node in pairwise(walk)
        if node not in roots
    ]
    nodes = [graph.nodes[node] if node < named else predictor_name(graph) for node in walk if node not in roots]
    return Path(tuple(nodes), tuple(arrows))


def why_open(graph: CausalGraph, path: Path, given: Set[str]) -> str:
    """Say for each inner node of an open path why it does not block: ``U is latent``."""
    clauses = []
    for (_, before, node), (_, after, _) in pairwise(path.edges):
        if before not in "→↔" or after not in "←↔":
            state = "latent" if node in graph.latent else "not adjusted for"
        elif node in given:
            state = "a collider and is adjusted for"
        else:
            below = graph.descendants(node)
            state = f"a collider and {as_set(n for n in graph.nodes if n in given & below)} below it is adjusted for"
        clauses.append(f"{node} is {state}")
    clauses += [f"the common cause of {a} and {b} is unobserved" for a, arrow, b in path.edges if arrow == "↔"]
    return ", ".join(clauses) if clauses else "nothing stands between its ends"


def directed_paths(dag: Dag, start: int, targets: Set[int], avoiding: Set[int]) -> Iterator[list[int]]:
    """Yield the directed paths from `start` to `targets` whose later nodes are outside `avoiding`."""
    hopeful = dag.ancestors(targets, avoiding=avoiding)
    walk = [start]
    branches = [iter(dag.children[start])]
    while branches:
        node = next(branches[-1], None)
        if node is None:
            branches.pop()
            walk.pop()
        elif node in hopeful:
            walk.append(node)
            if node in targets:
                yield list(walk)
            branches.append(iter(dag.children[node]))


def proper_causal_paths(problem: Adjustment) -> Iterator[list[int]]:
    """Yield every directed path from X to Y that meets X at its first node only."""
    for start in sorted(problem.x):
        yield from directed_paths(problem.dag, start, problem.y, problem.x)


def shortest_directed(dag: Dag, sources: Set[int], target: int, avoiding: Set[int]) -> list[int] | None:
    """Return a shortest directed path from `sources` to `target` whose later nodes are outside `avoiding`."""
    came_from = dict.fromkeys(sorted(sources), -1)
    frontier = list(came_from)
    while frontier:
        following = []
        for node in frontier:
            if node == target and came_from[node] >= 0:
                walk = [node]
                while came_from[walk[-1]] >= 0:
                    walk.append(came_from[walk[-1]])
                return walk[::-1]
            for child in dag.children[node]:
                if child not in came_from and child not in avoiding:
                    came_from[child] = node
                    following.append(child)
        frontier = following
    return None
