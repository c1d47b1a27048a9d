"""The doorway of frames: which columns belong to which node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import nearest
from ciplearn.scm.kinds import Array, Kind


def read_nodes(frame: Any, kinds: Mapping[str, Kind], nodes: Iterable[str]) -> dict[str, Array]:
    """Return the values of ``nodes`` in a frame that was checked by `present_nodes`."""
    return {node: kinds[node].read(frame, node) for node in nodes}


def present_nodes(frame: Any, graph: CausalGraph, kinds: Mapping[str, Kind], role: str) -> tuple[str, ...]:
    """Return the observed nodes whose columns the frame has; other columns are ignored.

    A node may be left out if nothing that is present descends from it, such as the outcome of new rows.

    Raises
    ------
    InputError
        If a node that is needed is missing, or held twice.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputTypeError(
            f"{role} must be a pandas DataFrame, got {type(frame).__name__}; wrap it with pd.DataFrame(..., "
            "columns=[...])."
        )
    owned = {column for node in graph.observed for column in kinds[node].columns(node)}
    twice = [column for column in frame.columns[frame.columns.duplicated()] if column in owned]
    if twice:
        raise InputError(f"{role} has two columns named {twice[0]!r}; drop or rename one of them.")
    present = []
    for node in graph.observed:
        columns = kinds[node].columns(node)
        held = [column for column in columns if column in frame.columns]
        if held and len(held) < len(columns):
            missing = next(column for column in columns if column not in frame.columns)
            raise InputError(
                f"{role} lacks the column {missing!r} of the vector {node}; pass all {len(columns)} of them."
            )
        if held:
            present.append(node)
    for node in graph.observed:
        if node not in present and (below := sorted(graph.descendants(node) & set(present))):
            raise InputError(
                f"{role} lacks the column {kinds[node].columns(node)[0]!r}, on which {below[0]} depends; add it, or "
                f"declare {node} latent."
            )
    return tuple(present)


def refuse_strangers(frame: pd.DataFrame, graph: CausalGraph, kinds: Mapping[str, Kind], role: str) -> None:
    """Refuse columns that belong to no observed node, for where a misspelt node would just be gone from the answer."""
    owned = tuple(column for node in graph.observed for column in kinds[node].columns(node))
    for column in frame.columns:
        if column not in owned:
            hint = "it is latent, so drop it" if column in graph.latent else nearest(str(column), owned, "columns")
            raise InputError(
                f"{role} has the column {column!r}, which belongs to no observed node of the model; drop it, or add it "
                f"to the graph ({hint.rstrip('.')})."
            )


def write_nodes(
    values: Mapping[str, Array], kinds: Mapping[str, Kind], nodes: Iterable[str], index: pd.Index
) -> pd.DataFrame:
    """Return a frame with the columns of ``nodes``."""
    columns: dict[str, Any] = {}
    for node in nodes:
        columns |= kinds[node].write(values[node], node)
    return pd.DataFrame(columns, index=index)
