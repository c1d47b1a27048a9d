"""What a penalty can still buy where the criterion fails, strongest statement first."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_set
from ciplearn.causal.conditions import Conditions, search_limit
from ciplearn.causal.default_adjustment import default_adjustment, some_set_certifies
from ciplearn.causal.names import in_order
from ciplearn.causal.question import Question
from ciplearn.causal.verdict import Fallback

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph


def find_fallbacks(conditions: Conditions, s: Set[int]) -> tuple[Fallback, ...]:
    """Return a certified smaller context if there is one, invariance to experiments if S is valid, parity always."""
    found = []
    smaller = _smaller_context(conditions.graph, conditions.question)
    if smaller is not None:
        found.append(smaller)
    enforced = conditions.statement(s)
    right, predictor = as_set(enforced.right), conditions.predictor_name
    if conditions.adjustment(s).is_valid(s):
        found.append(
            Fallback(
                enforced,
                f"under overlap, setting {right} by intervention then leaves the distribution of {predictor} in the "
                "population as it is; for one person, whose history is known, it promises nothing.",
            )
        )
    parity = "on average over everybody" if not s else f"among people alike in {as_set(enforced.given)}"
    found.append(
        Fallback(
            enforced,
            f"parity in the data, {parity}: the predictions are distributed alike whatever {right} is; about "
            "what would have happened it promises nothing.",
        )
    )
    return tuple(found)


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
            found = _certified(graph, replace(question, context=kept, adjustment=None))
            if found is not None:
                return found
    return None


def _certified(graph: CausalGraph, question: Question) -> Fallback | None:
    conditions = Conditions.of(graph, question)
    if not some_set_certifies(conditions):
        return None
    s = default_adjustment(conditions)
    known = in_order((*question.protected, *question.context, *graph.names(s)))
    return Fallback(
        conditions.statement(s),
        f"counterfactual invariance in {as_set(question.protected)} with respect to {as_set(known)}, a smaller context "
        "than the one asked about.",
    )
