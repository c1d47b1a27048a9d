"""Nodes that are vectors: a node ``A`` whose values stand in columns ``A[0]``, ``A[1]``, ..."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ciplearn._core.errors import InputError
from ciplearn.causal.names import natural_key

_ENTRY = re.compile(r"(.+)\[\d+\]")


def node_of(column: str, nodes: Collection[str]) -> str:
    """Return the node that a column is an entry of, or the column itself."""
    entry = _ENTRY.fullmatch(column)
    return entry[1] if column not in nodes and entry and entry[1] in nodes else column


def columns_of(node: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold a node: one of its name, or its entries in order; none if there are neither."""
    if node in columns:
        return (node,)
    return tuple(sorted((column for column in columns if node_of(column, (node,)) == node), key=natural_key))


def nodes_of(named: Sequence[str], nodes: Collection[str], columns: Sequence[str], role: str) -> tuple[str, ...]:
    """Return the nodes that names of nodes or columns stand for; a vector counts only if all its entries are named."""
    meant = tuple(node_of(name, nodes) for name in named)
    for name, node in zip(named, meant, strict=True):
        entries = columns_of(node, columns)
        left_out = [entry for entry in entries if name != node and entry not in named]
        if left_out:
            raise InputError(
                f"{role} names {name!r}, one of {len(entries)} columns of the node {node!r}, and leaves out "
                f"{left_out[0]!r}; name the node, or all its columns."
            )
    return tuple(dict.fromkeys(meant))
