"""d-separation by Bayes-ball: one visit to each node and direction, so linear in the edges.

A path is blocked by Z when one of its inner nodes v is a collider (→ v ←) with no descendant in Z, v included, or is
not a collider and lies in Z. X and Y are d-separated by Z when every path between them is blocked. On graphs with
bidirected edges the same walk gives m-separation, because `Dag` holds each of them as a latent root.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Set

from ciplearn.causal.dag import Dag

# How a walk arrived at a node: from one of its children, or from one of its parents.
_FROM_CHILD, _FROM_PARENT = 0, 1


def reachable(dag: Dag, sources: Iterable[int], given: Set[int]) -> set[int]:
    """Return the nodes with an open walk from `sources` given `given`, the sources included."""
    return {state >> 1 for state, _ in _walk(dag, sources, given)}


def separated(dag: Dag, x: Iterable[int], y: Iterable[int], given: Set[int]) -> bool:
    """Tell whether `given` d-separates `x` and `y`."""
    targets = set(y)
    return not any(state >> 1 in targets for state, _ in _walk(dag, x, given))


def shortest_open_walk(dag: Dag, x: Iterable[int], y: Iterable[int], given: Set[int]) -> list[int] | None:
    """Return the nodes of a shortest open walk from `x` to `y` given `given`, or None where they are separated."""
    targets = set(y)
    came_from: dict[int, int] = {}
    for state, previous in _walk(dag, x, given):
        came_from[state] = previous
        if state >> 1 in targets:
            walk = []
            while state >= 0:
                walk.append(state >> 1)
                state = came_from[state]
            return walk[::-1]
    return None


def _walk(dag: Dag, sources: Iterable[int], given: Set[int]) -> Iterator[tuple[int, int]]:
    """Yield each reached state once, breadth first, with the state before it; -1 stands before a source.

    A state is 2 · node + direction of arrival.
    """
    open_colliders = dag.ancestors(given)
    seen = bytearray(2 * dag.size)
    queue: deque[int] = deque()
    for source in sorted(set(sources)):
        # A source may be left by any edge, which is what arriving from a child allows.
        start = 2 * source + _FROM_CHILD
        seen[start] = 1
        queue.append(start)
        yield start, -1
    while queue:
        here = queue.popleft()
        node, arrival = here >> 1, here & 1
        steps = [2 * child + _FROM_PARENT for child in dag.children[node]] if node not in given else []
        if node not in given if arrival == _FROM_CHILD else node in open_colliders:
            steps = [*(2 * parent + _FROM_CHILD for parent in dag.parents[node]), *steps]
        for state in steps:
            if not seen[state]:
                seen[state] = 1
                queue.append(state)
                yield state, here
