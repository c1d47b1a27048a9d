"""`Problem`: what is predicted, from what, and what it must not follow. Settled once, carried everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from ciplearn._core.arguments import entries, of_kind, one_of
from ciplearn._core.columns import CLASSIFICATION, REGRESSION, checked_table, holds_numbers, task_of
from ciplearn._core.errors import GraphError, InputError, InputTypeError
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.causal.names import closest, columns_of, node_of, nodes_of
from ciplearn.estimators.tables import read_table, same_rows, without_missing

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """A table, a graph over its columns, and their roles, with what the graph says about them.

    ``table`` holds complete rows, outcome included; ``task`` is "classification" or "regression".

    >>> from ciplearn import Problem, datasets
    >>> people = datasets.applicants().sample(100, random_state=0)
    >>> problem = Problem.of(people, graph=datasets.applicants().graph, outcome="income", protected=["sex"])
    >>> problem.task, problem.protected
    ('regression', ('sex',))
    """

    table: pd.DataFrame
    graph: CausalGraph
    roles: Roles
    task: str

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        *,
        graph: CausalGraph,
        outcome: str | None = None,
        protected: Columns = None,
        context: Columns = None,
        inputs: Columns = None,
        adjustment: Columns = None,
        task: str | None = None,
    ) -> Self:
        """Settle roles and task, ask the graph for its verdict, and leave out rows that miss a value.

        Roles are those of `CausalGraph.criterion`, by default those written in the graph's text. ``task`` is
        "classification" or "regression"; by default labels and two numbers are classes.
        """
        checked_table(table, "table")
        names = [outcome] if outcome is not None else list(checked_graph(graph).outcomes)
        if len(names) != 1:
            raise InputError(f"A problem has one outcome, got {', '.join(names) or 'none'}; pass outcome=.")
        if names[0] not in table.columns:
            raise InputError(f"table lacks the outcome {names[0]!r}; add the column, or name another.")
        named: dict[str, Any] = {"protected": protected, "context": context, "inputs": inputs, "adjustment": adjustment}
        X = table.drop(columns=names[0])
        roles = settle_roles(X, graph=graph, outcome=names[0], independence=None, **named)
        kind = one_of(task_of(table[names[0]].dropna()) if task is None else task, "task", (CLASSIFICATION, REGRESSION))
        complete, _ = without_missing(table, (*roles.used, names[0]), "drop")
        return cls(complete, graph, roles, kind)

    @classmethod
    def of_estimator(cls, estimator: CIPEstimator, X: Any, y: Any) -> Self:
        """Read the rows as `fit` of an estimator would; where it imputes, rows that miss a value stay."""
        reader = clone(estimator)
        table = read_table(reader, X, reset=True)
        target = reader._read_target(y)
        same_rows(table, target)
        roles = reader._roles_of(table)
        if roles.verdict is None:
            raise InputError("A problem has a graph; pass an estimator with graph=.")
        table, kept = without_missing(table, roles.used, estimator.missing)
        task = CLASSIFICATION if is_classifier(estimator) else REGRESSION
        return cls(table.assign(**{roles.verdict.outcome: target[kept]}), roles.verdict.graph, roles, task)

    @property
    def verdict(self) -> Verdict:
        """What the graph says."""
        if self.roles.verdict is None:
            raise InputError("The roles have no verdict; pass a graph.")
        return self.roles.verdict

    @property
    def outcome(self) -> str:
        """The column that is predicted."""
        return self.verdict.outcome

    @property
    def protected(self) -> tuple[str, ...]:
        """The nodes that a prediction shall not follow."""
        return self.verdict.protected

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a predictor may read."""
        return self.roles.inputs

    @property
    def is_classification(self) -> bool:
        """Whether labels are predicted."""
        return self.task == CLASSIFICATION

    @cached_property
    def X(self) -> pd.DataFrame:
        """The table without the outcome."""
        return self.table.drop(columns=self.outcome)

    @property
    def y(self) -> pd.Series:
        """The outcome."""
        return self.table[self.outcome]

    @cached_property
    def complete(self) -> pd.DataFrame:
        """The rows that miss no value in a column that is used: what causal models are estimated from."""
        return self.table.dropna(subset=[*self.roles.used, self.outcome])

    def take(self, rows: Array) -> Self:
        """Return the same problem on some of the rows, by position."""
        return replace(self, table=self.table.iloc[rows])


Columns = Sequence[str | int] | str | int | None

# Arguments of an estimator that give columns their roles.
ROLES = ("graph", "outcome", "protected", "context", "inputs", "adjustment", "independence")


