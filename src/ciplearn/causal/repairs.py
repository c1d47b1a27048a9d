"""The smallest changes to graph or roles that would make the criterion hold.

Changes are searched in order of their number. What can help is read off the offences themselves: an open path is closed
only by a change to a node or an edge on it, a missing parent is mended only by a change to it, to its edge or to its
child, and the short way by the inputs only by a change to an input outside the context. So the search follows the
witnesses instead of trying every node of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_set
from ciplearn.causal.choice import choose_adjustment
from ciplearn.causal.conditions import Finding, parents_findings, validity_findings
from ciplearn.causal.paths import Path, predictor_name
from ciplearn.causal.problem import Problem, statement, trials
from ciplearn.causal.roles import Roles
from ciplearn.causal.verdict import Change, Repair

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

# More than three changes at once are no longer a repair but another study.
_MOST_CHANGES = 3
_MOST_REPAIRS = 12


@dataclass(frozen=True)
class _Draft:
    """A changed graph with changed roles, and the changes that led there."""

    graph: CausalGraph
    roles: Roles
    changes: tuple[Change, ...] = ()

    def judged(self) -> tuple[bool, frozenset[int], Problem]:
        problem = Problem.pose(self.graph, self.roles)
        s = choose_adjustment(problem)
        return problem.certifies(s), s, problem

    def offences(self, s: frozenset[int], problem: Problem) -> list[Finding]:
        target = predictor_name(self.graph)
        findings = [
            *validity_findings(self.graph, problem.adjustment(s), s, target),
            *parents_findings(self.graph, problem, s),
        ]
        return [finding for finding in findings if not finding.holds]

    def repaired(self, s: frozenset[int], problem: Problem) -> Repair:
        return Repair(self.changes, statement(self.graph, problem, s))


def find_repairs(graph: CausalGraph, roles: Roles) -> tuple[Repair, ...]:
    """Return the repairs with the fewest changes, each with the adjustment set it allows."""
    start = _Draft(graph, replace(roles, adjustment=None))
    certified, s, problem = start.judged()
    if certified:
        wanted = graph.names(s)
        order = Change("adjust for", wanted, f"adjust for {as_set(wanted)} instead of {as_set(roles.adjustment or ())}")
        return (replace(start, changes=(order,)).repaired(s, problem),)
    layer, tried, repairs = [start], {frozenset[Change]()}, []
    for _ in range(_MOST_CHANGES):
        following = []
        for draft in layer:
            _, s, problem = draft.judged()
            for candidate in _candidates(draft, s, problem):
                key = frozenset(candidate.changes)
                if key in tried or len(tried) > trials(graph):
                    continue
                tried.add(key)
                certified, chosen, posed = candidate.judged()
                if certified:
                    repairs.append(candidate.repaired(chosen, posed))
                else:
                    following.append(candidate)
        if repairs:
            return tuple(repairs[:_MOST_REPAIRS])
        layer = following
    return ()


def _candidates(draft: _Draft, s: frozenset[int], problem: Problem) -> Iterator[_Draft]:
    """Yield the draft with one more change, the cheapest to argue for first."""
    graph, roles = draft.graph, draft.roles
    paths = [path for finding in draft.offences(s, problem) for path in finding.paths]
    nodes = list(dict.fromkeys(node for path in paths for node in path.nodes if node in graph.index))
    nodes += graph.names({node for node, missing in problem.unexplained(s) if node == missing})
    nodes += [name for name in roles.inputs if name not in roles.context and name not in roles.protected]
    nodes = list(dict.fromkeys(nodes))
    for node in nodes:
        if node in graph.latent:
            yield _changed(draft, Change("measure", (node,), f"measure {node}"), graph=_observing(graph, node))
    for path in paths:
        yield from _mended_edges(draft, path)
    for node in nodes:
        outside = node not in graph.latent and node != roles.outcome
        if outside and node not in roles.context and node not in roles.protected:
            order = Change("add to context", (node,), f"add {node} to the context")
            yield _changed(draft, order, roles=replace(roles, context=(*roles.context, node)))
    for node in dict.fromkeys((*nodes, *roles.context)):
        if node in roles.context and node not in roles.protected:
            order = Change("drop from context", (node,), f"drop {node} from the context")
            yield _changed(draft, order, roles=replace(roles, context=_without(roles.context, node)))
    for node in nodes:
        if node in roles.inputs and len(roles.inputs) > 1:
            order = Change("drop from inputs", (node,), f"keep {node} out of the inputs")
            yield _changed(draft, order, roles=replace(roles, inputs=_without(roles.inputs, node)))


def _mended_edges(draft: _Draft, path: Path) -> Iterator[_Draft]:
    graph = draft.graph
    for one, arrow, other in path.edges:
        a, b = (other, one) if arrow == "←" else (one, other)
        if arrow == "↔":
            pair = (a, b) if (a, b) in graph.bidirected else (b, a)
            cause = _fresh(graph, f"common cause of {pair[0]} and {pair[1]}")
            without = replace(graph, bidirected=tuple(edge for edge in graph.bidirected if edge != pair))
            measured = replace(without, directed=(*graph.directed, (cause, a), (cause, b)))
            yield _changed(draft, Change("measure", pair, f"measure the {cause}"), graph=measured)
            order = Change("drop edge", pair, f"drop {a} ↔ {b} if you can argue that there is no such cause")
            yield _changed(draft, order, graph=without)
        elif (a, b) in graph.directed:
            without = replace(graph, directed=tuple(edge for edge in graph.directed if edge != (a, b)))
            order = Change("drop edge", (a, b), f"drop {a} → {b} if you can argue that there is no such effect")
            yield _changed(draft, order, graph=without)


def _changed(draft: _Draft, change: Change, graph: CausalGraph | None = None, roles: Roles | None = None) -> _Draft:
    return _Draft(graph or draft.graph, roles or draft.roles, (*draft.changes, change))


def _observing(graph: CausalGraph, node: str) -> CausalGraph:
    return replace(graph, latent=graph.latent - {node})


def _fresh(graph: CausalGraph, name: str) -> str:
    while name in graph.index:
        name += "′"
    return name


def _without(names: tuple[str, ...], node: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != node)
