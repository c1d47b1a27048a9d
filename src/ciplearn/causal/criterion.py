"""The criterion: from a graph and roles to a verdict; and what helps where it fails.

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

Repairs, the smallest changes to graph or roles, are searched in order of their number. What can help is read off the
offences themselves: an open path is closed only by a change to a node or an edge on it, a missing parent is mended only
by a change to it, to its edge or to its child, and the short way by the inputs only by a change to an input outside the
context. So the search follows the witnesses instead of trying every node of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_list, as_set
from ciplearn.causal.dag import Adjustment, Dag
from ciplearn.causal.findings import assumptions, inputs_finding, noise_findings, paper_findings, path_findings
from ciplearn.causal.names import in_order
from ciplearn.causal.statements import MOST_NAMES, Finding, Independence, predictor_name
from ciplearn.causal.verdict import Change, Fallback, Repair, Verdict, common_cause

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

_MOST_CHANGES = 3  # at once: more are no longer a repair but another study
_MOST_REPAIRS = 12


@dataclass(frozen=True)
class Question:
    """What the criterion is asked: names that were checked against a graph, each part in natural order."""

    outcome: str  # Y, what is predicted
    protected: tuple[str, ...]  # A, the variables that the prediction should not follow
    context: tuple[str, ...]  # W, what a person is known by while A is imagined to change
    inputs: tuple[str, ...]  # what the predictor sees: the parents of Ŷ
    adjustment: tuple[str, ...] | None  # S; None leaves the choice to the criterion


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
        """Write nodes as a list of names; the signs of the verdict name them all."""
        return as_list(self.graph.names(numbers), MOST_NAMES)

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


@lru_cache(maxsize=64)  # each fold and each copy of an estimator asks again
def judge(graph: CausalGraph, question: Question) -> Verdict:
    """Judge the conditions for roles that were checked against the graph."""
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
            f"A prediction that keeps to this exactly is {strict}: every other input is made irrelevant. Accuracy is "
            "kept by stopping before that, or by naming fewer columns as the context."
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


_Draft = tuple[Conditions, tuple[Change, ...]]  # a changed graph with changed roles, and the changes that led there


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


def search_limit(graph: CausalGraph) -> int:
    """Return how many changed graphs or roles a search may judge: 200, fewer on graphs of more than 150 nodes."""
    # A judgement is linear in the graph; this keeps a search near a second at 1000 nodes.
    return min(200, max(20, 30_000 // max(1, len(graph.nodes))))
