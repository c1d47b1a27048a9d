"""Each condition of the criterion as a sentence with its witnesses."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ciplearn._core.wording import as_set
from ciplearn.causal.adjustment import Adjustment
from ciplearn.causal.conditions import Conditions
from ciplearn.causal.dag import Dag
from ciplearn.causal.paths import Path, as_path, shortest_directed, why_open
from ciplearn.causal.separation import reachable, shortest_open_walk

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

# A reader learns nothing from the sixth path of the same kind.
_SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """One thing that speaks for or against the verdict.

    Attributes
    ----------
    condition : str
        ``"validity"``, ``"parents"``, ``"noise"``, ``"inputs"``, ``"paper"``, or ``"class"`` where edges have no
        direction.
    holds : bool
        Whether it speaks for the verdict.
    sentence : str
        The finding in words, with nodes and paths.
    paths : tuple of Path
        The paths in the sentence; open ones are drawn in red.

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> verdict = CausalGraph.from_edges("S -> A, S -> Y, A -> Y").criterion(outcome="Y", protected=["A"])
    >>> [(finding.condition, finding.holds) for finding in verdict.findings]
    [('validity', True), ('parents', True), ('paper', True)]
    """

    condition: str
    holds: bool
    sentence: str
    paths: tuple[Path, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready data."""
        return {
            "condition": self.condition,
            "holds": self.holds,
            "sentence": self.sentence,
            "paths": [str(path) for path in self.paths],
            "walks": [path.to_list() for path in self.paths],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Finding:
        """Read what `to_dict` wrote."""
        paths = tuple(Path.from_list(walk) for walk in content["walks"])
        return cls(content["condition"], content["holds"], content["sentence"], paths)


def validity_findings(graph: CausalGraph, adjustment: Adjustment, s: Set[int], target: str) -> list[Finding]:
    """Say whether `s` is a valid adjustment set for the exposures and `target`, with every offence shown."""
    given = set(graph.names(s))
    exposures = as_set(graph.names(adjustment.x))
    found = []
    for node in sorted(adjustment.forbidden & s)[:_SHOWN]:
        found.append(_forbidden_finding(graph, adjustment, node, target))
    backdoor = adjustment.backdoor_graph
    connected = adjustment.x & reachable(backdoor, adjustment.y, s)
    walks = (shortest_open_walk(backdoor, {x}, adjustment.y, s) for x in sorted(connected))
    # A walk that meets X again is not proper; the node where it does has its own, shorter witness.
    proper = (walk for walk in walks if walk and adjustment.x.isdisjoint(walk[1:]))
    for walk in islice(proper, _SHOWN):
        path = as_path(graph, adjustment.dag, walk)
        found.append(Finding("validity", False, f"{path} is open: {why_open(graph, path, given)}.", (path,)))
    if not found:
        held = as_set(sorted(given, key=graph.index.__getitem__))
        fixed = f"Once {held} is held fixed" if given else "With nothing held fixed"
        found.append(
            Finding(
                "validity",
                True,
                f"{fixed}, {exposures} and {target} go together only by what {exposures} causes, and none of that is "
                f"hidden: {held} is a valid adjustment set for ({exposures}, {target}).",
            )
        )
    return found


def parents_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    """Say whether the nodes through which A changes the context are known together with their parents."""
    graph, protected = conditions.graph, conditions.written(conditions.protected)
    inside = conditions.written(conditions.known | s)
    found = []
    for node, missing in conditions.unexplained(s)[:_SHOWN]:
        name, gap = graph.nodes[node], graph.nodes[missing]
        state = "latent" if gap in graph.latent else "not among them"
        if node == missing:
            sentence = (
                f"{name} carries the effect of {protected} into the context but is {state}: what it would have been "
                f"cannot be told from {inside}."
            )
            found.append(Finding("parents", False, sentence))
        else:
            path = Path((gap, name), ("→",))
            sentence = (
                f"{path}: {name} responds to {protected}, so its parents must lie in {inside}, but {gap} is {state}."
            )
            found.append(Finding("parents", False, sentence, (path,)))
    if not found:
        responding = conditions.responding(s)
        which = conditions.written(responding)
        sentence = (
            f"{which} respond{'s' if len(responding) == 1 else ''} to {protected}, and everything that acts on {which} "
            f"is known: all parents lie in {inside}."
            if responding
            else f"Only {protected} itself changes in {conditions.written(conditions.exposures(s))}: nothing else "
            f"there responds to {protected}."
        )
        found.append(Finding("parents", True, sentence))
    return found


def noise_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    """Name the nodes that must be injective in their total noise; nothing where none is confounded."""
    graph, dag = conditions.graph, conditions.dag
    confounded = conditions.confounded(s)
    found = []
    for node in dict.fromkeys(node for node, _ in confounded):
        paths = tuple(
            as_path(graph, dag, [node, root, other])
            for confounded_node, root in confounded
            if confounded_node == node
            for other in dag.children[root]
            if other != node
        )
        name = graph.nodes[node]
        sentence = (
            f"{name} responds to {conditions.written(conditions.protected)} and is confounded "
            f"({', '.join(str(path) for path in paths)}): certified only if {name} is injective in its total noise, "
            "the unobserved causes included."
        )
        found.append(Finding("noise", True, sentence, paths))
    return found


def inputs_finding(conditions: Conditions, s: Set[int]) -> Finding:
    """Say that the independence leaves a function of the inputs in `s` alone, none of which A changes."""
    kept, protected = conditions.inputs & s, conditions.written(conditions.protected)
    left = (
        f"a function of {conditions.written(kept)} alone, which {protected} does not change" if kept else "a constant"
    )
    known = conditions.written(conditions.known | s)
    return Finding("inputs", True, f"Every input lies in {known}: under overlap the independence leaves {left}.")


def paper_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    """Judge the theorem as printed: S valid for (X, Y) and the parents of W ∖ A inside A ∪ W.

    Paths are read as proper ones; the printed "all non-causal paths" would refuse the paper's own figures.
    """
    graph, dag, outcome = conditions.graph, conditions.dag, conditions.question.outcome
    if conditions.outcome in s:
        sentence = f"The paper's theorem does not apply: {outcome} is the outcome and is adjusted for."
        return [Finding("paper", False, sentence)]
    target = Adjustment(graph.dag(), conditions.exposures(s), frozenset((conditions.outcome,)))
    found = [finding for finding in validity_findings(graph, target, s, outcome) if not finding.holds]
    strangers = [
        (node, parent)
        for node in sorted(conditions.known - conditions.protected)
        for parent in dag.parents[node]
        if parent not in conditions.known and not (conditions.is_noise(parent) and len(dag.children[parent]) == 1)
    ]
    known = conditions.written(conditions.known)
    for node, parent in strangers[:_SHOWN]:
        others = [child for child in dag.children[parent] if child != node]
        walk = [parent, node] if parent < len(graph.nodes) else [*others[:1], parent, node]
        path = as_path(graph, dag, walk)
        sentence = f"{path}: a parent of {graph.nodes[node]} lies outside {known}."
        found.append(Finding("paper", False, sentence, (path,)))
    if found:
        return [Finding("paper", False, finding.sentence, finding.paths) for finding in found]
    sentence = (
        f"{conditions.written(s)} is a valid adjustment set for ({conditions.written(target.x)}, {outcome}), and all "
        f"parents of the context lie in {known}."
    )
    return [Finding("paper", True, sentence)]


def _forbidden_finding(graph: CausalGraph, adjustment: Adjustment, node: int, target: str) -> Finding:
    dag, x = adjustment.dag, adjustment.x
    name = graph.nodes[node]
    below = shortest_directed(dag, adjustment.proper_causal, node, x) or [node]
    turn = node if node in adjustment.proper_causal else below[0]
    causal = [
        *(shortest_directed(dag, x, turn, x) or [turn]),
        *next(onward[1:] for y in sorted(adjustment.y) if (onward := _onward(dag, turn, y, x))),
    ]
    path = as_path(graph, dag, causal)
    where = "it lies" if turn == node else f"it descends from {graph.nodes[turn]}, which lies"
    sentence = (
        f"{name} must not be adjusted for: {where} on the causal path {path}, and adjusting for it hides part of what "
        f"{graph.nodes[causal[0]]} does to {target}."
    )
    return Finding("validity", False, sentence, (path,))


def _onward(dag: Dag, turn: int, y: int, x: Set[int]) -> list[int] | None:
    return [turn] if turn == y else shortest_directed(dag, {turn}, y, x)
