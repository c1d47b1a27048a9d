"""Which effects of A are unfair, and the value of A that stands in for it along them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.columns import takes_few_values
from ciplearn._core.errors import InputError
from ciplearn.baselines.columns import NodeColumns
from ciplearn.causal import CausalGraph


@dataclass(frozen=True)
class UnfairEdges:
    """A path out of A is unfair if its first edge is; None means every edge out of A."""

    edges: frozenset[tuple[str, str]] | None
    columns: NodeColumns

    @classmethod
    def of(cls, edges: Any, columns: NodeColumns) -> UnfairEdges:
        """Check edges against the graph."""
        if edges is None:
            return cls(None, columns)
        known = set(columns.graph.directed) if isinstance(columns.graph, CausalGraph) else set()
        out = sorted(edge for edge in known if edge[0] in columns.protected)
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise InputError(f"unfair_edges must be a list of pairs, got {edges!r}; pass for example {out[:1]}.")
        for edge in (listed := [tuple(edge) for edge in edges]):
            if edge not in out:
                raise InputError(f"unfair_edges names {edge!r}, which is no edge out of A; those are {out}.")
        return cls(frozenset(listed), columns)

    def hold(self, cause: str, node: str) -> bool:
        """Whether a protected cause acts on a node along an unfair edge, or through a latent node at the end of one."""
        graph = self.columns.graph
        if self.edges is None or graph is None or (cause, node) in self.edges:
            return True
        if (cause, node) in graph.directed:
            return False
        starts = [first for start, first in self.edges if start == cause and first in graph.latent]
        return any(node in graph.descendants(first) for first in starts)

    def reaches_outcome(self, protected: str) -> bool:
        """Whether the predictor may not read this variable itself: it may only along a fair edge to the outcome."""
        graph, outcome = self.columns.graph, self.columns.outcome
        fair = graph is not None and self.edges is not None and (protected, outcome) in graph.directed
        return not fair or (protected, outcome) in (self.edges or ())


def baseline_row(table: pd.DataFrame, columns: NodeColumns, chosen: Mapping[str, Any] | None) -> pd.DataFrame:
    """Return one row with the baseline of each protected column: what was chosen, else its mean or commonest value.

    Numbers that take few values count as groups: theirs is the commonest value.
    """
    names = columns.of(columns.protected, "protected")
    if chosen is not None and not isinstance(chosen, Mapping):
        raise InputError(f"baseline must map protected columns to values, got {chosen!r}; pass {{{names[0]!r}: ...}}.")
    strange = [name for name in chosen or {} if name not in names]
    if strange:
        raise InputError(f"baseline names {strange[0]!r}, which is not protected; the columns are {', '.join(names)}.")
    values = {
        name: (chosen or {}).get(
            name, table[name].mode().iloc[0] if takes_few_values(table[name]) else float(table[name].mean())
        )
        for name in names
    }
    return pd.DataFrame({name: [value] for name, value in values.items()})
