"""A table, a graph and roles, understood: what will be trained on what, before any training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.names import nearest
from ciplearn.cli.schema import CATEGORY, NUMBER, Schema, stray_text
from ciplearn.estimators.missing import POLICIES
from ciplearn.estimators.roles import Roles, settle_roles

TASKS = ("classification", "regression")


# To train on, to judge gamma by, and to audit.
_LEAST_ROWS = 10


@dataclass(frozen=True)
class Wishes:
    """What the user asked for; None leaves it to the data."""

    graph: CausalGraph
    outcome: str | None = None
    protected: Sequence[str] | None = None
    context: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    adjustment: Sequence[str] | None = None
    categories: Sequence[str] = ()
    task: str | None = None
    missing: str = "drop"
    holdout: float = 0.2
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Problem:
    """A table in its kinds, with its roles, and split into rows for training and rows for the audit.

    Attributes
    ----------
    wishes : Wishes
    schema : Schema
        Of the nodes of the graph, outcome included.
    table : DataFrame
        Rows that can be used, indexed by their place in the file.
    task : str
    roles : Roles
    ignored : tuple of str
        Columns that are no nodes of the graph.
    n_rows : int
        Rows of the file.
    """

    wishes: Wishes
    schema: Schema
    table: pd.DataFrame
    outcome: str
    task: str
    roles: Roles
    ignored: tuple[str, ...]
    n_rows: int

    @classmethod
    def of(cls, table: pd.DataFrame, wishes: Wishes) -> Problem:
        """Settle kinds, roles, task and rows, or say what does not fit."""
        if wishes.missing not in POLICIES:
            raise InputError(f"--missing must be one of {', '.join(POLICIES)}, got {wishes.missing!r}; name one.")
        nodes = _columns_of(wishes.graph, table)
        schema = Schema.of(table, wishes.categories).restricted(nodes)
        typed = schema.typed(table[nodes], "the table")
        outcome = _outcome(wishes)
        _refuse_stray_text(table, schema, outcome, wishes)
        roles = settle_roles(
            typed.drop(columns=outcome),
            graph=wishes.graph,
            outcome=outcome,
            protected=wishes.protected,
            context=wishes.context,
            inputs=wishes.inputs,
            adjustment=wishes.adjustment,
            independence=None,
        )
        needed = [outcome, *(roles.used if wishes.missing == "drop" else ())]
        kept = typed.dropna(subset=needed)
        if len(table) < _LEAST_ROWS:
            raise InputError(f"The table has {len(table)} rows, and fitting needs {_LEAST_ROWS}; pass more rows.")
        if len(kept) < _LEAST_ROWS:
            raise InputError(
                f"Only {len(kept)} of {len(table)} rows have a value in each of {', '.join(needed)}; pass more rows, "
                "or use fewer columns."
            )
        if roles.protects_nothing(kept):
            raise InputError(f"{roles.nothing_protected(kept)}.")
        task = _task(kept[outcome], schema.kinds[outcome], wishes.task)
        kept = kept.assign(**{outcome: as_target(kept[outcome], task)})
        ignored = tuple(name for name in table.columns if name not in nodes)
        return cls(wishes, schema, kept, outcome, task, roles, ignored, len(table))

    @property
    def verdict(self) -> Verdict:
        """What the graph says about the roles."""
        if self.roles.verdict is None:
            raise InputError("The roles have no verdict; pass a graph.")
        return self.roles.verdict

    def training(self) -> tuple[pd.DataFrame, pd.Series]:
        """Rows to train on."""
        return self._split(~self._held())

    def held_out(self) -> tuple[pd.DataFrame, pd.Series]:
        """Rows that training and the choice of gamma never see."""
        return self._split(self._held())

    def description(self) -> dict[str, Any]:
        """Say what was understood, as JSON-ready data."""
        role_of: dict[str, list[str]] = {name: [] for name in self.table.columns}
        for role in ("protected", "context", "inputs", "adjustment"):
            for name in getattr(self.verdict, role):
                role_of[name].append(role)
        role_of[self.outcome].append("outcome")
        return {
            "rows": self.n_rows,
            "dropped": self.n_rows - len(self.table),
            "training": len(self.training()[0]),
            "held_out": len(self.held_out()[0]),
            "task": self.task,
            "statement": str(self.roles.independence),
            "holds": self.verdict.holds,
            "columns": [
                {
                    "name": name,
                    "kind": self.schema.kinds[name],
                    "values": _values(self.table[name], self.schema.kinds[name]),
                    "roles": role_of[name],
                }
                for name in self.table.columns
            ],
            "ignored": list(self.ignored),
        }

    def _held(self) -> np.ndarray[Any, Any]:
        held = held_out_rows(self.n_rows, self.wishes.holdout, self.wishes.seed)
        return self.table.index.isin(held)

    def _split(self, rows: np.ndarray[Any, Any]) -> tuple[pd.DataFrame, pd.Series]:
        picked = self.table[rows]
        return picked.drop(columns=self.outcome), picked[self.outcome]


def held_out_rows(n_rows: int, share: float, seed: int) -> np.ndarray[Any, Any]:
    """Places in the file that are kept from training: always the same for the same file, share and seed."""
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[: round(share * n_rows)])


def as_target(column: pd.Series, task: str) -> pd.Series:
    """Return labels as whole numbers where they are, as text where not; numbers for regression."""
    if task == "regression" or not pd.api.types.is_numeric_dtype(column.dtype):
        return column
    whole = (column == column.round()).all()
    return column.astype("int64") if whole else column.astype(str)


def _columns_of(graph: CausalGraph, table: pd.DataFrame) -> list[str]:
    for node in graph.observed:
        if node not in table.columns:
            hint = nearest(node, tuple(table.columns), "columns").rstrip("?.")
            raise InputError(
                f"The graph has the node {node!r}, which is no column of the table ({hint}); rename one of them, or "
                "mark the node latent."
            )
    return [name for name in table.columns if name in graph.observed]


def _refuse_stray_text(table: pd.DataFrame, schema: Schema, outcome: str, wishes: Wishes) -> None:
    """One stray cell would make a category of each number in its column, and of a regression a classification."""
    for name, kind in schema.kinds.items():
        if kind != CATEGORY or name in wishes.categories or (name == outcome and wishes.task is not None):
            continue
        cell = stray_text(table[name])
        if cell is not None:
            confirm = "--task classification" if name == outcome else f"--categories {name}"
            raise InputError(
                f"Column {name!r} holds mostly numbers, but also cells like {cell!r}; correct these, name them with "
                f"--na, or pass {confirm}."
            )


def _outcome(wishes: Wishes) -> str:
    named = [wishes.outcome] if wishes.outcome is not None else list(wishes.graph.outcomes)
    if len(named) != 1:
        raise InputError(f"Fitting needs one outcome, got {', '.join(named) or 'none'}; pass --outcome.")
    return wishes.graph.known(named, "outcome")[0]


def _task(outcome: pd.Series, kind: str, asked: str | None) -> str:
    if asked is not None and asked not in TASKS:
        raise InputError(f"--task must be one of {', '.join(TASKS)}, got {asked!r}; name one of these.")
    distinct = outcome.nunique()
    if distinct < 2:
        raise InputError(f"The outcome {outcome.name!r} has the same value in all rows; there is nothing to learn.")
    if asked == "regression" and kind == CATEGORY:
        raise InputError(f"--task regression needs numbers, but {outcome.name!r} holds text; use classification.")
    return asked or ("classification" if kind == CATEGORY or distinct == 2 else "regression")


def _values(column: pd.Series, kind: str) -> str:
    if kind == NUMBER and pd.api.types.is_numeric_dtype(column.dtype) and column.nunique() > 2:
        return f"{column.min():g} to {column.max():g}"
    found = column.value_counts()
    shown = ", ".join(str(level) for level in found.index[:4])
    return shown if len(found) <= 4 else f"{shown}, ... ({len(found)} levels)"
