"""The graphs that a graph with undirected edges stands for, and the verdict over all of them.

A member directs every undirected edge so that no directed cycle and no new unshielded collider (a → b ← c with a and c
not adjacent) appears: the graphs that data with these independencies cannot tell apart. Bidirected edges count as
arrowheads on both ends. Orientation rules [meek1995] are applied after each choice, so that a choice rarely leads
nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, product
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError
from ciplearn._core.wording import as_set
from ciplearn.causal.criterion import Question, judge
from ciplearn.causal.names import Edge, heads, turned
from ciplearn.causal.statements import Finding
from ciplearn.causal.verdict import Change, ClassVerdict, Repair, Verdict

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

# A drawing is judged at every change: so many graphs, and fewer where every node has many neighbours.
_MOST_MEMBERS, _FEWEST_MEMBERS, _MOST_WORK = 256, 16, 2_000_000
_MOST_SETS = 8  # adjustment sets that are tried on all graphs, the most common first


def equivalence_class(graph: CausalGraph) -> CausalGraph:
    """Return the graph in which an edge has a direction only where all graphs with the same independencies agree.

    These are the graphs with the same adjacencies and the same unshielded colliders [verma1990].
    """
    if graph.bidirected or graph.latent:
        why = "The graph has hidden causes, got latent nodes or bidirected edges"
        raise GraphError(f"{why}; the class is known for graphs without.")
    fixed = {edge for a, b, c in _colliders(graph) for edge in ((a, b), (c, b))}
    loose = {edge for edge in (*graph.directed, *graph.undirected) if edge not in fixed and edge[::-1] not in fixed}
    # A graph without cycles is a member of its own class, so that no edge is forced both ways.
    directed, undirected = _closed(_neighbours(graph), (), fixed, loose) or (set(graph.directed), set())
    return replace(graph, directed=tuple(sorted(directed)), undirected=tuple(sorted(undirected)))


def members(graph: CausalGraph) -> Iterator[CausalGraph]:
    """Yield the members of the class of `graph` in a fixed order."""
    joined = _neighbours(graph)
    stack: list[tuple[set[Edge], set[Edge], Edge | None]] = [(set(graph.directed), set(graph.undirected), None)]
    while stack:
        closed = _closed(joined, graph.bidirected, *stack.pop())
        if closed is None:
            continue
        directed, undirected = closed
        if not undirected:
            # No collider is new here, since rule 1 has directed every edge that could have made one; a cycle may be.
            with suppress(GraphError):
                yield replace(graph, directed=tuple(directed), undirected=())
            continue
        a, b = min(undirected)
        for edge in ((b, a), (a, b)):
            stack.append((directed | {edge}, undirected - {(a, b)}, edge))


def members_by_parents(graph: CausalGraph, nodes: set[str]) -> Iterator[CausalGraph]:
    """Yield one member per choice of parents that the nodes may have."""
    open_here = [edge for edge in graph.undirected if nodes & set(edge)]
    rest = tuple(edge for edge in graph.undirected if not nodes & set(edge))
    colliders = _colliders(graph)
    for turns in product((False, True), repeat=len(open_here)):
        chosen = [(b, a) if turn else (a, b) for (a, b), turn in zip(open_here, turns, strict=True)]
        try:
            candidate = replace(graph, directed=(*graph.directed, *chosen), undirected=rest)
        except GraphError:
            continue
        if _colliders(candidate) == colliders:
            yield from islice(members(candidate), 1)


def _neighbours(graph: CausalGraph) -> dict[str, set[str]]:
    edges = (*graph.directed, *graph.bidirected, *graph.undirected)
    return heads(graph.nodes, (*edges, *turned(edges)))


def _colliders(graph: CausalGraph) -> set[tuple[str, str, str]]:
    """Unshielded colliders a → b ← c with a < c."""
    joined = _neighbours(graph)
    into = heads(graph.nodes, (*turned(graph.directed), *turned(graph.bidirected), *graph.bidirected))
    return {(a, b, c) for b, ends in into.items() for a, c in combinations(sorted(ends), 2) if c not in joined[a]}


def _closed(
    joined: dict[str, set[str]],
    bidirected: tuple[Edge, ...],
    directed: set[Edge],
    undirected: set[Edge],
    new: Edge | None = None,
) -> tuple[set[Edge], set[Edge]] | None:
    """Apply the orientation rules until nothing changes; None where an edge is forced both ways."""
    directed, undirected = set(directed), set(undirected)
    parents, children = heads(joined, turned(directed)), heads(joined, directed)
    loose = heads(joined, (*undirected, *turned(undirected)))
    into = heads(joined, (*turned(directed), *turned(bidirected), *bidirected))

    def forced(a: str, b: str) -> bool:
        """Tell whether a − b must become a → b."""
        # Rule 1: c → a − b with c, b not adjacent would become a collider at a.
        if into[a] - joined[b] - {b}:
            return True
        # Rule 2: a → c → b would close a cycle.
        if children[a] & parents[b]:
            return True
        # Rule 3: a − c → b and a − d → b with c, d not adjacent.
        through = loose[a] & parents[b]
        if any(through - joined[c] - {c} for c in through):
            return True
        # Rule 4: a − c → d → b with c, b not adjacent and a, d adjacent.
        aside = loose[a] - joined[b]
        return bool(aside) and any(aside & parents[d] for d in joined[a] & parents[b])

    def touched(x: str, y: str) -> set[str]:
        # An arrow bears on the edges at its ends, and by rule 4 on those at the effects of its head.
        return {x, y} | children[y]

    # Everything but the edge `new` was closed before.
    around = set(joined) if new is None else touched(*new)
    while waiting := [edge for edge in undirected if not around.isdisjoint(edge)]:
        around = set()
        for a, b in sorted(waiting):
            forward, backward = forced(a, b), forced(b, a)
            if forward and backward:
                return None
            if forward or backward:
                undirected.remove((a, b))
                x, y = (a, b) if forward else (b, a)
                directed.add((x, y))
                parents[y].add(x)
                children[x].add(y)
                into[y].add(x)
                loose[x].discard(y)
                loose[y].discard(x)
                around |= touched(x, y)
    return directed, undirected


def judge_class(graph: CausalGraph, question: Question) -> ClassVerdict:
    """Judge every member, up to a bound, with one adjustment set for all of them where there is one."""
    degrees = Counter(name for edge in (*graph.directed, *graph.bidirected, *graph.undirected) for name in edge)
    work = sum(degree**2 for degree in degrees.values())
    most = min(_MOST_MEMBERS, max(_FEWEST_MEMBERS, _MOST_WORK // work))
    listing = list(islice(members(graph), most + 1))
    complete = len(listing) <= most
    judged = [judge(member, question) for member in listing[:most]]
    if not judged:
        why = "No graph directs every undirected edge without a cycle or a new collider"
        raise GraphError(f"{why}; check the undirected edges {', '.join(f'{a} − {b}' for a, b in graph.undirected)}.")
    shared = _one_adjustment(listing[:most], question, judged)
    holding = [verdict for verdict in shared if verdict.holds]
    holds_in = "all" if len(holding) == len(shared) else "some" if holding else "none"
    example = next((verdict for verdict in shared if not verdict.holds), shared[0])
    # An edge decides with the direction in which the criterion holds, and against which it never does.
    both_ways = [edge for a, b in graph.undirected for edge in ((a, b), (b, a))]
    with_or_against = (edge for edge in both_ways if all(one.holds == (edge in one.graph.directed) for one in shared))
    deciding = tuple(with_or_against) if holds_in == "some" else ()
    scope = f"{'' if complete else 'the first '}{len(shared)} graphs that this drawing stands for"
    sentence = f"The criterion holds in {len(holding)} of {scope}, with adjustment set {as_set(shared[0].adjustment)}"
    if deciding:
        a, b = deciding[0]
        sentence += f"; the edge {a} − {b} decides: it holds in all with {a} → {b} and in none with {b} → {a}"
    elif holds_in == "some":
        drawn = example.graph.directed
        sentence += f"; it fails, for example, with {', '.join(f'{a} → {b}' for a, b in both_ways if (a, b) in drawn)}"
    sentence += "."
    if not complete:
        loose = len(graph.undirected)
        sentence += f" There are more than {len(shared)}: direct some of the {loose} undirected edges and ask again."
    orders = (Change("direct edge", (a, b), f"direct {a} → {b} if you can argue for it") for a, b in deciding)
    repairs = [Repair((order,), shared[0].independence) for order in orders]
    fields = {name: getattr(example, name) for name in Verdict.__dataclass_fields__}
    fields |= {
        "holds": holds_in == "all" and complete,
        "paper_condition": all(verdict.paper_condition for verdict in shared) and complete,
        "findings": (Finding("class", holds_in == "all" and complete, sentence), *example.findings),
        "graph": graph,
        "find_repairs": partial(tuple, repairs),
        "injective": tuple(dict.fromkeys(name for verdict in shared for name in verdict.injective)),
        "assumptions": tuple(dict.fromkeys(sentence for verdict in shared for sentence in verdict.assumptions)),
    }
    return ClassVerdict(**fields, holds_in=holds_in, members=tuple(shared), deciding=deciding, complete=complete)


def _one_adjustment(graphs: list[CausalGraph], question: Question, judged: list[Verdict]) -> list[Verdict]:
    """Judge again with the adjustment set that holds in most members: training can enforce one statement only."""
    choices = Counter(verdict.adjustment for verdict in judged)
    if len(choices) == 1:
        return judged
    best: list[Verdict] = []
    for choice, _ in choices.most_common(_MOST_SETS):
        trial = [judge(graph, replace(question, adjustment=choice)) for graph in graphs]
        best = max(best, trial, key=lambda verdicts: (sum(verdict.holds for verdict in verdicts), len(verdicts)))
        if all(verdict.holds for verdict in best):
            break
    return best
