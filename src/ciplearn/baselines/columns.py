"""Which columns of a table belong to which node of the graph, and what the graph says about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import CLASSIFICATION
from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.causal.conditions import read_question
from ciplearn.causal.names import node_of
from ciplearn.estimators.roles import checked_graph, columns_of_nodes, named_columns, named_nodes, refuse_outcome


@dataclass(frozen=True)
class NodeColumns:
    """The nodes that a baseline reads, with the columns that hold them."""

    names: tuple[str, ...]  # columns of the table
    # protected, inputs: nodes. Without a graph every column, or every vector of columns, is a node
    protected: tuple[str, ...]
    inputs: tuple[str, ...]
    outcome: str | None = None
    graph: CausalGraph | None = None

    def of(self, nodes: Iterable[str], role: str = "inputs") -> tuple[str, ...]:
        """Return the columns of some nodes, or say which node has none."""
        return columns_of_nodes(nodes, self.names, role)

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

    def causes(self, node: str, *, with_outcome: bool = True) -> tuple[str, ...]:
        """Observed parents of a node, and A too where it acts on the node through a parent that is not observed.

        ``with_outcome=False`` counts the outcome, which is not known when a prediction is made, as not observed.
        """
        graph = self._known_graph()
        parents = graph.parents(node)
        hidden = set(graph.latent if with_outcome else {*graph.latent, self.outcome})
        through_hidden = hidden.intersection(parents) & graph.descendants(self.protected)
        observed = [parent for parent in parents if parent not in hidden]
        return tuple(dict.fromkeys([*observed, *(self.protected if through_hidden else ())]))

    def _known_graph(self) -> CausalGraph:
        if self.graph is None:
            raise InputError(
                "A causal graph is needed to tell what descends from the protected columns, got graph=None; pass for "
                "example graph=CausalGraph.from_edges('A -> L, L -> Y')."
            )
        return self.graph


def settle_columns(
    names: Sequence[str], *, graph: Any, outcome: str | None, protected: Any, context: Any, inputs: Any
) -> NodeColumns:
    """Return the nodes that arguments name, as nodes or as columns or by position, checked against table and graph."""
    names = tuple(names)
    named = named_columns({"protected": protected, "context": context, "inputs": inputs}, names, outcome)
    if graph is None:
        if not named["protected"]:
            raise InputError(
                f"No protected column was named, got protected={protected!r}; name the columns to be invariant in."
            )
        kept = tuple(dict.fromkeys(named["protected"]))
        # A vector is a node where it is named so.
        vectors = [node for node in kept if node not in names]
        seen = named["inputs"] or tuple(node_of(name, vectors) for name in names)
        columns = NodeColumns(names, kept, tuple(dict.fromkeys(seen)), outcome)
    else:
        nodes = named_nodes(named, checked_graph(graph), names)
        roles = read_question(graph, outcome, nodes["protected"], nodes["context"], nodes["inputs"], None)
        refuse_outcome(roles.outcome, names)
        columns = NodeColumns(names, roles.protected, roles.inputs, roles.outcome, graph)
    columns.of(columns.protected, "protected")
    columns.of(columns.inputs, "inputs")
    return columns


def outcome_columns(y: Any, task: str) -> pd.DataFrame:
    """Return y under names that no input has, for what conditions on it; classes as text, which makes them labels."""
    values = np.asarray(y)
    if task == CLASSIFICATION:
        values = values.astype(str)
    outputs = values.reshape(len(values), -1)
    return pd.DataFrame(outputs, columns=[f"the outcome[{number}]" for number in range(outputs.shape[1])])
