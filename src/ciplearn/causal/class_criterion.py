"""The criterion over every graph that a graph with undirected edges stands for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError
from ciplearn._core.wording import as_set
from ciplearn.causal.criterion import judge
from ciplearn.causal.findings import Finding
from ciplearn.causal.names import Edge
from ciplearn.causal.orientations import chosen_directions, members
from ciplearn.causal.question import Question
from ciplearn.causal.verdict import Change, ClassVerdict, Repair, Verdict

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

# A drawing is judged at every change: so many graphs, and fewer where every node has many neighbours.
_MOST_MEMBERS, _FEWEST_MEMBERS, _MOST_WORK = 256, 16, 2_000_000

# Adjustment sets that are tried on all graphs, the most common first.
_MOST_SETS = 8


def judge_class(graph: CausalGraph, question: Question) -> ClassVerdict:
    """Judge every member, up to a bound, with one adjustment set for all of them where there is one."""
    degrees = Counter(name for edge in (*graph.directed, *graph.bidirected, *graph.undirected) for name in edge)
    work = sum(degree**2 for degree in degrees.values())
    most = min(_MOST_MEMBERS, max(_FEWEST_MEMBERS, _MOST_WORK // work))
    listing = list(members(graph, most + 1))
    complete = len(listing) <= most
    judged = [judge(member, question) for member in listing[:most]]
    if not judged:
        raise GraphError(
            "No graph directs every undirected edge without a cycle or a new collider; check the undirected edges "
            f"{', '.join(f'{a} − {b}' for a, b in graph.undirected)}."
        )
    shared = _one_adjustment(listing[:most], question, judged)
    holding = [verdict for verdict in shared if verdict.holds]
    holds_in = "all" if len(holding) == len(shared) else "some" if holding else "none"
    spokesman = next((verdict for verdict in shared if not verdict.holds), shared[0])
    deciding = _deciding(graph, shared) if holds_in == "some" else ()
    summary = _summary(graph, shared, holds_in, deciding, complete)
    fields = {name: getattr(spokesman, name) for name in Verdict.__dataclass_fields__}
    fields |= {
        "holds": holds_in == "all" and complete,
        "paper_condition": all(verdict.paper_condition for verdict in shared) and complete,
        "findings": (summary, *spokesman.findings),
        "graph": graph,
        "find_repairs": partial(_directing, shared, deciding),
        "injective": tuple(dict.fromkeys(name for verdict in shared for name in verdict.injective)),
        "assumptions": tuple(dict.fromkeys(sentence for verdict in shared for sentence in verdict.assumptions)),
    }
    return ClassVerdict(**fields, holds_in=holds_in, members=tuple(shared), deciding=deciding, complete=complete)


def _directing(judged: list[Verdict], deciding: tuple[Edge, ...]) -> tuple[Repair, ...]:
    independence = judged[0].independence
    orders = (Change("direct edge", (a, b), f"direct {a} → {b} if you can argue for it") for a, b in deciding)
    return tuple(Repair((order,), independence) for order in orders)


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


def _summary(
    graph: CausalGraph, judged: list[Verdict], holds_in: str, deciding: tuple[Edge, ...], complete: bool
) -> Finding:
    count = sum(verdict.holds for verdict in judged)
    scope = f"{len(judged)} graphs" if complete else f"the first {len(judged)} graphs"
    given = as_set(judged[0].adjustment)
    sentence = f"With adjustment set {given}, the criterion holds in {count} of {scope} that this drawing stands for"
    if deciding:
        a, b = deciding[0]
        sentence += f"; the edge {a} − {b} decides: it holds in all with {a} → {b} and in none with {b} → {a}"
    elif holds_in == "some":
        failing = next(verdict for verdict in judged if not verdict.holds)
        sentence += f"; it fails, for example, with {_written(chosen_directions(graph, failing.graph))}"
    sentence += "."
    if not complete:
        loose = len(graph.undirected)
        sentence += f" There are more than {len(judged)}: direct some of the {loose} undirected edges and ask again."
    return Finding("class", holds_in == "all" and complete, sentence)


def _deciding(graph: CausalGraph, judged: list[Verdict]) -> tuple[Edge, ...]:
    found = []
    for a, b in graph.undirected:
        for edge in ((a, b), (b, a)):
            with_edge = {verdict.holds for verdict in judged if edge in verdict.graph.directed}
            against = {verdict.holds for verdict in judged if edge not in verdict.graph.directed}
            if with_edge == {True} and against == {False}:
                found.append(edge)
    return tuple(found)


def _written(edges: tuple[Edge, ...]) -> str:
    return ", ".join(f"{a} → {b}" for a, b in edges)
