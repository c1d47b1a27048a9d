"""The criterion: from a graph and roles to a verdict."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ciplearn.causal.assumptions import assumptions
from ciplearn.causal.conditions import Conditions
from ciplearn.causal.default_adjustment import default_adjustment
from ciplearn.causal.fallbacks import find_fallbacks
from ciplearn.causal.findings import (
    Finding,
    inputs_finding,
    noise_findings,
    paper_findings,
    parents_findings,
    validity_findings,
)
from ciplearn.causal.question import Question
from ciplearn.causal.repairs import find_repairs
from ciplearn.causal.verdict import Verdict

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


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
    own = [f for f in paths if f.holds] + [inputs_finding(conditions, s)] if by_inputs else [*paths, *noise]
    injective = () if by_inputs else graph.names({node for node, _ in conditions.confounded(s)})
    printed = paper_findings(conditions, s)
    return Verdict(
        holds=holds,
        paper_condition=all(finding.holds for finding in printed),
        independence=conditions.statement(s),
        findings=(*own, *printed),
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
    said = []
    if inputs <= s:
        said.append(
            f"The independence is vacuous: every input lies in {written(s)}, so a penalty on it is zero for every "
            "predictor and trains nothing."
        )
    elif inputs <= conditions.known | s:
        strict = f"a function of {written(inputs & s)} alone" if inputs & s else "constant"
        said.append(
            f"At the strict end the predictor is {strict}, because every input is conditioned on or made irrelevant; "
            "the weight of the penalty trades accuracy along the way there, and a smaller context demands less."
        )
    else:
        said.append(
            f"{conditions.predictor_name} also sees {written(inputs - conditions.known - s)}, which is outside the "
            "context: invariance is a statement about its distribution there, so compare distributions and not only "
            "means when it is measured."
        )
    if against:
        said.append(f"Only overlap and an exact independence carry this certificate: {against[0].sentence}")
    if conditions.outcome in s:
        said.append(
            f"{conditions.question.outcome} is adjusted for: the penalty needs it in training only, the predictor "
            "never sees it."
        )
    return tuple(said)
