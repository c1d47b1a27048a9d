"""From what a user wrote to one mechanism and one kind a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.scm.equation import Additive, Equation
from ciplearn.scm.gumbel import GumbelMax
from ciplearn.scm.kinds import Categories, Kind, Scalar
from ciplearn.scm.laws import as_law
from ciplearn.scm.mechanism import Mechanism


def assemble(
    graph: Any,
    equations: Mapping[str, Any],
    noise: Mapping[str, Any],
    inverses: Mapping[str, Any],
    kinds: Mapping[str, Any],
) -> tuple[dict[str, Mechanism], dict[str, Kind]]:
    """Return mechanisms and kinds by node, or say what is missing."""
    _check_graph(graph)
    for role, given in (("equations", equations), ("noise", noise), ("inverses", inverses), ("kinds", kinds)):
        if not isinstance(given, Mapping):
            raise InputTypeError(f"{role} must map node names to values, got {type(given).__name__}; pass a dict.")
        graph.known(given, role)
    missing = [node for node in graph.nodes if node not in equations]
    if missing:
        raise InputError(
            f"{missing[0]} has no equation ({len(missing)} of {len(graph.nodes)} nodes lack one); add "
            f"equations={{{missing[0]!r}: lambda p, u: ...}}, also for nodes without parents."
        )
    settled = {node: _kind(node, equations[node], kinds.get(node)) for node in graph.nodes}
    mechanisms = {
        node: _mechanism(node, equations[node], noise.get(node), inverses.get(node), settled[node])
        for node in graph.nodes
    }
    return mechanisms, settled


def _check_graph(graph: Any) -> None:
    if not isinstance(graph, CausalGraph):
        raise InputTypeError(
            f"graph must be a CausalGraph, got {type(graph).__name__}; build one with CausalGraph.from_edges(...)."
        )
    graph.dag()
    if graph.bidirected:
        a, b = graph.bidirected[0]
        raise InputError(
            f"{a} ↔ {b} is a shared cause without an equation; draw it as a latent node, for example "
            f"from_edges('U -> {a}, U -> {b}', latent=['U']), and give U an equation and noise."
        )


def _kind(node: str, equation: Any, declared: Any) -> Kind:
    if declared is not None and not isinstance(declared, Kind):
        raise InputTypeError(
            f"The kind of {node} must be Scalar(), Vector(size) or Categories(levels), got {declared!r}; pass one."
        )
    if isinstance(equation, GumbelMax):
        if isinstance(declared, Categories) and declared != equation.kind:
            raise InputError(
                f"{node} has levels {declared.levels!r} in kinds but {equation.levels!r} in its equation; drop the "
                "entry in kinds."
            )
        return equation.kind
    return declared or Scalar()


def _mechanism(node: str, equation: Any, noise: Any, inverse: Any, kind: Kind) -> Mechanism:
    if isinstance(equation, Mechanism):
        if noise is not None or inverse is not None:
            raise InputError(
                f"{node} is a {type(equation).__name__}, which brings its own noise; drop its entries in noise and "
                "inverses."
            )
        return replace(equation, node=node) if isinstance(equation, GumbelMax) else equation
    if not callable(equation):
        raise InputTypeError(
            f"The equation of {node} must be a function (p, u) -> values, got {equation!r}; pass for example "
            "lambda p, u: u."
        )
    if noise is None:
        raise InputError(f"{node} has no noise law; add noise={{{node!r}: scipy.stats.norm(0, 1)}}, or 0 for none.")
    if inverse is not None and not callable(inverse):
        raise InputTypeError(
            f"The inverse of {node} must be a function (p, value) -> noise, got {inverse!r}; pass one."
        )
    if isinstance(equation, Additive) and inverse is None:
        inverse = equation.inverse
    return Equation(node, equation, as_law(noise, node, kind), inverse, kind)
