"""A table, a graph and roles, understood: which rows and columns will be trained on, before any training."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import one_of
from ciplearn._core.columns import (
    CATEGORY,
    CLASSIFICATION,
    NUMBER,
    REGRESSION,
    as_target,
    holds_numbers,
    looks_like_codes,
    read_numbers,
    task_of,
    text_as_numbers,
)
from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.rows import TrainedRows, copy_groups, digested, held_out_rows
from ciplearn._core.wording import shortened
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.names import nearest
from ciplearn.cli.options import ROLES
from ciplearn.estimators.problem import Roles, settle_roles
from ciplearn.estimators.tables import MISSING_POLICIES
from ciplearn.sources.table_file import TableFile

TASKS = (CLASSIFICATION, REGRESSION)
_LEAST_ROWS = 10  # to train on, to judge gamma by, and to audit
_SIGNS_IN_NUMBERS = r"[,'_%$€£\s]"  # thousands, units and blanks, as people and spreadsheets write them

# A day, alone or with a time of day.
_DATE = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2}))(?:[ T].*)?"

_FEW_TEXTS = 20  # so many different texts, of which most stand in one row only, are names or free text
LEAST_OF_A_LEVEL = 5  # fewer rows say little about a level


@dataclass(frozen=True)
class FitRequest:
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
class TrainingTable:
    """A table in its kinds, with its roles, and split into rows for training and rows for the audit."""

    request: FitRequest
    kinds: dict[str, str]  # number or category, of each observed node of the graph, outcome included
    table: pd.DataFrame  # rows that can be used, indexed by their place in the file
    outcome: str
    task: str
    roles: Roles
    ignored: tuple[str, ...]  # columns that are no nodes of the graph
    n_rows: int  # rows of the file
    n_dropped: int  # of those that were looked at, the rows that miss a value
    identity: dict[str, Any]  # which file it is, as it was when it was read
    held_out: np.ndarray[Any, Any]  # places in the file that training and the choice of gamma never see
    n_copies: int  # rows that are copies of one above them; copies stay together
    trained: TrainedRows | None = None  # where rows train beyond those of the table

    @classmethod
    def read(cls, source: TableFile, request: FitRequest) -> TrainingTable:
        """Read a table and settle kinds, roles, task and rows, or say what does not fit."""
        one_of(request.missing, "--missing", MISSING_POLICIES)
        _outcome(request)
        with source.unchanged():
            identity = source.identity()
            with source.opened(labels=request.categories) as opened:
                cells = opened.read(nodes_in(request, opened.names))
        return cls.understood(cells, opened.names, identity, request)

    @classmethod
    def understood(
        cls,
        cells: pd.DataFrame,
        names: Sequence[str],
        identity: dict[str, Any],
        request: FitRequest,
        n_rows: int | None = None,
    ) -> TrainingTable:
        """Settle kinds, roles, task and rows of cells, numbered as in the file, or say what does not fit.

        ``names``: all columns of the file, of which ``identity`` tells; ``n_rows``: its rows, where cells are a sample.
        """
        outcome = _outcome(request)
        table = in_their_kinds(cells, request.categories, {outcome} if request.task is not None else set(), outcome)
        named: dict[str, Any] = {role: getattr(request, role) for role in ROLES}
        X = table.drop(columns=outcome)
        roles = settle_roles(X, graph=request.graph, outcome=outcome, **named, independence=None)
        if len(table) < _LEAST_ROWS:
            raise InputError(f"The table has {len(table)} rows, and fitting needs {_LEAST_ROWS}; pass more rows.")
        needed = [outcome, *(roles.used if request.missing == "drop" else ())]
        kept = table.dropna(subset=needed)
        if len(kept) < _LEAST_ROWS:
            raise InputError(
                f"Only {len(kept)} of {len(table)} rows have a value in each of {', '.join(needed)}; pass more rows, "
                "or use fewer columns."
            )
        if roles.protects_nothing(kept):
            raise InputError(f"{roles.nothing_protected(len(kept))}.")
        task = _task(kept[outcome], request.task)
        copies = copy_groups(table[[*roles.used, outcome]])
        return cls(
            request=request,
            kinds={name: NUMBER if holds_numbers(table[name]) else CATEGORY for name in table.columns},
            table=kept.assign(**{outcome: as_target(kept[outcome], task)}),
            outcome=outcome,
            task=task,
            roles=roles,
            ignored=tuple(name for name in names if name not in set(cells.columns)),
            n_rows=len(table) if n_rows is None else n_rows,
            n_dropped=len(table) - len(kept),
            identity=identity,
            held_out=table.index.to_numpy()[held_out_rows(len(table), request.holdout, request.seed, copies)],
            n_copies=int((copies != np.arange(len(table))).sum()),
        )

    @property
    def verdict(self) -> Verdict:
        """What the graph says about the roles."""
        if self.roles.verdict is None:
            raise InputError("The roles have no verdict; pass a graph.")
        return self.roles.verdict

    def training(self, held_out: bool = False) -> tuple[pd.DataFrame, pd.Series]:
        """Rows to train on; or those that training and the choice of gamma never see."""
        rows = self.table[self.table.index.isin(self.held_out) == held_out]
        return rows.drop(columns=self.outcome), rows[self.outcome]

    @property
    def told_by(self) -> dict[str, str]:
        """The columns by which a row is known again, with their kinds."""
        return {name: self.kinds[name] for name in (*self.roles.used, self.outcome)}

    def trained_rows(self) -> TrainedRows:
        """Return what the rows that train are known by."""
        if self.trained is not None:
            return self.trained
        train = ~self.table.index.isin(self.held_out)
        return TrainedRows.of(tuple(self.told_by), *(each[train] for each in digested(self.table, self.told_by)))

    def description(self) -> dict[str, Any]:
        """Say what was understood, as plain data."""
        roles = {"outcome": (self.outcome,), **{role: getattr(self.verdict, role) for role in ROLES}}
        return {
            "rows": self.n_rows,
            "dropped": self.n_dropped,
            "copies": self.n_copies,
            "training": len(self.training()[0]),
            "held_out": len(self.training(held_out=True)[0]),
            "task": self.task,
            "statement": str(self.roles.independence),
            "holds": self.verdict.holds,
            "columns": [
                {
                    "name": name,
                    "kind": self.kinds[name],
                    "values": _values(self.table[name]),
                    "roles": [role for role, names in roles.items() if name in names],
                }
                for name in self.table.columns
            ],
            "ignored": list(self.ignored),
            "constant": [name for name in self.table.columns if self.table[name].nunique() == 1],
        }

    def perhaps_codes(self) -> list[str]:
        """Return columns of a few whole numbers that nobody has called categories: they may be codes, not amounts."""
        numbers = (name for name in self.roles.used if self.kinds[name] == NUMBER)
        return [name for name in numbers if looks_like_codes(self.table[name])]

    def mostly_rare(self) -> dict[str, int]:
        """Return columns of many categories, of which most stand in a few training rows only -> how many there are."""
        X = self.training()[0]
        counts = {name: X[name].value_counts() for name in self.roles.used if self.kinds[name] == CATEGORY}
        rare = {name: rows < LEAST_OF_A_LEVEL for name, rows in counts.items() if len(rows) > _FEW_TEXTS}
        return {name: len(few) for name, few in rare.items() if few.mean() > 0.5}


def _outcome(request: FitRequest) -> str:
    named = [request.outcome] if request.outcome is not None else list(request.graph.outcomes)
    if len(named) != 1:
        raise InputError(f"Fitting needs one outcome, got {', '.join(named) or 'none'}; pass --outcome.")
    outcome = request.graph.known(named, "outcome")[0]
    if outcome not in request.graph.observed:
        raise GraphError(f"The outcome {outcome!r} is latent in the graph, so there is nothing to learn; name another.")
    return outcome


def nodes_in(request: FitRequest, names: Sequence[str]) -> list[str]:
    """Return the columns of a table that are nodes of the graph; the others do not matter."""
    require_nodes(request.graph.observed, names, names)
    for name in request.categories:
        if name not in names:
            raise InputError(f"The column {name!r} of --categories is not in the table; it has {shortened(names)}.")
    return [name for name in dict.fromkeys(names) if name in request.graph.observed]


def require_nodes(nodes: Sequence[str], held: Collection[str], names: Sequence[str]) -> None:
    """Refuse a table that holds not every node of a graph, and say which column may have been meant."""
    if not set(nodes) & set(held):
        raise InputError(
            f"No node of the graph is a column of the table, whose first line reads {shortened(names)}; where "
            "that line holds no names, give them with --columns NAME,NAME,..."
        )
    for node in nodes:
        if node not in held:
            hint = nearest(node, names, "columns").rstrip("?.")
            raise InputError(
                f"The graph has the node {node!r}, which is no column of the table ({hint}); rename one of them, or "
                "mark the node latent."
            )


def _task(outcome: pd.Series, asked: str | None) -> str:
    if asked is not None:
        one_of(asked, "--task", TASKS)
    if outcome.nunique() < 2:
        raise InputError(
            f"The outcome {outcome.name!r} has the same value in all rows, so there is nothing to learn; pass rows "
            "that differ in it, or name another."
        )
    if asked == REGRESSION and not holds_numbers(outcome):
        raise InputError(f"--task regression needs numbers, but {outcome.name!r} holds text; use classification.")
    return asked or task_of(outcome)


def _values(column: pd.Series) -> str:
    if holds_numbers(column) and column.nunique() > 2:
        return f"{column.min():g} to {column.max():g}"
    counts = column.value_counts()
    shown = ", ".join(str(level) for level in counts.index[:4])
    return shown if len(counts) <= 4 else f"{shown}, ... ({len(counts)} levels)"


def in_their_kinds(
    cells: pd.DataFrame, categories: Collection[str], confirmed: Collection[str] = (), outcome: str | None = None
) -> pd.DataFrame:
    """Return columns as numbers where every value reads as one and nobody has called them categories.

    Text that was hardly meant as categories is refused, unless the column is confirmed.
    """
    columns = {}
    for name in cells.columns:
        numbers = None if name in categories else text_as_numbers(cells[name])
        if numbers is not None and np.isinf(numbers).any():
            place = int(np.isinf(numbers).to_numpy().argmax())
            raise InputError(
                f"Column {name!r} holds infinity, {cells[name].iloc[place]!r} in row {place + 1}; mend it, or use --na."
            )
        if numbers is None and name not in categories and name not in confirmed:
            confirm = "--task classification" if name == outcome else f"--categories {name}"
            if name != outcome or cells[name].nunique() != 2:
                refuse_beyond_floats(cells[name], confirm)
            _refuse_what_is_no_category(cells[name], confirm)
        if numbers is None and holds_numbers(cells[name]):
            # Whole numbers that floats do not tell apart are text.
            columns[name] = cells[name].map(str, na_action="ignore").astype(object)
        else:
            columns[name] = cells[name] if numbers is None else numbers
    return pd.DataFrame(columns)


def _refuse_what_is_no_category(column: pd.Series, confirm: str) -> None:
    """Refuse numbers with text among them, dates and names: each would become a category of its own."""
    stray = stray_text(column)
    if stray is not None:
        number = pd.to_numeric(re.sub(_SIGNS_IN_NUMBERS, "", stray), errors="coerce") if stray else math.nan
        how = " (a number has a decimal point and no other sign)" if not math.isnan(number) else ""
        raise InputError(
            f"Column {column.name!r} holds mostly numbers, but also cells like {stray!r}; correct these{how}, name "
            f"them with --na, or pass {confirm}."
        )
    values = pd.Series(column.dropna().unique()).astype(str)
    dates = values[values.str.fullmatch(_DATE)]
    if len(dates) > len(values) / 2:
        raise InputError(
            f"Column {column.name!r} holds dates such as {dates.iloc[0]!r}; put numbers in their place, such as days "
            f"since the first, leave it out of the graph, or pass {confirm}."
        )
    if len(values) > max(_FEW_TEXTS, column.notna().sum() / 2):
        raise InputError(
            f"Column {column.name!r} has {len(values)} different texts such as {values.iloc[0][:30]!r} in "
            f"{column.notna().sum()} rows: it looks like free text or an identifier; leave it out of the "
            f"graph, group its values, or pass {confirm}."
        )


def refuse_beyond_floats(column: pd.Series, confirm: str) -> None:
    """Refuse a column of numbers of which some are whole and equal to no float."""
    present = column.dropna()
    large = present[read_numbers(present).isna()]
    if len(large) and pd.to_numeric(present, errors="coerce").notna().all():
        raise InputError(
            f"Column {column.name!r} holds {large.iloc[0]}, and numbers beyond 2**53 are not told from their "
            f"neighbours; pass {confirm} where they are labels, rescale amounts, or leave it out of the graph."
        )


def stray_text(column: pd.Series) -> str | None:
    """Return a cell that keeps a column from being numbers, where most of its values are numbers or nearly so."""
    values = pd.Series(column.dropna().unique()).astype(str)
    bare = values.str.replace(_SIGNS_IN_NUMBERS, "", regex=True)
    if not pd.to_numeric(bare, errors="coerce").notna().mean() > 0.5:
        return None
    stray = values[pd.to_numeric(values, errors="coerce").isna()]
    return None if stray.empty else str(stray.iloc[0])