@dataclass(frozen=True)
class Roles:
    """Which columns the network sees, which are protected, and which independence it shall keep."""

    inputs: tuple[str, ...]
    protected: tuple[str, ...] = ()  # those of the graph's protected nodes, those named, or the statement's right side
    statements: tuple[Independence, ...] = ()  # enforced by a penalty; given several, the most violated is penalised
    unchanged: tuple[str, ...] = ()  # inputs that do not descend from protected variables; none where no graph tells
    verdict: Verdict | None = None  # the graph's answer to the question; a weaker statement may be enforced

    @property
    def independence(self) -> Independence | None:
        """The statement, the first of several; None where there is none."""
        return self.statements[0] if self.statements else None

    def protects_nothing(self, table: pd.DataFrame) -> bool:
        """Whether no protected column varies in these rows."""
        for name in self.protected:
            # Lists have no order and no equality of their own: they are refused here.
            holds_numbers(table[name])
        return bool(self.protected) and all(table[name].nunique(dropna=False) <= 1 for name in self.protected)

    def nothing_protected(self, n: int) -> str:
        """The sentence about that, in n rows and without its end."""
        same = f"The protected {', '.join(self.protected)} has the same value in all {n} rows"
        return f"{same}, so there is nothing to be invariant in; name another column"

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that training reads."""
        stated = (name for statement in self.statements for name in (*statement.right, *statement.given))
        return tuple(dict.fromkeys((*self.inputs, *stated, *self.protected)))

    def to_dict(self) -> dict[str, Any]:
        """Return the roles as JSON-ready data."""
        columns = {name: list(getattr(self, name)) for name in ("inputs", "protected", "unchanged")}
        verdict = None if self.verdict is None else self.verdict.to_dict()
        return columns | {"statements": [statement.to_dict() for statement in self.statements], "verdict": verdict}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], graph: CausalGraph | None) -> Self:
        """Read what `to_dict` has written, without asking the criterion again."""
        return cls(
            tuple(data["inputs"]),
            tuple(data["protected"]),
            tuple(Independence(right=one["right"], given=one["given"]) for one in data["statements"]),
            tuple(data["unchanged"]),
            None if data["verdict"] is None or graph is None else Verdict.from_dict(data["verdict"], graph),
        )


def settle_roles(
    table: pd.DataFrame,
    *,
    graph: CausalGraph | None,
    outcome: str | None,
    protected: Columns,
    context: Columns,
    inputs: Columns,
    adjustment: Columns,
    independence: Independence | Sequence[Independence] | None,
    model_graph: CausalGraph | None = None,
) -> Roles:
    """Return the roles that a table without its outcome and an estimator's arguments give together.

    Where no graph was passed, that of a causal model tells what descends from the protected columns.
    """
    names = tuple(table.columns)
    chosen = {"protected": protected, "context": context, "inputs": inputs, "adjustment": adjustment}
    named = named_columns(chosen, names, outcome)
    statements = tuple(independence) if isinstance(independence, list | tuple) else (independence,)
    if not statements:
        raise InputError("independence holds no statement, got an empty list; pass one, or leave it out.")
    statements = () if independence is None else statements
    for each in statements:
        if not isinstance(each, Independence):
            raise InputTypeError(f"independence must be an Independence, got {each!r}; pass Independence(right=[...]).")
    if graph is not None:
        roles = _from_graph(checked_graph(graph), outcome, named, names)
        return replace(roles, statements=_on_table(statements, names)) if statements else roles
    if protected is not None and not named["protected"]:
        raise InputError("No protected column was named, got protected=[]; name the columns to be invariant in.")
    if named["protected"] and statements and model_graph is None:
        raise InputError("Pass either protected columns or an independence, got both; the independence says it all.")
    if named["protected"] and not statements and model_graph is None:
        statements = (Independence(right=named["protected"], given=named["adjustment"] or ()),)
    _on_table(statements, names)
    held = named["protected"] or (statements[0].right if statements else ())
    _require(held, names, "protected")
    seen = named["inputs"] or names
    return Roles(seen, tuple(held), statements, _unchanged(model_graph, held, seen))


def _on_table(statements: tuple[Independence, ...], names: tuple[str, ...]) -> tuple[Independence, ...]:
    for statement in statements:
        _require(statement.right, names, "right")
        _require(statement.given, names, "given")
    return statements


def _unchanged(graph: CausalGraph | None, protected: Iterable[str], inputs: Iterable[str]) -> tuple[str, ...]:
    """Inputs that the graph says an intervention on the protected columns does not change."""
    if graph is None:
        return ()
    changed = graph.descendants([node_of(name, graph.nodes) for name in protected])
    nodes = {name: node_of(name, graph.nodes) for name in inputs}
    return tuple(name for name, node in nodes.items() if node in graph.nodes and node not in changed)


def named_columns(
    chosen: Mapping[str, Any], names: tuple[str, ...], outcome: str | None
) -> dict[str, tuple[str, ...] | None]:
    """Return the names behind what estimators take for their roles: names or positions, one or several of them."""
    named = {role: _named(columns, names, role) for role, columns in chosen.items()}
    if named["inputs"] == ():
        raise InputError("The predictor would see nothing, got inputs=[]; name columns, or leave inputs out for all.")
    refuse_outcome(outcome, names)
    return named


def checked_graph(graph: Any) -> CausalGraph:
    """Refuse what is no graph."""
    if not isinstance(graph, CausalGraph):
        raise InputError(f"graph must be a CausalGraph, got {type(graph).__name__}; use CausalGraph.from_edges(...).")
    return graph


def named_nodes(
    named: Mapping[str, tuple[str, ...] | None], graph: CausalGraph, names: tuple[str, ...]
) -> dict[str, tuple[str, ...] | None]:
    """Return the nodes behind the names of `named_columns`; a vector counts if all its columns are named."""
    return {
        role: None if columns is None else nodes_of(columns, graph.nodes, names, role)
        for role, columns in named.items()
    }


def refuse_outcome(outcome: str | None, names: tuple[str, ...]) -> None:
    """Refuse a table that holds what is to be predicted."""
    if outcome is not None and of_kind(outcome, str, "outcome", "name the column that is predicted") in names:
        raise InputError(f"X holds the outcome {outcome!r}; drop that column from X and pass it as y.")


def _from_graph(
    graph: CausalGraph, outcome: str | None, named: dict[str, tuple[str, ...] | None], names: tuple[str, ...]
) -> Roles:
    verdict = graph.criterion(outcome=outcome, **named_nodes(named, graph, names))
    if not isinstance(verdict, Verdict):
        why = "The graph has undirected edges, so it stands for several graphs"
        raise GraphError(f"{why}; orient them, or pass the independence.")
    refuse_outcome(verdict.outcome, names)
    if verdict.outcome in verdict.independence.given:
        moved = [node for node in verdict.inputs if node in graph.descendants([verdict.outcome])]
        rest = [node for node in verdict.inputs if node not in moved]
        why = f"acts on {as_list(moved)}" if moved else "is named for adjustment"
        raise GraphError(
            f"The outcome {verdict.outcome!r} {why}, so that the statement would be given the outcome, which no "
            f"predictor is told; pass inputs={rest} (--inputs {','.join(rest)}), turn the arrow, or adjust "
            "for other columns."
        )
    statement = statement_on_columns(verdict, names)
    held = columns_of_nodes(verdict.protected, names, "protected")
    seen = columns_of_nodes(verdict.inputs, names, "inputs")
    return Roles(seen, held, (statement,), _unchanged(graph, held, seen), verdict)


def statement_on_columns(verdict: Verdict, names: tuple[str, ...]) -> Independence:
    """Return the independence that a verdict asks for, about columns in the place of nodes."""
    right, given = verdict.independence.right, verdict.independence.given
    return Independence(right=columns_of_nodes(right, names, "right"), given=columns_of_nodes(given, names, "given"))


def columns_of_nodes(nodes: Iterable[str], names: tuple[str, ...], role: str) -> tuple[str, ...]:
    """Return the columns that hold some nodes of the graph; a vector's are all its entries."""
    columns = tuple(column for node in nodes for column in columns_of(node, names) or (node,))
    _require(columns, names, role)
    return columns


