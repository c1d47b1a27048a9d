"""Rows of a table as causal models imagine them under other values of the protected columns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.wording import as_list
from ciplearn.causal.names import columns_of, node_of
from ciplearn.estimators.tables import FurtherInputs, read_table
from ciplearn.learning.invariance import PER_STEP, ImaginedRows

N_WORLDS = 16  # values of the protected variables that each row is imagined with, where they are drawn

# Numbers that imagined inputs may hold in memory; with many rows fewer worlds per row show as much.
_MOST_NUMBERS = 2**28


def checked_models(counterfactuals: Any) -> tuple[Any, ...]:
    """Read one causal model, or several of which the worst counts."""
    models = tuple(counterfactuals) if isinstance(counterfactuals, list | tuple) else (counterfactuals,)
    if not models:
        raise InputError("counterfactuals holds no model, got an empty list; pass a causal model, or leave it out.")
    for model in models:
        if not callable(getattr(model, "counterfactual", None)):
            why = (
                f"counterfactuals must have a method counterfactual(rows, {{name: values}}), got {type(model).__name__}"
            )
            raise InputTypeError(f"{why}; pass for example fit_scm(graph, table).")
    return models


@dataclass(frozen=True)
class WorldsOfRows:
    """Values of the protected columns that rows are imagined with.

    Columns that take few joint values are set to each of them, which have probabilities then; others to values drawn
    from the rows, together, which is their joint law.
    """

    law: pd.DataFrame  # the values to draw from, or each joint value once
    count: int  # of draws per row; where joint values are listed, their number
    weights: Tensor | None = None  # (count,): the probability of each joint value, where they are listed

    @classmethod
    def of(cls, law: pd.DataFrame, count: int) -> WorldsOfRows:
        """Read them off rows of the protected columns."""
        distinct = law.drop_duplicates()
        if len(distinct) > PER_STEP:
            return cls(law, count)
        counts = law.value_counts(dropna=False)
        shares = [counts[tuple(row)] / len(law) for row in distinct.itertuples(index=False)]
        return cls(distinct, len(distinct), torch.tensor(shares))

    def __len__(self) -> int:
        return self.count

    def values(self, n: int, seed: int) -> Iterator[pd.DataFrame]:
        """Per world, the values of n rows."""
        generator = np.random.default_rng(seed)
        for world in range(self.count):
            listed = self.weights is not None
            yield self.law.iloc[np.full(n, world) if listed else generator.integers(len(self.law), size=n)]


def imagine(
    model: Any,
    table: pd.DataFrame,
    protected: Sequence[str],
    encoding: TableEncoding,
    outcome: tuple[str, Any] | None,
    seed: int,
    worlds: WorldsOfRows | None = None,
) -> ImaginedRows:
    """Imagine each row of a table without its outcome under other values of the protected columns.

    ``outcome``: name and values, shown to a model in which the outcome acts on an input. ``seed``: of the draws; noise
    that the rows leave open is the same in every world. ``worlds``: by default those of the table's own rows.
    """
    if worlds is None:
        count = int(np.clip(_MOST_NUMBERS // (len(table) * encoding.width), PER_STEP, N_WORLDS))
        worlds = WorldsOfRows.of(table[list(protected)], count)
    rows = _shown(model, table, protected, outcome)
    inputs = torch.empty(len(table), len(worlds), encoding.width)
    for world, values in enumerate(worlds.values(len(table), seed)):
        imagined = _world(model, rows, table, values, encoding.names, seed)
        inputs[:, world] = torch.from_numpy(encoding.features(imagined))
    return ImaginedRows((inputs,), worlds.weights)


def _shown(model: Any, table: pd.DataFrame, protected: Sequence[str], outcome: tuple[str, Any] | None) -> pd.DataFrame:
    """The rows as the model takes them: columns of its nodes, and the outcome where it acts on one of them."""
    graph, rows = getattr(model, "graph", None), table
    if graph is not None:
        nodes = {column: node_of(column, graph.nodes) for column in (*table.columns, *protected)}
        if unknown := [column for column in protected if nodes[column] not in graph.observed]:
            why = f"The causal model cannot intervene on {unknown[0]!r}, which is no observed node of it"
            raise InputError(f"{why}; it has {as_list(graph.observed)}.")
        rows = table[[column for column in table.columns if nodes[column] in graph.observed]]
        if outcome and not (outcome[0] in graph.observed and graph.descendants(outcome[0]) & {*nodes.values()}):
            outcome = None
    if outcome is None:
        return rows
    name, values = outcome[0], np.asarray(outcome[1])
    if values.ndim > 1 and values.shape[1] > 1:
        why = f"The causal model imagines a row by its {name!r}, which is one value"
        raise InputError(f"{why}, got a target of {values.shape[1]} columns; fit one model per outcome.")
    return rows.assign(**{name: values.ravel()})


def _world(
    model: Any, rows: pd.DataFrame, table: pd.DataFrame, values: pd.DataFrame, inputs: Sequence[str], seed: int
) -> pd.DataFrame:
    graph = getattr(model, "graph", None)
    nodes = values.columns if graph is None else dict.fromkeys(node_of(name, graph.nodes) for name in values.columns)
    action = {}
    for node in nodes:
        of_node = values[list(columns_of(node, tuple(values.columns)))].to_numpy()
        action[node] = of_node[:, 0] if of_node.shape[1] == 1 else of_node
    # The same seed for every world, where the model draws what the rows leave open.
    draws = "random_state" in inspect.signature(model.counterfactual).parameters
    imagined = model.counterfactual(rows, action, **({"random_state": seed} if draws else {}))
    if not isinstance(imagined, pd.DataFrame) or len(imagined) != len(rows):
        why = f"counterfactual must return a frame with the {len(rows)} rows it was given"
        raise InputTypeError(f"{why}, got {type(imagined).__name__} of {np.shape(imagined)}; return one row per row.")
    if absent := [name for name in inputs if name not in imagined.columns]:
        why = f"The causal model does not know the input {absent[0]!r}, its rows have {list(imagined.columns)}"
        raise InputError(f"{why}; add the node to its graph, or leave the column out of inputs.")
    answer = imagined[list(inputs)]
    gaps = answer.isna().any()
    if gaps.any() and not table[list(inputs)].isna().any().any():
        raise InputError(f"The causal model imagines missing values of {gaps.idxmax()!r}; pass one that is finite.")
    return answer


def imagined_rows(
    estimator: Any, table: pd.DataFrame, target: Any = None, imagined: Any = None, kept: Any = None
) -> list[ImaginedRows]:
    """Return the rows of a table in other worlds: those passed, or as each of the causal models imagines them.

    ``imagined``: worlds that were passed to `fit`, each a table, or a pair of a table and tensors, with the rows of X,
    of which those that a mask has ``kept`` count.
    """
    if imagined is not None:
        if not isinstance(imagined, list | tuple) or len(imagined) < 2:
            why = "imagined must list at least two worlds, each a table or a pair (table, tensors)"
            example = "[(X_if_0, [images_if_0]), (X_if_1, [images_if_1])]"
            raise InputTypeError(f"{why}, got {type(imagined).__name__}; pass for example {example}.")
        tables, further = [], []
        for world in imagined:
            X, tensors = world if isinstance(world, tuple) else (world, ())
            seen, n = read_table(estimator, X, reset=False), len(kept)
            if len(seen) != n:
                raise InputError(f"An imagined world has {len(seen)} rows for {n} rows of X; pass the same rows.")
            tables.append(torch.from_numpy(estimator.encoding_.features(seen[kept])))
            further.append(FurtherInputs.of(tensors, n).take(kept))
        some = tuple(further) if any(part.tensors or part.dataset is not None for part in further) else ()
        return [ImaginedRows((torch.stack(tables, dim=1),), further=some)]
    outcome = None if estimator.outcome is None or target is None else (estimator.outcome, target)
    roles, seed = estimator.roles_, estimator.preparation_seed_
    models = checked_models(estimator.counterfactuals)
    return [imagine(model, table, roles.protected, estimator.encoding_, outcome, seed) for model in models]
