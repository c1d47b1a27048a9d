"""The roles that a finished model was trained with, where it still knows them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.vector_columns import nodes_of

_ROLES = ("outcome", "protected", "context", "inputs", "adjustment")


def trained_roles(model: Any, graph: CausalGraph) -> dict[str, Any] | None:
    """Return a model's roles as arguments of `CausalGraph.criterion`; None where it has none that fit this graph.

    A network trained with a graph keeps the verdict; rivals, and networks without a graph, the arguments that they were
    made with.
    """
    trained = getattr(model, "best_estimator_", model)
    verdict = getattr(trained, "verdict_", None)
    if isinstance(verdict, Verdict):
        roles = {role: getattr(verdict, role) for role in _ROLES}
    elif hasattr(trained, "graph") and hasattr(trained, "protected"):
        columns = tuple(str(name) for name in getattr(trained, "feature_names_in_", ()))
        roles = {role: _nodes(getattr(trained, role, None), columns, graph, role) for role in _ROLES[1:]}
        roles["outcome"] = trained.outcome
    else:
        return None
    named = {node for names in roles.values() for node in ([names] if isinstance(names, str) else names or ())}
    return roles if named <= set(graph.nodes) else None


def _nodes(named: Any, columns: tuple[str, ...], graph: CausalGraph, role: str) -> tuple[str, ...] | None:
    """Return the nodes that names, or positions in the table the model was fitted on, stand for."""
    if named is None:
        return None
    entries = [named] if isinstance(named, str | Integral) else list(named)
    names = [
        columns[entry] if isinstance(entry, Integral) and entry < len(columns) else str(entry) for entry in entries
    ]
    return nodes_of(names, graph.nodes, columns, role)
