"""The question that the criterion answers, and its conditions in numbers.

For protected A, context W, adjustment set S and inputs I, let X = (A ∪ W) ∖ S and let Ŷ be a new node with parents I.
If Ŷ ⊥ X | S, then Ŷ is counterfactually invariant in A with respect to A ∪ W ∪ S, provided that

- (validity) S is a valid adjustment set for (X, Ŷ) in the graph with Ŷ, and
- (parents) every node of R lies in A ∪ W ∪ S and so do its parents, where R holds the nodes of X ∖ A that descend from
  A and, with each node, its parents that descend from A and are not in A. A latent root counts as its children's noise;
- (noise) where such a root has several children, the children in R must be injective in their total noise,

or else, whatever these three say, provided that

- (inputs) every input lies in A ∪ W ∪ S, and no input in S descends from A.

The last one is a second, shorter way: under overlap Ŷ ⊥ X | S then leaves Ŷ a function of the inputs in S alone, and A
changes none of them (docs/theory/criterion.md has the proof).

Validity is asked for Ŷ, not for the outcome: Ŷ inherits every cause of its inputs, and a path into an input is as good
a back door as a path into the outcome.

The default S is the largest inside the context, since moving a node from X into S only weakens what is demanded;
docs/theory/criterion.md proves that it certifies whenever any S inside the context does.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ciplearn._core.errors import GraphError
from ciplearn._core.wording import as_set
from ciplearn.causal.dag import Adjustment, Dag
from ciplearn.causal.names import Names, in_order, unused
from ciplearn.causal.statements import PREDICTOR, Independence

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
    """Fill in the defaults of `CausalGraph.criterion` and refuse parts that cannot be played together."""

    def part(names: Names, role: str) -> tuple[str, ...]:
        return in_order(graph.known_observed(names, role))

    targets = graph.known(graph.outcomes if outcome is None else outcome, "outcome")
    if len(targets) != 1:
        raise GraphError(
            f"The criterion needs one outcome, but {len(targets)} were received ({as_set(targets)}); name one node, "
            "for several columns draw one node that stands for them."
        )
    (target,) = part(targets, "outcome")
    others = tuple(name for name in graph.observed if name != target)
    asked = part(graph.exposures if protected is None else protected, "protected")
    if not asked:
        raise GraphError("Nothing is protected; name the variables that the prediction should not follow.")
    given = part(graph.adjusted if adjustment is None else adjustment, "adjustment")
    question = Question(
        outcome=target,
        protected=asked,
        context=others if context is None else part(context, "context"),
        inputs=others if inputs is None else part(inputs, "inputs"),
        # No adjusted node in the text leaves the choice to the criterion; an empty set that was passed does not.
        adjustment=None if adjustment is None and not given else given,
    )
    for role in ("protected", "context", "inputs"):
        if target in getattr(question, role):
            why = "the predictor would see what it predicts" if role == "inputs" else "it is what is predicted"
            raise GraphError(f"{role} names the outcome {target!r}: {why}; leave it out.")
    if both := [name for name in given if name in asked]:
        raise GraphError(
            f"adjustment names {both[0]!r}, which is protected: holding it fixed would hide its effect; leave it out."
        )
    return question


def predictor_name(graph: CausalGraph) -> str:
    """Return the name under which Ŷ is shown: one that no node of the graph has."""
    return unused(PREDICTOR, graph.index)


@dataclass(frozen=True)
class Conditions:
    """What must hold of an adjustment set, for one graph and fixed roles."""

    graph: CausalGraph
    question: Question
    dag: Dag  # the graph with Ŷ added; nodes are its numbers
    predictor: int
    protected: frozenset[int]
    known: frozenset[int]  # A ∪ W
    outcome: int
    observed: frozenset[int]

    @classmethod
    def of(cls, graph: CausalGraph, question: Question) -> Conditions:
        """Add Ŷ below the inputs and number the roles."""
        bare, number = graph.dag(), graph.index
        protected = frozenset(number[name] for name in question.protected)
        return cls(
            graph=graph,
            question=question,
            dag=bare.with_node(sorted(number[name] for name in question.inputs)),
            predictor=bare.size,
            protected=protected,
            known=protected | {number[name] for name in question.context},
            outcome=number[question.outcome],
            observed=frozenset(number[name] for name in graph.observed),
        )

    @cached_property
    def inputs(self) -> frozenset[int]:
        """The parents of Ŷ."""
        return frozenset(self.dag.parents[self.predictor])

    @cached_property
    def affected(self) -> set[int]:
        """Strict descendants of A that are not in A themselves."""
        below = self.dag.descendants(child for node in self.protected for child in self.dag.children[node])
        return below - self.protected

    def exposures(self, s: Set[int]) -> frozenset[int]:
        """X = (A ∪ W) ∖ S."""
        return self.known - s

    def adjustment(self, s: Set[int], *constraints: Set[int]) -> Adjustment:
        """The adjustment problem (X, Ŷ) that S must solve; with what another set for it may hold, and must."""
        return Adjustment(self.dag, self.exposures(s), frozenset((self.predictor,)), *constraints)

    def responding(self, s: Set[int]) -> set[int]:
        """R: nodes of X ∖ A that A changes, with every node through which A changes them."""
        unaffected = set(range(self.dag.size)) - self.affected
        return self.dag.ancestors((self.exposures(s) - self.protected) & self.affected, avoiding=unaffected)

    def is_noise(self, node: int) -> bool:
        """Tell whether a node is a latent root, which counts as noise of its children."""
        return node not in self.observed and node != self.predictor and not self.dag.parents[node]

    def unexplained(self, s: Set[int]) -> list[tuple[int, int]]:
        """Pairs (V, parent) with V in R whose parent is outside A ∪ W ∪ S; (V, V) where V itself is."""
        inside = self.known | s
        pairs = ((node, near) for node in sorted(self.responding(s)) for near in (node, *self.dag.parents[node]))
        return [(node, near) for node, near in pairs if near not in inside and not self.is_noise(near)]

    def confounded(self, s: Set[int]) -> list[tuple[int, int]]:
        """Pairs (V, root) with V in R and a latent root that has other children too."""
        pairs = ((node, parent) for node in sorted(self.responding(s)) for parent in self.dag.parents[node])
        return [(node, root) for node, root in pairs if self.is_noise(root) and len(self.dag.children[root]) > 1]

    def certifies_by_inputs(self, s: Set[int]) -> bool:
        """Tell whether every input lies in A ∪ W ∪ S, and those in S do not descend from A."""
        return self.inputs <= self.known | s and self.affected.isdisjoint(self.inputs & s)

    def written(self, numbers: Iterable[int]) -> str:
        """Write nodes as a set of names."""
        return as_set(self.graph.names(numbers))

    @cached_property
    def predictor_name(self) -> str:
        """The name under which Ŷ is shown."""
        return predictor_name(self.graph)

    def statement(self, s: Set[int]) -> Independence:
        """Return the statement for a penalty to enforce with adjustment set `s`: Ŷ ⊥ X | S."""
        right, given = self.graph.names(self.exposures(s)), self.graph.names(s)
        return Independence(right=right, given=given, left=self.predictor_name)


def largest_inside(conditions: Conditions) -> frozenset[int]:
    """Return the largest S ⊆ W ∖ A that can be valid: T without A and without what carries A's effect to Ŷ."""
    dag, known = conditions.dag, conditions.known
    free_to_predictor = dag.ancestors((conditions.predictor,), avoiding=known)
    carriers = {node for node in known & conditions.affected if not free_to_predictor.isdisjoint(dag.children[node])}
    return known - conditions.protected - carriers


