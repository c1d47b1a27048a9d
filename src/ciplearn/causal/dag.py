"""The bare directed acyclic graph that every question walks over: kinship, d-separation, valid adjustment.

Nodes are numbers. A bidirected edge A ↔ B appears as an unobserved root with the two children A and B, so that
m-separation in the drawn graph is d-separation here and no algorithm needs a second kind of edge.

d-separation is Bayes-ball, one visit to each node and direction, so linear in the edges. A path is blocked by Z when
one of its inner nodes v is a collider (→ v ←) with no descendant in Z, v included, or is not a collider and lies in Z.
X and Y are d-separated by Z when every path between them is blocked.

Separators are vertex cuts of the moral graph: among sets inside the ancestors of X ∪ Y ∪ I, Z ⊇ I d-separates X and Y
exactly when Z cuts them apart in the moral graph of those ancestors, parents of a common child joined and directions
dropped. A minimal d-separator never leaves the ancestors, so listing minimal cuts lists them all.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

_Moral = dict[int, set[int]]
_Neighbours = Sequence[Collection[int]] | _Moral

_FROM_CHILD, _FROM_PARENT = 0, 1  # how a walk arrived at a node: from one of its children, or from one of its parents


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
        return _closure(self.parents, set(of).difference(avoiding), avoiding)

    def descendants(self, of: Iterable[int], avoiding: Collection[int] = ()) -> set[int]:
        """Nodes with a directed path out of `of`, `of` included; paths may not run through `avoiding`."""
        return _closure(self.children, set(of).difference(avoiding), avoiding)

    def with_node(self, parents: Iterable[int]) -> Dag:
        """Return the graph with one more node, numbered `size`, below the given parents."""
        into, children = list(parents), [*self.children, []]
        for parent in into:
            children[parent] = [*children[parent], self.size]
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


def _closure(neighbours: _Neighbours, start: Set[int], avoiding: Collection[int]) -> set[int]:
    """Nodes that can be reached from `start`, which is part of them, without entering `avoiding`."""
    reached, stack = set(start), list(start)
    while stack:
        for node in neighbours[stack.pop()]:
            if node not in reached and node not in avoiding:
                reached.add(node)
                stack.append(node)
    return reached


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
    """Yield each state, 2 · node + direction of arrival, once, breadth first, with the one before; -1 for a source."""
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


def minimal_separators(
    dag: Dag, x: Set[int], y: Set[int], allowed: Set[int], must_include: Set[int]
) -> Iterator[set[int]]:
    """Yield each Z with I ⊆ Z ⊆ `allowed` that separates X and Y and has no separating proper subset that holds I.

    Every minimal cut T is known by the part C(T) that it leaves connected to X. For a connected part C around X the cut
    nearest to X whose part holds C is the border of what Y still reaches without touching C. The list branches on which
    node of that border joins the part next, so every branch that is entered yields a cut: polynomial delay, no repeats.
    """
    moral = _moral_graph(dag, x | y | must_include, removed=must_include)
    stack: list[tuple[set[int], frozenset[int]]] = [(set(x), frozenset())]
    while stack:
        seed, kept_out = stack.pop()
        cut, part = _nearest_cut(moral, seed, y, allowed) or (None, seed)
        if cut is None or not kept_out.isdisjoint(part):
            continue
        yield cut | must_include
        border = sorted(cut - kept_out)
        # Pushed in reverse so that the lowest number is explored first.
        stack += [(part | {border[n]}, kept_out | frozenset(border[:n])) for n in reversed(range(len(border)))]


def smallest_separator(
    dag: Dag, x: Set[int], y: Set[int], allowed: Set[int], must_include: Set[int]
) -> set[int] | None:
    """Return a separator I ⊆ Z ⊆ `allowed` with as few nodes as possible, nearest to X among those, or None.

    By Menger's theorem the size of a smallest vertex cut is the largest number of paths that share no allowed node:
    unit-capacity flow with each allowed node split into an entry (2v) and an exit (2v + 1).
    """
    moral = _moral_graph(dag, x | y | must_include, removed=must_include)
    if not _closure(moral, x, allowed).isdisjoint(y):
        return None
    flow: Counter[tuple[int, int]] = Counter()
    while True:
        came_from, end = _augmenting_search(moral, x, y, allowed, flow)
        if end is None:
            break
        while (before := came_from[end]) != end:
            # Flow along an edge and back along it cancel.
            if flow[end, before]:
                flow[end, before] -= 1
            else:
                flow[before, end] += 1
            end = before
    return {state >> 1 for state in came_from if state & 1 == 0 and state + 1 not in came_from} | must_include


def _augmenting_search(
    moral: _Moral, x: Set[int], y: Set[int], allowed: Set[int], flow: Counter[tuple[int, int]]
) -> tuple[dict[int, int], int | None]:
    """Search the residual graph from X: the state before each reached state, and the state that touched Y if any."""
    came_from = {2 * node + 1: 2 * node + 1 for node in sorted(x)}
    queue = deque(came_from)
    while queue:
        state = queue.popleft()
        node, is_exit = state >> 1, state & 1
        if is_exit:
            if node in y:
                return came_from, state
            steps = [2 * other for other in sorted(moral[node])]
            if flow[state - 1, state]:
                steps.append(state - 1)
        else:
            # Only an allowed node can be full; nodes that cannot be cut carry any number of paths.
            full = node in allowed and flow[state, state + 1]
            steps = [] if full else [state + 1]
            steps += [2 * other + 1 for other in sorted(moral[node]) if flow[2 * other + 1, state]]
        for step in steps:
            if step not in came_from:
                came_from[step] = state
                queue.append(step)
    return came_from, None


def _nearest_cut(moral: _Moral, seed: Set[int], y: Set[int], allowed: Set[int]) -> tuple[set[int], set[int]] | None:
    """Return the cut nearest to X among those that leave `seed` on its side, and that side; None where none does."""
    part = _closure(moral, seed, allowed)
    if not part.isdisjoint(y):
        return None
    border = {other for node in part for other in moral[node]} - part
    far = _closure(moral, y - border, border | part)
    cut = {other for node in far for other in moral[node]} & border
    return cut, _closure(moral, part, cut)


def _moral_graph(dag: Dag, around: Set[int], removed: Set[int]) -> _Moral:
    kept = dag.ancestors(around)
    moral: _Moral = {node: set() for node in kept if node not in removed}
    for node in kept:
        family = [member for member in (node, *dag.parents[node]) if member not in removed]
        for member in family:
            moral[member].update(family)
    for node, neighbours in moral.items():
        neighbours.discard(node)
    return moral


@dataclass(frozen=True)
class Adjustment:
    """The adjustment problem for exposures X and outcomes Y in `dag`; both sets are disjoint and not empty.

    Z is valid for (X, Y) when

    1. no node of Z descends, edges into X removed, from a node outside X on a proper causal path from X to Y, and
    2. Z blocks every proper non-causal path from X to Y,

    where a path is proper when it meets X at its first node only. Equivalently, Z avoids the forbidden nodes of (1) and
    d-separates X from Y in the proper back-door graph, in which the first edge of every proper causal path is removed
    [vanderzander2019]. The second form is linear.
    """

    dag: Dag
    x: frozenset[int]
    y: frozenset[int]
    allowed: Set[int] = frozenset()  # what a set that is looked for may hold
    required: Set[int] = frozenset()  # what it must hold

    @cached_property
    def proper_causal(self) -> set[int]:
        """Nodes outside X on a proper causal path from X to Y, the outcomes at their ends included."""
        below = self.dag.descendants((c for x in self.x for c in self.dag.children[x]), avoiding=self.x)
        above = self.dag.ancestors(self.y, avoiding=self.x)
        return below & above

    @cached_property
    def forbidden(self) -> set[int]:
        """Nodes that no valid set may hold: descendants of `proper_causal` once edges into X are removed."""
        return self.dag.descendants(self.proper_causal, avoiding=self.x)

    @cached_property
    def backdoor_graph(self) -> Dag:
        """The proper back-door graph: without the edges from X into `proper_causal`."""
        return self.dag.without_edges({(x, c) for x in self.x for c in self.dag.children[x] if c in self.proper_causal})

    def is_valid(self, z: Set[int]) -> bool:
        """Tell whether `z`, disjoint from X and Y, is a valid adjustment set."""
        return self.forbidden.isdisjoint(z) and separated(self.backdoor_graph, self.x, self.y, z)

    @cached_property
    def usable(self) -> set[int]:
        """The allowed nodes that are not forbidden."""
        return set(self.allowed) - self.forbidden - self.x - self.y

    def canonical(self) -> set[int] | None:
        """Return the allowed ancestors of X, Y and what is required: valid whenever any allowed set is, else None."""
        candidate = self.backdoor_graph.ancestors(self.x | self.y | self.required) & self.usable
        return candidate if self.required <= self.usable and self.is_valid(candidate) else None

    def minimal(self) -> Iterator[set[int]]:
        """Yield every valid set that loses validity with any node but the required left out, nearest to X first."""
        if self.required <= self.usable:
            yield from minimal_separators(self.backdoor_graph, self.x, self.y, self.usable, self.required)

    def smallest(self) -> set[int] | None:
        """Return a valid set with as few nodes as possible, nearest to X among those; None where there is none."""
        fits = self.required <= self.usable
        return smallest_separator(self.backdoor_graph, self.x, self.y, self.usable, self.required) if fits else None

    def optimal(self) -> set[int] | None:
        """Return the valid set of smallest asymptotic variance, pa(cn) ∖ (cn ∪ forbidden ∪ X), where it exists.

        The optimality theorem [henckel2022] speaks of graphs without latent nodes whose outcomes all descend from the
        exposures. With latent nodes the set is still optimal when all of it is observed, because it then beats even the
        sets that latent nodes would allow. Otherwise None.
        """
        if not self.y <= self.proper_causal:
            return None
        causes = {parent for node in self.proper_causal for parent in self.dag.parents[node]}
        best = causes - self.forbidden - self.x
        return best if best <= self.allowed and self.is_valid(best) else None
