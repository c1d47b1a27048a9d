"""d-separation by Bayes-ball: one visit to each node and direction, so linear in the edges.

A path is blocked by Z when one of its inner nodes v is a collider (→ v ←) with no descendant in Z, v included, or is
not a collider and lies in Z. X and Y are d-separated by Z when every path between them is blocked. On graphs with
bidirected edges the same walk gives m-separation, because `Dag` holds each of them as a latent root.

Separators are vertex cuts of the moral graph: among sets inside the ancestors of X ∪ Y ∪ I, Z ⊇ I d-separates X and Y
exactly when Z cuts them apart in the moral graph of those ancestors, parents of a common child joined and directions
dropped. A minimal d-separator never leaves the ancestors, so listing minimal cuts lists them all.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Set

from ciplearn.causal.dag import Dag

Moral = dict[int, set[int]]

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
        for place in range(len(border) - 1, -1, -1):
            stack.append((part | {border[place]}, kept_out | frozenset(border[:place])))


def smallest_separator(
    dag: Dag, x: Set[int], y: Set[int], allowed: Set[int], must_include: Set[int]
) -> set[int] | None:
    """Return a separator I ⊆ Z ⊆ `allowed` with as few nodes as possible, nearest to X among those, or None.

    By Menger's theorem the size of a smallest vertex cut is the largest number of paths that share no allowed node:
    unit-capacity flow with each allowed node split into an entry (2v) and an exit (2v + 1).
    """
    moral = _moral_graph(dag, x | y | must_include, removed=must_include)
    if not _spread(moral, x, through=lambda node: node not in allowed).isdisjoint(y):
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
    moral: Moral, x: Set[int], y: Set[int], allowed: Set[int], flow: Counter[tuple[int, int]]
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


def _nearest_cut(moral: Moral, seed: Set[int], y: Set[int], allowed: Set[int]) -> tuple[set[int], set[int]] | None:
    """Return the cut nearest to X among those that leave `seed` on its side, and that side; None where none does."""
    part = _spread(moral, seed, through=lambda node: node not in allowed)
    if not part.isdisjoint(y):
        return None
    border = {other for node in part for other in moral[node]} - part
    far = _spread(moral, y - border, through=lambda node: node not in border and node not in part)
    cut = {other for node in far for other in moral[node]} & border
    return cut, _spread(moral, part, through=lambda node: node not in cut)


def _spread(moral: Moral, start: Set[int], through: Callable[[int], bool]) -> set[int]:
    reached = set(start)
    stack = list(reached)
    while stack:
        for node in moral[stack.pop()]:
            if node not in reached and through(node):
                reached.add(node)
                stack.append(node)
    return reached


def _moral_graph(dag: Dag, around: Set[int], removed: Set[int]) -> Moral:
    kept = dag.ancestors(around)
    moral: Moral = {node: set() for node in kept if node not in removed}
    for node in kept:
        family = [member for member in (node, *dag.parents[node]) if member not in removed]
        for member in family:
            moral[member].update(family)
    for node, neighbours in moral.items():
        neighbours.discard(node)
    return moral