def default_adjustment(conditions: Conditions) -> frozenset[int]:
    """Return the adjustment set of choice: a certifying one whenever there is one.

    In this order: the largest set inside the context; the same with as few observed nodes from outside as possible; the
    same with the outcome allowed too; a set that certifies by the inputs, valid if it can be. Where nothing certifies,
    a set that is valid at least, else the largest inside.
    """
    inside = largest_inside(conditions)
    parents = frozenset(missing for _, missing in conditions.unexplained(inside))
    if not parents and conditions.adjustment(inside).is_valid(inside):
        return inside
    outside = conditions.observed - conditions.known
    inputs = conditions.inputs - conditions.known
    required_inputs = inputs if inputs.isdisjoint(conditions.affected) else frozenset[int]()
    for required in (parents, required_inputs):
        for allowed in (outside - {conditions.outcome}, outside):
            if required <= allowed:
                s = conditions.adjustment(inside, allowed | inside, inside | required).smallest()
                if s is not None:
                    return frozenset(s)
    return inside | required_inputs


def some_set_certifies(conditions: Conditions) -> bool:
    """Tell whether `default_adjustment` certifies, without finding it: one separation at most, so linear."""
    if (conditions.inputs - conditions.known).isdisjoint(conditions.affected):
        return True
    inside = largest_inside(conditions)
    parents = {missing for _, missing in conditions.unexplained(inside)}
    outside = conditions.observed - conditions.known
    problem = conditions.adjustment(inside, outside | inside, inside | parents)
    return parents <= outside and problem.canonical() is not None


def search_limit(graph: CausalGraph) -> int:
    """Return how many changed graphs or roles a search may judge: 200, fewer on graphs of more than 150 nodes."""
    # A judgement is linear in the graph; this keeps a search near a second at 1000 nodes.
    return min(200, max(20, 30_000 // max(1, len(graph.nodes))))
