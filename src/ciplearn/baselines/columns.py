"""Which columns of a table belong to which node of the graph, and what the graph says about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.wording import as_set
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import nearest
from ciplearn.causal.roles import resolve_roles
from ciplearn.causal.vector_columns import columns_of, node_of, nodes_of
from ciplearn.estimators.roles import named_columns, refuse_outcome


@dataclass(frozen=True)
class NodeColumns:
    """The nodes that a rival reads, with the columns that hold them.

    Attributes
    ----------
    names : tuple of str
        Columns of the table.
    protected, inputs : tuple of str
        Nodes. Without a graph every column, or every vector of columns, is a node.
    outcome : str or None
    graph : CausalGraph or None
    """

    names: tuple[str, ...]
    protected: tuple[str, ...]
    inputs: tuple[str, ...]
    outcome: str | None = None
    graph: CausalGraph | None = None

    def of(self, nodes: Iterable[str], role: str = "inputs") -> tuple[str, ...]:
        """Return the columns of some nodes, or say which node has none."""
        return tuple(column for node in nodes for column in self._of_node(node, role))

    def descendants(self) -> tuple[str, ...]:
        """Nodes that A changes, each after its causes; neither A itself nor the outcome, latent ones left out."""
        graph = self._known_graph()
        below = graph.descendants(self.protected) - set(self.protected) - {self.outcome} - graph.latent
        return tuple(node for node in graph.topological_order() if node in below)

    def unchanged(self) -> tuple[str, ...]:
        """Columns of the inputs that do not descend from A."""
        changed = {*self.protected, *self.descendants()}
        return self.of(node for node in self.inputs if node not in changed)

    def responding(self) -> tuple[str, ...]:
        """Descendants of A that are inputs or act on inputs, each after its causes."""
        acting = self._known_graph().ancestors(self.inputs)
        return tuple(node for node in self.descendants() if node in acting)

    def causes(self, node: str) -> tuple[str, ...]:
        """Observed parents of a node, and A too where it acts on the node through a latent parent."""
        graph = self._known_graph()
        parents = graph.parents(node)
        through_latent = graph.latent.intersection(parents) & graph.descendants(self.protected)
        found = [parent for parent in parents if parent not in graph.latent]
        return tuple(dict.fromkeys([*found, *(self.protected if through_latent else ())]))

    def _of_node(self, node: str, role: str) -> tuple[str, ...]:
        found = columns_of(node, self.names)
        if not found:
            raise InputError(f"The {role} column {node!r} is not in X; {nearest(node, self.names, 'columns')}")
        return found

    def _known_graph(self) -> CausalGraph:
        if self.graph is None:
            raise InputError(
                "A causal graph is needed to tell what descends from the protected columns, got graph=None; pass for "
                "example graph=CausalGraph.from_edges('A -> L, L -> Y')."
            )
        return self.graph


def settle_columns(
    names: Sequence[str],
    *,
    graph: Any,
    outcome: str | None,
    protected: Any,
    context: Any,
    inputs: Any,
) -> NodeColumns:
    """Return the nodes that arguments name, as nodes or as columns or by position, checked against table and graph."""
    names = tuple(names)
    if graph is not None and not isinstance(graph, CausalGraph):
        raise InputError(f"graph must be a CausalGraph, got {type(graph).__name__}; use CausalGraph.from_edges(...).")
    chosen = {"protected": protected, "context": context, "inputs": inputs}
    named = named_columns(chosen, names, outcome)
    asked = {role: _nodes(columns, names, graph, role) for role, columns in named.items()}
    if graph is None:
        if not asked["protected"]:
            raise InputError(
                f"No protected column was named, got protected={protected!r}; name the columns to be invariant in."
            )
        unheld = [node for node in asked["protected"] if node not in names]
        every = tuple(dict.fromkeys(node_of(name, unheld) for name in names))
        columns = NodeColumns(names, asked["protected"], every if asked["inputs"] is None else asked["inputs"], outcome)
    else:
        roles = resolve_roles(graph, outcome, asked["protected"], asked["context"], asked["inputs"], None)
        refuse_outcome(roles.outcome, names)
        columns = NodeColumns(names, roles.protected, roles.inputs, roles.outcome, graph)
    columns.of(columns.protected, "protected")
    columns.of(columns.inputs, "inputs")
    return columns


def _nodes(
    columns: tuple[str, ...] | None, names: tuple[str, ...], graph: CausalGraph | None, role: str
) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if graph is None:
        return tuple(dict.fromkeys(columns))
    nodes = nodes_of(columns, graph.nodes, names, role)
    try:
        return graph.known(nodes, role)
    except GraphError as error:
        raise GraphError(f"{error} The columns of X are {as_set(names[:8])}.") from error
