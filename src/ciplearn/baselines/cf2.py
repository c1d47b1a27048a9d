"""CF2: residuals of descendants [kusner2017]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from ciplearn._core.columns import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns
from ciplearn.baselines.regression import ColumnRegression, estimator_regression
from ciplearn.estimators.base import CIPEstimator

_REGRESSED_ON = ("protected", "parents")


@dataclass(eq=False, repr=False)
class CF2(Baseline):
    """Ŷ = f(non-descendants of A, V − E[V | A] for each descendant V), level 2 of counterfactual fairness [kusner2017].

    Counterfactually invariant where each descendant is a function of A plus noise that is independent of A. A
    descendant that is a category counts with its indicators minus their predicted probabilities.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        What regresses a descendant on A: its number scaled to [0, 1], or the indicators of its levels. By default a
        network like the predictor's, trained alike, which for a category predicts probabilities.
    regress_on : "protected" or "parents"
        The paper regresses on A. Where A and a descendant share an observed cause, such residuals still follow A;
        regression on all observed parents removes that.

    Other parameters and attributes: see `Baseline`; the graph is needed.
    """

    regressor: Any = None
    regress_on: str = "protected"

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        if self.regress_on not in _REGRESSED_ON:
            raise InputError(
                f"regress_on must be 'protected' or 'parents', got {self.regress_on!r}; pass one of these."
            )
        unchanged, regressed = columns.unchanged(), self._regressed(columns)
        if not unchanged and not regressed:
            raise InputError(
                f"CF2 has nothing to predict from: the only inputs are {as_set(columns.inputs)}, which are protected; "
                f"name more inputs."
            )
        causes = (name for names in regressed.values() for name in names)
        return tuple(dict.fromkeys((*unchanged, *regressed, *causes)))

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        return self.inputs_

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> CIPEstimator:
        seed = self._seed()
        self.unchanged_ = columns.unchanged()
        self.residuals_ = [
            self._residual(table, column, causes, seed + number)
            for number, (column, causes) in enumerate(self._regressed(columns).items())
        ]
        return self._network().fit(self._residual_table(table), y, weights)

    def _views(self, table: pd.DataFrame) -> Iterable[pd.DataFrame]:
        yield self._residual_table(table)

    def _regressed(self, columns: NodeColumns) -> dict[str, tuple[str, ...]]:
        """Columns of the inputs that descend from A, each with the columns it is regressed on."""
        return {
            column: columns.of(self._causes(node, columns), self.regress_on)
            for node in columns.descendants()
            if node in columns.inputs
            for column in columns.of([node])
        }

    def _causes(self, node: str, columns: NodeColumns) -> tuple[str, ...]:
        if self.regress_on == "protected":
            return columns.protected
        return tuple(cause for cause in columns.causes(node) if cause != columns.outcome)

    def _residual(self, table: pd.DataFrame, column: str, names: tuple[str, ...], seed: int) -> _Residual:
        causes, value = TableEncoding.of(table, names), TableEncoding.of(table, (column,))
        inputs, target = torch.from_numpy(causes.features(table)), torch.from_numpy(value.features(table))
        if self.regressor is not None:
            return _Residual(causes, value, estimator_regression(self.regressor, inputs, target))
        is_category = value.categories[0]
        learnt = self._regressions().regression(inputs, target, is_category=is_category, seed=seed)
        return _Residual(causes, value, learnt)

    def _residual_table(self, table: pd.DataFrame) -> pd.DataFrame:
        parts = [table[list(self.unchanged_)], *(residual(table) for residual in self.residuals_)]
        return pd.concat(parts, axis=1)


@dataclass(frozen=True)
class _Residual:
    """V − E[V | causes] of one column, as columns of their own."""

    causes: TableEncoding
    value: TableEncoding
    regression: ColumnRegression

    def __call__(self, table: pd.DataFrame) -> pd.DataFrame:
        column = self.value.columns[0]
        observed = torch.from_numpy(self.value.features(table)).double()
        residual = observed - self.regression.mean(torch.from_numpy(self.causes.features(table)).double())
        levels = getattr(column, "levels", ("",))
        names = [f"residual of {column.name}{'=' if level else ''}{level}" for level in levels]
        return pd.DataFrame(residual.numpy(), columns=names, index=table.index)
