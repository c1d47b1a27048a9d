"""The verdict that a finished model carries, or else the roles that it was trained with."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.causal.vector_columns import nodes_of

_ROLES = ("outcome", "protected", "context", "inputs", "adjustment")


def verdict_on(model: Any, graph: CausalGraph, roles: dict[str, Any]) -> Verdict:
    """Return the verdict for roles that were named, or else the one that the model carries for this graph.

    Where the model carries none, or one on another graph, its roles are judged; where it has no roles that fit, those
    written in the graph's text.
    """
    if any(role is not None for role in roles.values()):
        return graph.criterion(**roles)
    trained = getattr(model, "best_estimator_", model)
    verdict = getattr(trained, "verdict_", None)
    if isinstance(verdict, Verdict):
        if _parts(verdict.graph) == _parts(graph):
            return verdict
        roles = {role: getattr(verdict, role) for role in _ROLES}
    elif hasattr(trained, "graph") and hasattr(trained, "protected"):
        columns = tuple(str(name) for name in getattr(trained, "feature_names_in_", ()))
        roles = {role: _nodes(getattr(trained, role, None), columns, graph, role) for role in _ROLES[1:]}
        roles["outcome"] = trained.outcome
    named = {node for names in roles.values() for node in ([names] if isinstance(names, str) else names or ())}
    return graph.criterion(**roles if named <= set(graph.nodes) else {})


def enforced_statement(model: Any) -> Independence | None:
    """Return the independence, about columns, that a model was trained to keep; None where it was not."""
    trained = getattr(model, "best_estimator_", model)
    penalised = (getattr(trained, "gamma_", None) or 0) > 0
    statement = getattr(trained, "independence_", None) if penalised else None
    return statement if isinstance(statement, Independence) else None


def _parts(graph: CausalGraph) -> tuple[Any, ...]:
    # Roles written in a source text do not count: an estimated model does not keep them.
    return graph.nodes, graph.directed, graph.bidirected, graph.undirected, graph.latent


def _nodes(named: Any, columns: tuple[str, ...], graph: CausalGraph, role: str) -> tuple[str, ...] | None:
    """Return the nodes that names, or positions in the table the model was fitted on, stand for."""
    if named is None:
        return None
    entries = [named] if isinstance(named, str | Integral) else list(named)
    names = [
        columns[entry] if isinstance(entry, Integral) and entry < len(columns) else str(entry) for entry in entries
    ]
    return nodes_of(names, graph.nodes, columns, role)
