"""The bare directed acyclic graph that every algorithm of this room walks over.

Nodes are numbers. A bidirected edge A ↔ B appears as an unobserved root with the two children A and B, so that
m-separation in the drawn graph is d-separation here and no algorithm needs a second kind of edge.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
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

    def without_edges(self, removed: Collection[tuple[int, int]]) -> Dag:
        """Return the graph without the given pairs (parent, child)."""
        parents, children = list(self.parents), list(self.children)
        gone_parents: dict[int, set[int]] = {}
        gone_children: dict[int, set[int]] = {}
        for parent, child in removed:
            gone_parents.setdefault(child, set()).add(parent)
            gone_children.setdefault(parent, set()).add(child)
        for child, gone in gone_parents.items():
            parents[child] = [node for node in parents[child] if node not in gone]
        for parent, gone in gone_children.items():
            children[parent] = [node for node in children[parent] if node not in gone]
        return Dag(parents, children)

    def topological_order(self) -> list[int] | None:
        """Parents before children, lowest number first among the free ones; None where there is a cycle."""
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
        return order if len(order) == self.size else None

    def cycle(self) -> list[int] | None:
        """Return one directed cycle as nodes with the first repeated at the end, or None."""
        state = bytearray(self.size)  # 0 new, 1 on the current walk, 2 done
        for start in range(self.size):
            if state[start]:
                continue
            walk, branches = [start], [iter(self.children[start])]
            state[start] = 1
            while walk:
                child = next(branches[-1], None)
                if child is None:
                    state[walk.pop()] = 2
                    branches.pop()
                elif state[child] == 1:
                    return [*walk[walk.index(child) :], child]
                elif state[child] == 0:
                    state[child] = 1
                    walk.append(child)
                    branches.append(iter(self.children[child]))
        return None


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
