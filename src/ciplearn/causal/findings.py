"""What speaks for and against a verdict, as sentences with the paths that witness them; and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_list, as_set
from ciplearn.causal.dag import Adjustment, Dag, reachable, shortest_open_walk
from ciplearn.causal.statements import MOST_NAMES, Assumption, Finding, Path, predictor_name

if TYPE_CHECKING:
    from ciplearn.causal.criterion import Conditions
    from ciplearn.causal.graph import CausalGraph

_SHOWN = 5  # a reader learns nothing from the sixth path of the same kind


def as_path(graph: CausalGraph, dag: Dag, walk: Sequence[int]) -> Path:
    """Write a walk over numbers as a path; roots of bidirected edges melt into ``↔``."""
    named = len(graph.nodes)
    roots = range(named, named + len(graph.bidirected))
    steps = [(before, node) for before, node in pairwise(walk) if node not in roots]
    arrows = ["↔" if before in roots else "→" if node in dag.children[before] else "←" for before, node in steps]
    nodes = [graph.nodes[node] if node < named else predictor_name(graph) for node in walk if node not in roots]
    return Path(tuple(nodes), tuple(arrows))


def why_open(graph: CausalGraph, path: Path, given: Set[str]) -> str:
    """Say for each inner node of an open path why it does not block: ``U is latent``."""
    clauses = []
    for (_, before, node), (_, after, _) in pairwise(path.edges):
        if before not in "→↔" or after not in "←↔":
            state = "latent" if node in graph.latent else "not adjusted for"
        elif node in given:
            state = "a collider and is adjusted for"
        else:
            below = graph.descendants(node)
            state = f"a collider and {as_set(n for n in graph.nodes if n in given & below)} below it is adjusted for"
        clauses.append(f"{node} is {state}")
    clauses += [f"the common cause of {a} and {b} is unobserved" for a, arrow, b in path.edges if arrow == "↔"]
    return ", ".join(clauses) if clauses else "nothing stands between its ends"


def proper_causal_paths(problem: Adjustment) -> Iterator[list[int]]:
    """Yield every directed path from X to Y that meets X at its first node only."""
    children, hopeful = problem.dag.children, problem.dag.ancestors(problem.y, avoiding=problem.x)
    for start in sorted(problem.x):
        walk, branches = [start], [iter(children[start])]
        while branches:
            node = next(branches[-1], None)
            if node is None:
                branches.pop()
                walk.pop()
            elif node in hopeful:
                walk.append(node)
                if node in problem.y:
                    yield list(walk)
                branches.append(iter(children[node]))


def shortest_directed(dag: Dag, sources: Set[int], target: int, avoiding: Set[int]) -> list[int] | None:
    """Return a shortest directed path from `sources` to `target` whose later nodes are outside `avoiding`."""
    came_from = dict.fromkeys(sorted(sources), -1)
    frontier = list(came_from)
    while frontier:
        following = []
        for node in frontier:
            if node == target and came_from[node] >= 0:
                walk = [node]
                while came_from[walk[-1]] >= 0:
                    walk.append(came_from[walk[-1]])
                return walk[::-1]
            for child in dag.children[node]:
                if child not in came_from and child not in avoiding:
                    came_from[child] = node
                    following.append(child)
        frontier = following
    return None


def validity_findings(graph: CausalGraph, adjustment: Adjustment, s: Set[int], target: str) -> list[Finding]:
    """Say whether `s` is a valid adjustment set for the exposures and `target`, with every offence shown."""
    given, exposures = graph.names(s), as_list(graph.names(adjustment.x), MOST_NAMES)
    forbidden = sorted(adjustment.forbidden & s)[:_SHOWN]
    findings = [_forbidden_finding(graph, adjustment, node, target) for node in forbidden]
    backdoor = adjustment.backdoor_graph
    connected = adjustment.x & reachable(backdoor, adjustment.y, s)
    walks = (shortest_open_walk(backdoor, {x}, adjustment.y, s) for x in sorted(connected))
    # A walk that meets X again is not proper; the node where it does has its own, shorter witness.
    proper = (walk for walk in walks if walk and adjustment.x.isdisjoint(walk[1:]))
    for walk in islice(proper, _SHOWN):
        path = as_path(graph, adjustment.dag, walk)
        findings.append(Finding("validity", False, f"{path} is open: {why_open(graph, path, set(given))}.", (path,)))
    if findings:
        return findings
    among = f"Among rows with the same {as_list(given, MOST_NAMES)}" if given else "Among all rows"
    sentence = (
        f"{among}, what links {exposures} to {target} is cause and effect alone, and nothing of the effect is "
        f"blocked: {as_set(given)} is a valid adjustment set."
    )
    return [Finding("validity", True, sentence)]


def path_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    """Say whether `s` is valid for Ŷ, and whether what A changes in the context is known with its parents."""
    validity = validity_findings(conditions.graph, conditions.adjustment(s), s, "the prediction")
    return [*validity, *_parents_findings(conditions, s)]


def _parents_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    graph, protected = conditions.graph, conditions.written(conditions.protected)
    inside = conditions.written(conditions.known | s)
    findings = []
    for node, missing in conditions.unexplained(s)[:_SHOWN]:
        name, gap = graph.nodes[node], graph.nodes[missing]
        state = "latent" if gap in graph.latent else "not among them"
        if node == missing:
            paths: tuple[Path, ...] = ()
            sentence = (
                f"{name} carries the effect of {protected} into the context but is {state}: what it would have been "
                f"cannot be told from {inside}."
            )
        else:
            paths = (Path((gap, name), ("→",)),)
            sentence = (
                f"{paths[0]}: {name} responds to {protected}, so its parents must lie in {inside}, but {gap} is "
                f"{state}."
            )
        findings.append(Finding("parents", False, sentence, paths))
    if findings:
        return findings
    responding = conditions.responding(s)
    which = conditions.written(responding)
    if responding:
        respond, them = ("responds", "it") if len(responding) == 1 else ("respond", "them")
        sentence = f"{which} {respond} to {protected}, and everything that acts on {them} lies in {inside}."
    else:
        right = conditions.written(conditions.exposures(s))
        sentence = f"Only {protected} itself changes in {right}: nothing else there responds to {protected}."
    return [Finding("parents", True, sentence)]


def noise_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    """Name the nodes that must be injective in their total noise; nothing where none is confounded."""
    graph, dag = conditions.graph, conditions.dag
    paths: dict[int, list[Path]] = {}
    for node, root in conditions.confounded(s):
        others = [other for other in dag.children[root] if other != node]
        paths.setdefault(node, []).extend(as_path(graph, dag, [node, root, other]) for other in others)
    findings = []
    for node, through in paths.items():
        name = graph.nodes[node]
        sentence = (
            f"{name} responds to {conditions.written(conditions.protected)} and is confounded "
            f"({', '.join(map(str, through))}): certified only if {name} is injective in its total noise, the "
            "unobserved causes included."
        )
        findings.append(Finding("noise", True, sentence, tuple(through)))
    return findings


def inputs_finding(conditions: Conditions, s: Set[int]) -> Finding:
    """Say that the independence leaves a function of the inputs in `s` alone, none of which A changes."""
    kept, written = conditions.inputs & s, conditions.written
    protected, inside = written(conditions.protected), written(conditions.known | s)
    left = f"a function of {written(kept)} alone, which {protected} does not change" if kept else "a constant"
    return Finding("inputs", True, f"Every input lies in {inside}: the independence, under overlap, leaves {left}.")


def paper_findings(conditions: Conditions, s: Set[int]) -> list[Finding]:
    """Judge the theorem as printed: S valid for (X, Y) and the parents of W ∖ A inside A ∪ W.

    Paths are read as proper ones; the printed "all non-causal paths" would refuse the paper's own figures.
    """
    graph, dag, outcome = conditions.graph, conditions.dag, conditions.question.outcome
    if conditions.outcome in s:
        sentence = f"The paper's theorem does not apply: {outcome} is the outcome and is adjusted for."
        return [Finding("paper", False, sentence)]
    target = Adjustment(graph.dag(), conditions.exposures(s), frozenset((conditions.outcome,)))
    judged = validity_findings(graph, target, s, outcome)
    offences = [replace(finding, condition="paper") for finding in judged if not finding.holds]
    inside = conditions.written(conditions.known)
    context = sorted(conditions.known - conditions.protected)
    outside = ((node, parent) for node in context for parent in dag.parents[node] if parent not in conditions.known)
    strangers = (pair for pair in outside if not conditions.is_noise(pair[1]) or len(dag.children[pair[1]]) > 1)
    for node, parent in islice(strangers, _SHOWN):
        others = [child for child in dag.children[parent] if child != node]
        path = as_path(graph, dag, [parent, node] if parent < len(graph.nodes) else [*others[:1], parent, node])
        sentence = f"{path}: a parent of {graph.nodes[node]} lies outside {inside}."
        offences.append(Finding("paper", False, sentence, (path,)))
    given, exposures = as_set(graph.names(s)), as_set(graph.names(target.x))
    sentence = f"{given} is a valid adjustment set for ({exposures}, {outcome}), and all parents of the context lie in "
    sentence += f"{inside}."
    return offences or [Finding("paper", True, sentence)]


def _forbidden_finding(graph: CausalGraph, adjustment: Adjustment, node: int, target: str) -> Finding:
    dag, x = adjustment.dag, adjustment.x
    name = graph.nodes[node]
    below = shortest_directed(dag, adjustment.proper_causal, node, x) or [node]
    turn = node if node in adjustment.proper_causal else below[0]
    walks = ([turn] if turn == y else shortest_directed(dag, {turn}, y, x) for y in sorted(adjustment.y))
    onward = next(walk for walk in walks if walk)
    causal = [*(shortest_directed(dag, x, turn, x) or [turn]), *onward[1:]]
    path = as_path(graph, dag, causal)
    where = "it lies" if turn == node else f"it descends from {graph.nodes[turn]}, which lies"
    sentence = (
        f"{name} must not be adjusted for: {where} on the causal path {path}, and adjusting for it hides part of what "
        f"{graph.nodes[causal[0]]} does to {target}."
    )
    return Finding("validity", False, sentence, (path,))


def assumptions(
    conditions: Conditions, s: Set[int], injective: tuple[str, ...], by_inputs: bool
) -> tuple[Assumption, ...]:
    """Return what the verdict with adjustment set `s` rests on."""
    protected, inputs = conditions.written(conditions.protected), as_list(conditions.question.inputs, MOST_NAMES)
    rests = ", on which the certificate rests" if by_inputs else ""
    where = f" together with every value of {conditions.written(s)}" if s else ""
    right = conditions.written(conditions.exposures(s))
    rests_on = {
        "graph": (
            "The graph is right: no edge and no unobserved common cause is missing.",
            "ciplearn check GRAPH --data TABLE (graph.falsify) can refute it but never prove it; sensitivity shows how "
            "much a wrong edge or a hidden common cause would matter.",
        ),
        "overlap": (
            f"Overlap{rests}: every value that changing {protected} could give to {right} occurs{where}.",
            "audit counts the imagined rows that lie where there are no data.",
        ),
        "inputs": (
            f"The prediction is a function of {inputs} and of nothing else but independent noise.",
            "true of every model that receives these columns and no others; look at what predict is given.",
        ),
        "exact": (
            "The independence is exact: a small but positive dependence bounds no counterfactual difference by itself.",
            "independence_test on rows that training has not seen can refute it; variance_of_counterfactuals measures "
            "what is left.",
        ),
    }
    if injective:
        rests_on["injective"] = (
            f"{as_set(injective)}: injective in the total noise, unobserved causes included, given their parents.",
            "no data can refute it; for discrete variables counterfactual_bounds shows what may happen without it.",
        )
    return tuple(Assumption(sentence, check, key) for key, (sentence, check) in rests_on.items())
