"""The bare directed acyclic graph that every algorithm of this room walks over.

Nodes are numbers. A bidirected edge A ↔ B appears as an unobserved root with the two children A and B, so that
m-separation in the drawn graph is d-separation here and no algorithm needs a second kind of edge.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass


@dataclass(frozen=True)
class Dag:
    """Parents and children of the nodes 0, 1, ..., size - 1."""

    parents: list[list[int]]
    children: list[list[int]]

    @classmethod
    def from_edges(cls, size: int, edges: Iterable[tuple[int, int]]) -> Dag:
        """Build the two adjacency lists from pairs (parent, child)."""
        parents: list[list[int]] = [[] for _ in range(size)]
        children: list[list[int]] = [[] for _ in range(size)]
        for parent, child in edges:
            parents[child].append(parent)
            children[parent].append(child)
        return cls(parents, children)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.parents)

    def ancestors(self, of: Iterable[int], avoiding: Collection[int] = ()) -> set[int]:
        """Nodes with a directed path into `of`, `of` included; paths may not run through `avoiding`."""
        return _closure(self.parents, of, avoiding)

    def descendants(self, of: Iterable[int], avoiding: Collection[int] = ()) -> set[int]:
        """Nodes with a directed path out of `of`, `of` included; paths may not run through `avoiding`."""
        return _closure(self.children, of, avoiding)

    def with_node(self, parents: Iterable[int]) -> Dag:
        """Return the graph with one more node, numbered `size`, below the given parents."""
        added = self.size
        into = list(parents)
        children = [*self.children, []]
        for parent in into:
            children[parent] = [*children[parent], added]
        return Dag([*self.parents, into], children)

    def without_edges(self, removed: Set[tuple[int, int]]) -> Dag:
        """Return the graph without the given pairs (parent, child)."""
        parents, children = list(self.parents), list(self.children)
        for child in {child for _, child in removed}:
            parents[child] = [node for node in parents[child] if (node, child) not in removed]
        for parent in {parent for parent, _ in removed}:
            children[parent] = [node for node in children[parent] if (parent, node) not in removed]
        return Dag(parents, children)

    def topological_order(self) -> list[int] | None:
        """Parents before children, lowest number first among the free ones; None where there is a cycle."""
        order = self._freed()
        return order if len(order) == self.size else None

    def cycle(self) -> list[int] | None:
        """Return one directed cycle as nodes with the first repeated at the end, or None."""
        left = set(range(self.size)).difference(self._freed())
        if not left:
            return None
        # Each node that is left has a parent that is left: a walk against the edges comes back to where it was.
        node, walk = min(left), dict[int, int]()
        while node not in walk:
            walk[node] = len(walk)
            node = next(parent for parent in self.parents[node] if parent in left)
        return [node, *reversed(list(walk)[walk[node] :])]

    def _freed(self) -> list[int]:
        """Nodes in the order in which their parents are all listed before them; none that is on or below a cycle."""
        waiting = [len(parents) for parents in self.parents]
        free = [node for node, count in enumerate(waiting) if count == 0]
        heapq.heapify(free)
        order = []
        while free:
            node = heapq.heappop(free)
            order.append(node)
            for child in self.children[node]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    heapq.heappush(free, child)
        return order


def _closure(neighbours: list[list[int]], of: Iterable[int], avoiding: Collection[int]) -> set[int]:
    blocked = avoiding if isinstance(avoiding, set | frozenset) else set(avoiding)
    reached = {node for node in of if node not in blocked}
    stack = list(reached)
    while stack:
        for node in neighbours[stack.pop()]:
            if node not in reached and node not in blocked:
                reached.add(node)
                stack.append(node)
    return reached