def _named(columns: Any, names: tuple[str, ...], role: str) -> tuple[str, ...] | None:
    if columns is None:
        return None
    listed = None if isinstance(columns, str | bytes) else entries(columns)
    meant: list[str] = []
    for column in [columns] if listed is None else listed:
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not 0 <= column < len(names):
                raise InputError(f"{role} names column {column}, X has columns 0 to {len(names) - 1}; count from 0.")
            if str(column) in names and names[column] != str(column):
                either = f"the column {str(column)!r} or the one at that position, {names[column]!r}"
                raise InputError(f"{role} names {column}, which may be {either}; name it as text.")
            meant.append(names[column])
        elif isinstance(column, str):
            meant.append(column)
        else:
            raise InputError(f"{role} must hold column names or positions, got {column!r}; pass for example ['age'].")
    return tuple(meant)


def _require(wanted: tuple[str, ...], names: tuple[str, ...], role: str) -> None:
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    if names and all(name == f"x{i}" for i, name in enumerate(names)):
        why = f"The {role} column {missing[0]!r} is not in X, which came as an array without names"
        raise InputError(f'{why}; pass a frame, and keep names in a pipeline with set_output(transform="pandas").')
    by_case = {name.casefold(): name for name in names}
    near = closest(missing[0].casefold(), list(by_case))
    hint = f"did you mean {by_case[near[0]]!r}?" if near else f"X has {list(names)}."
    raise InputError(f"The {role} column {missing[0]!r} is not in X; {hint}")
