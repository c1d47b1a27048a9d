"""The criterion: from a graph and roles to a verdict, over every graph of a class where edges have no direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError
from ciplearn._core.wording import as_set
from ciplearn.causal.conditions import Conditions, default_adjustment
from ciplearn.causal.findings import (
    Finding,
    assumptions,
    inputs_finding,
    noise_findings,
    paper_findings,
    parents_findings,
    validity_findings,
)
from ciplearn.causal.names import Edge
from ciplearn.causal.orientations import chosen_directions, members
from ciplearn.causal.question import Question
from ciplearn.causal.repairs import find_fallbacks, find_repairs
from ciplearn.causal.verdict import Change, ClassVerdict, Repair, Verdict

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

# A drawing is judged at every change: so many graphs, and fewer where every node has many neighbours.
_MOST_MEMBERS, _FEWEST_MEMBERS, _MOST_WORK = 256, 16, 2_000_000

# Adjustment sets that are tried on all graphs, the most common first.
_MOST_SETS = 8


@lru_cache(maxsize=64)
def judge(graph: CausalGraph, question: Question) -> Verdict:
    """Judge the conditions of `ciplearn.causal.conditions` for roles that were checked against the graph.

    Each fold and each copy of an estimator asks again; the answer is the same.
    """
    conditions = Conditions.of(graph, question)
    s = default_adjustment(conditions) if question.adjustment is None else frozenset(graph.numbers(question.adjustment))
    paths = [
        *validity_findings(graph, conditions.adjustment(s), s, conditions.predictor_name),
        *parents_findings(conditions, s),
    ]
    against = [finding for finding in paths if not finding.holds]
    noise = noise_findings(conditions, s)
    # The shorter way asks for less than injective noise: take it where the longer one needs more, or fails.
    by_inputs = conditions.certifies_by_inputs(s) and bool(against or noise)
    holds = by_inputs or not against
    findings = [f for f in paths if f.holds] + [inputs_finding(conditions, s)] if by_inputs else [*paths, *noise]
    injective = () if by_inputs else graph.names({node for node, _ in conditions.confounded(s)})
    printed = paper_findings(conditions, s)
    return Verdict(
        holds=holds,
        paper_condition=all(finding.holds for finding in printed),
        independence=conditions.statement(s),
        findings=(*findings, *printed),
        assumptions=assumptions(conditions, s, injective, by_inputs),
        warnings=_warnings(conditions, s, against if by_inputs else ()),
        injective=injective,
        outcome=question.outcome,
        protected=question.protected,
        context=question.context,
        inputs=question.inputs,
        adjustment=graph.names(s),
        graph=graph,
        find_repairs=partial(tuple) if holds else partial(find_repairs, graph, question),
        find_fallbacks=partial(tuple) if holds else partial(find_fallbacks, conditions, s),
    )


def _warnings(conditions: Conditions, s: Set[int], against: Sequence[Finding]) -> tuple[str, ...]:
    inputs, written = conditions.inputs, conditions.written
    strict = f"a function of {written(inputs & s)} alone" if inputs & s else "a constant"
    if inputs <= s:
        first = (
            f"The independence is vacuous: every input lies in {written(s)}, so a penalty on it is zero for every "
            "predictor and trains nothing."
        )
    elif inputs <= conditions.known | s:
        first = (
            f"Where the independence is kept exactly, the predictor is {strict}: every other input is made irrelevant. "
            "To stop before that keeps accuracy, and a smaller context demands less."
        )
    else:
        first = (
            f"{conditions.predictor_name} also sees {written(inputs - conditions.known - s)}, which is outside the "
            "context: invariance is a statement about its distribution there, so compare distributions and not only "
            "means when it is measured."
        )
    notes = [first]
    if against:
        notes.append(f"Only overlap and an exact independence carry this certificate: {against[0].sentence}")
    if conditions.outcome in s:
        notes.append(
            f"{conditions.question.outcome} is adjusted for: the penalty needs it in training only, the predictor "
            "never sees it."
        )
    return tuple(notes)


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
    example = next((verdict for verdict in shared if not verdict.holds), shared[0])
    deciding = _deciding(graph, shared) if holds_in == "some" else ()
    summary = _summary(graph, shared, holds_in, deciding, complete)
    fields = {name: getattr(example, name) for name in Verdict.__dataclass_fields__}
    fields |= {
        "holds": holds_in == "all" and complete,
        "paper_condition": all(verdict.paper_condition for verdict in shared) and complete,
        "findings": (summary, *example.findings),
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
    sentence = f"The criterion holds in {count} of {scope} that this drawing stands for, with adjustment set {given}"
    if deciding:
        a, b = deciding[0]
        sentence += f"; the edge {a} − {b} decides: it holds in all with {a} → {b} and in none with {b} → {a}"
    elif holds_in == "some":
        failing = next(verdict for verdict in judged if not verdict.holds)
        directions = ", ".join(f"{a} → {b}" for a, b in chosen_directions(graph, failing.graph))
        sentence += f"; it fails, for example, with {directions}"
    sentence += "."
    if not complete:
        loose = len(graph.undirected)
        sentence += f" There are more than {len(judged)}: direct some of the {loose} undirected edges and ask again."
    return Finding("class", holds_in == "all" and complete, sentence)


def _deciding(graph: CausalGraph, judged: list[Verdict]) -> tuple[Edge, ...]:
    """Undirected edges with the direction in which the criterion holds, and against which it never does."""
    directions = (edge for a, b in graph.undirected for edge in ((a, b), (b, a)))
    return tuple(
        edge for edge in directions if all(verdict.holds == (edge in verdict.graph.directed) for verdict in judged)
    )
