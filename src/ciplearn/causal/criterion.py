"""The criterion: from a graph and roles to a verdict; and what helps where it fails.

Repairs, the smallest changes to graph or roles, are searched in order of their number. What can help is read off the
offences themselves: an open path is closed only by a change to a node or an edge on it, a missing parent is mended only
by a change to it, to its edge or to its child, and the short way by the inputs only by a change to an input outside the
context. So the search follows the witnesses instead of trying every node of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_set
from ciplearn.causal.conditions import Conditions, Question, default_adjustment, search_limit, some_set_certifies
from ciplearn.causal.findings import assumptions, inputs_finding, noise_findings, paper_findings, path_findings
from ciplearn.causal.names import in_order
from ciplearn.causal.statements import Finding
from ciplearn.causal.verdict import Change, Fallback, Repair, Verdict, common_cause

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

_MOST_CHANGES = 3  # at once: more are no longer a repair but another study
_MOST_REPAIRS = 12

_Draft = tuple[Conditions, tuple[Change, ...]]  # a changed graph with changed roles, and the changes that led there


@lru_cache(maxsize=64)  # each fold and each copy of an estimator asks again
def judge(graph: CausalGraph, question: Question) -> Verdict:
    """Judge the conditions of `ciplearn.causal.conditions` for roles that were checked against the graph."""
    conditions = Conditions.of(graph, question)
    s = default_adjustment(conditions) if question.adjustment is None else frozenset(graph.numbers(question.adjustment))
    paths = path_findings(conditions, s)
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
        **{**vars(question), "adjustment": graph.names(s)},
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


def find_repairs(graph: CausalGraph, question: Question) -> tuple[Repair, ...]:
    """Return the repairs with the fewest changes, each with the adjustment set it allows."""
    start = Conditions.of(graph, replace(question, adjustment=None))
    if some_set_certifies(start):
        s = default_adjustment(start)
        wanted = graph.names(s)
        order = f"adjust for {as_set(wanted)} instead of {as_set(question.adjustment or ())}"
        return (Repair((Change("adjust for", wanted, order),), start.statement(s)),)
    layer: list[_Draft] = [(start, ())]
    tried = {frozenset[Change]()}
    for _ in range(_MOST_CHANGES):
        repairs, following = [], []
        for draft, changes in _changed_once_more(layer, tried):
            if some_set_certifies(draft):
                repairs.append(Repair(changes, draft.statement(default_adjustment(draft))))
            else:
                following.append((draft, changes))
            if len(tried) > search_limit(graph) or len(repairs) == _MOST_REPAIRS:
                break
        if repairs:
            return tuple(repairs)
        layer = following
    return ()


def _changed_once_more(drafts: list[_Draft], tried: set[frozenset[Change]]) -> Iterator[_Draft]:
    """Yield each draft with one more change, drafts that were tried before left out."""
    for draft, changes in drafts:
        for change in _changes(draft):
            key = frozenset((*changes, change))
            if key not in tried:
                tried.add(key)
                graph, context, inputs = change.applied(draft.graph, draft.question.context, draft.question.inputs)
                question = replace(draft.question, context=context, inputs=inputs)
                yield Conditions.of(graph, question), (*changes, change)


def _changes(conditions: Conditions) -> Iterator[Change]:
    """Yield the changes that may help, the cheapest to argue for first."""
    graph, question, s = conditions.graph, conditions.question, default_adjustment(conditions)
    paths = [path for finding in path_findings(conditions, s) if not finding.holds for path in finding.paths]
    nodes = [node for path in paths for node in path.nodes if node in graph.index]
    nodes += graph.names({node for node, missing in conditions.unexplained(s) if node == missing})
    nodes += [name for name in question.inputs if name not in question.context and name not in question.protected]
    nodes = list(dict.fromkeys(nodes))
    for node in nodes:
        if node in graph.latent:
            yield Change("measure", (node,), f"measure {node}")
    for one, arrow, other in (edge for path in paths for edge in path.edges):
        a, b = (other, one) if arrow == "←" else (one, other)
        if arrow == "↔":
            pair = (a, b) if (a, b) in graph.bidirected else (b, a)
            yield Change("measure", pair, f"measure the {common_cause(graph, *pair)}")
            order = f"drop {a} ↔ {b} if you can argue that there is no such cause"
            yield Change("drop common cause", pair, order)
        elif (a, b) in graph.directed:
            yield Change("drop edge", (a, b), f"drop {a} → {b} if you can argue that there is no such effect")
    for node in nodes:
        outside = node not in graph.latent and node != question.outcome
        if outside and node not in question.context and node not in question.protected:
            yield Change("add to context", (node,), f"add {node} to the context")
    for node in dict.fromkeys((*nodes, *question.context)):
        if node in question.context and node not in question.protected:
            yield Change("drop from context", (node,), f"drop {node} from the context")
    for node in nodes:
        if node in question.inputs and len(question.inputs) > 1:
            yield Change("drop from inputs", (node,), f"keep {node} out of the inputs")


def find_fallbacks(conditions: Conditions, s: Set[int]) -> tuple[Fallback, ...]:
    """Return a certified smaller context if there is one, invariance to experiments if S is valid, parity always."""
    enforced = conditions.statement(s)
    right, predictor = as_set(enforced.right), conditions.predictor_name
    smaller = _smaller_context(conditions.graph, conditions.question)
    fallbacks = [] if smaller is None else [smaller]
    if conditions.adjustment(s).is_valid(s):
        promise = (
            f"an intervention on {right} then leaves the distribution of {predictor} in the population as it is, under "
            "overlap; it promises nothing for one person, whose history is known."
        )
        fallbacks.append(Fallback(enforced, promise))
    among = f"among people alike in {as_set(enforced.given)}" if s else "on average over everybody"
    parity = (
        f"parity in the data, {among}: the predictions are distributed alike whatever {right} is; it promises nothing "
        "about what would have happened."
    )
    return (*fallbacks, Fallback(enforced, parity))


def _smaller_context(graph: CausalGraph, question: Question) -> Fallback | None:
    """Drop as few context nodes as possible until the criterion holds; at the end, all of them."""
    droppable = [name for name in question.context if name not in question.protected]
    tried = 0
    for count in range(1, len(droppable) + 1):
        for dropped in combinations(droppable, count):
            tried += 1
            if tried > search_limit(graph) and count < len(droppable):
                break
            kept = tuple(name for name in question.context if name not in dropped)
            conditions = Conditions.of(graph, replace(question, context=kept, adjustment=None))
            if some_set_certifies(conditions):
                s = default_adjustment(conditions)
                respected = in_order((*question.protected, *kept, *graph.names(s)))
                promise = (
                    f"counterfactual invariance in {as_set(question.protected)} with respect to {as_set(respected)}, a "
                    "smaller context than the one asked about."
                )
                return Fallback(conditions.statement(s), promise)
    return None
