"""The question that the criterion answers: outcome, protected, context, inputs, adjustment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError
from ciplearn._core.wording import as_set
from ciplearn.causal.names import Names, in_order

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


@dataclass(frozen=True)
class Question:
    """The parts, each checked against a graph and in natural order."""

    outcome: str  # Y, what is predicted
    protected: tuple[str, ...]  # A, the variables that the prediction should not follow
    context: tuple[str, ...]  # W, what a person is known by while A is imagined to change
    inputs: tuple[str, ...]  # what the predictor sees: the parents of Ŷ
    adjustment: tuple[str, ...] | None  # S; None leaves the choice to the criterion


def read_question(
    graph: CausalGraph,
    outcome: str | None,
    protected: Names | None,
    context: Names | None,
    inputs: Names | None,
    adjustment: Names | None,
) -> Question:
    """Fill in the defaults and refuse parts that cannot be played together.

    Roles written in the graph's source text stand in for what is not given: its exposures are protected, its outcome
    is the outcome, its adjusted nodes are the adjustment set. Context and inputs default to every observed node but the
    outcome.

    Raises `GraphError` if a name is unknown or latent, if no outcome or nothing protected is named, or if parts
    overlap.
    """
    target = _outcome(graph, outcome)
    others = tuple(name for name in graph.observed if name != target)
    asked = _part(graph, graph.exposures if protected is None else protected, "protected")
    if not asked:
        raise GraphError("Nothing is protected; name the variables that the prediction should not follow.")
    given = _part(graph, graph.adjusted if adjustment is None else adjustment, "adjustment")
    question = Question(
        outcome=target,
        protected=asked,
        context=others if context is None else _part(graph, context, "context"),
        inputs=others if inputs is None else _part(graph, inputs, "inputs"),
        # No adjusted node in the text leaves the choice to the criterion; an empty set that was passed does not.
        adjustment=None if adjustment is None and not given else given,
    )
    _refuse_overlap(question)
    return question


def _outcome(graph: CausalGraph, outcome: str | None) -> str:
    names = graph.known(graph.outcomes if outcome is None else outcome, "outcome")
    if len(names) != 1:
        raise GraphError(
            f"The criterion needs one outcome, but {len(names)} were received ({as_set(names)}); name one node, for "
            "several columns draw one node that stands for them."
        )
    return _part(graph, names, "outcome")[0]


def _part(graph: CausalGraph, names: Names, role: str) -> tuple[str, ...]:
    return in_order(graph.known_observed(names, role))


def _refuse_overlap(question: Question) -> None:
    for role, names in (("protected", question.protected), ("context", question.context), ("inputs", question.inputs)):
        if question.outcome in names:
            why = "the predictor would see what it predicts" if role == "inputs" else "it is what is predicted"
            raise GraphError(f"{role} names the outcome {question.outcome!r}: {why}; leave it out.")
    both = [name for name in question.adjustment or () if name in question.protected]
    if both:
        raise GraphError(
            f"adjustment names {both[0]!r}, which is protected: holding it fixed would hide its effect; leave it out."
        )
