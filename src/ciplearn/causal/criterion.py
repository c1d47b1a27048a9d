"""The criterion: from a graph and roles to a verdict."""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_set
from ciplearn.causal.choice import choose_adjustment
from ciplearn.causal.conditions import (
    Finding,
    inputs_finding,
    noise_findings,
    paper_findings,
    parents_findings,
    validity_findings,
)
from ciplearn.causal.fallbacks import find_fallbacks
from ciplearn.causal.paths import predictor_name
from ciplearn.causal.problem import Problem, statement
from ciplearn.causal.repairs import find_repairs
from ciplearn.causal.roles import Roles
from ciplearn.causal.verdict import Verdict

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


def judge(graph: CausalGraph, roles: Roles) -> Verdict:
    """Judge the conditions of `ciplearn.causal.problem` for roles that were checked against the graph."""
    problem = Problem.pose(graph, roles)
    s = choose_adjustment(problem) if roles.adjustment is None else frozenset(graph.numbers(roles.adjustment))
    paths = [
        *validity_findings(graph, problem.adjustment(s), s, predictor_name(graph)),
        *parents_findings(graph, problem, s),
    ]
    against = [finding for finding in paths if not finding.holds]
    noise = noise_findings(graph, problem, s)
    # The shorter way asks for less than injective noise: take it where the longer one needs more, or fails.
    by_inputs = problem.certifies_by_inputs(s) and bool(against or noise)
    holds = by_inputs or not against
    own = [f for f in paths if f.holds] + [inputs_finding(graph, problem, s)] if by_inputs else [*paths, *noise]
    injective = () if by_inputs else graph.names({node for node, _ in problem.confounded(s)})
    printed = paper_findings(graph, roles, problem, s)
    return Verdict(
        holds=holds,
        paper_condition=all(finding.holds for finding in printed),
        independence=statement(graph, problem, s),
        findings=(*own, *printed),
        assumptions=_assumptions(graph, roles, problem, s, injective, by_inputs),
        warnings=_warnings(graph, roles, problem, s, against if by_inputs else []),
        injective=injective,
        outcome=roles.outcome,
        protected=roles.protected,
        context=roles.context,
        inputs=roles.inputs,
        adjustment=graph.names(s),
        graph=graph,
        find_repairs=partial(tuple) if holds else partial(find_repairs, graph, roles),
        find_fallbacks=partial(tuple) if holds else partial(find_fallbacks, graph, roles, problem, s),
    )


def _assumptions(
    graph: CausalGraph, roles: Roles, problem: Problem, s: Set[int], injective: tuple[str, ...], by_inputs: bool
) -> tuple[str, ...]:
    protected, given = as_set(roles.protected), as_set(graph.names(s))
    right = as_set(graph.names(problem.exposures(s)))
    rests = ", on which the certificate rests" if by_inputs else ""
    where = f" together with every value of {given}" if s else ""
    said = [
        "The graph is right: no edge and no unobserved common cause is missing.",
        f"Overlap{rests}: every value that changing {protected} could give to {right} occurs{where}.",
        f"{predictor_name(graph)} is a function of {as_set(roles.inputs)} and of nothing else but independent noise.",
        "The independence is exact: a small but positive dependence bounds no counterfactual difference by itself.",
    ]
    if injective:
        said.append(
            f"{as_set(injective)}: injective in the total noise, unobserved causes included, given their parents."
        )
    return tuple(said)


def _warnings(
    graph: CausalGraph, roles: Roles, problem: Problem, s: Set[int], against: list[Finding]
) -> tuple[str, ...]:
    predictor = predictor_name(graph)
    inputs = graph.numbers(roles.inputs)
    given = as_set(graph.names(s))
    said = []
    if inputs <= s:
        said.append(
            f"The independence is vacuous: every input lies in {given}, so a penalty on it is zero for every predictor "
            "and trains nothing."
        )
    elif inputs <= problem.known | s:
        kept = graph.names(inputs & s)
        strict = f"a function of {as_set(kept)} alone" if kept else "constant"
        said.append(
            f"At the strict end the predictor is {strict}, because every input is conditioned on or made irrelevant; "
            "the weight of the penalty trades accuracy along the way there, and a smaller context demands less."
        )
    else:
        unseen = as_set(graph.names(inputs - problem.known - s))
        said.append(
            f"{predictor} also sees {unseen}, which is outside the context: invariance is a statement about its "
            "distribution there, so compare distributions and not only means when it is measured."
        )
    if against:
        said.append(f"Only overlap and an exact independence carry this certificate: {against[0].sentence}")
    if problem.outcome in s:
        said.append(
            f"{roles.outcome} is adjusted for: the penalty needs it in training only, the predictor never sees it."
        )
    return tuple(said)
