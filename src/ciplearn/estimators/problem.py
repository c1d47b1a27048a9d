"""`Problem`: what is predicted, from what, and what it must not follow. Settled once, carried everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from ciplearn._core.arguments import one_of
from ciplearn._core.columns import CLASSIFICATION, REGRESSION, checked_table, task_of
from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.estimators.roles import Columns, Roles, checked_graph, settle_roles
from ciplearn.estimators.tables import read_table, same_rows, without_missing

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """A table, a graph over its columns, and their roles, with what the graph says about them.

    Attributes
    ----------
    table : DataFrame
        Complete rows, outcome included.
    graph : CausalGraph
    roles : Roles
        With the verdict.
    task : str
        "classification" or "regression".

    Examples
    --------
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
        """Settle roles and task, judge the graph, and leave out rows that miss a value.

        Parameters
        ----------
        table : DataFrame
        graph : CausalGraph
        outcome, protected, context, inputs, adjustment
            Roles, as in `CausalGraph.criterion`; by default those written in the graph's text.
        task : "classification" or "regression", optional
            By default labels and two numbers are classes.
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
        whole = table.assign(**{roles.verdict.outcome: target[kept]})
        return cls(whole, roles.verdict.graph, roles, task)

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
