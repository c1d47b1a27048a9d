"""CF2: residuals of descendants, level 3 of counterfactual fairness [kusner2017]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from ciplearn._core.arguments import one_of
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns
from ciplearn.baselines.fitted_models import ColumnRegression, EstimatorRegression


@dataclass(eq=False, repr=False)
class CF2(Baseline):
    """Ŷ = f(non-descendants of A, V − E[V | parents of V] for each descendant V of A).

    Level 3 of counterfactual fairness [kusner2017]: each descendant is modelled with additive noise, and its noise
    stands in for it. Counterfactually invariant where each descendant is a function of its observed parents plus noise
    that is independent of them. A descendant that is a category counts with its indicators minus their predicted
    probabilities.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        What regresses a descendant: its number scaled to [0, 1], or the indicators of its levels. By default a network
        like the predictor's, trained alike, which for a category predicts probabilities.
    regress_on : "parents" or "protected"
        ``"protected"`` regresses on A alone, as [quinzan2024] does under the name of level 2. Where A and a descendant
        share a cause, such residuals still follow A. An outcome among the parents, which `predict` does not know, is
        left out; where A acts through it, A stands in for it.

    Other parameters and attributes: see `Baseline`; the graph is needed.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.CF2(
    ...     graph=world.graph, outcome="Y", protected=["A"], regressor=LinearRegression(), epochs=2, random_state=0
    ... )
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    regressor: Any = None
    regress_on: str = "parents"

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        one_of(self.regress_on, "regress_on", ("parents", "protected"))
        unchanged, regressed = columns.unchanged(), self._regressed(columns)
        if not unchanged and not regressed:
            raise InputError(
                f"CF2 has nothing to predict from: the only inputs are {as_set(columns.inputs)}, which are protected; "
                f"name more inputs."
            )
        causes = (name for names in regressed.values() for name in names)
        return tuple(dict.fromkeys((*unchanged, *regressed, *causes)))

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        seed = self._seed()
        self.unchanged_ = columns.unchanged()
        self.residuals_ = [
            self._residual(table, column, causes, seed + number)
            for number, (column, causes) in enumerate(self._regressed(columns).items())
        ]
        return super()._learnt(table, y, weights, columns)

    def _view(self, table: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([table[list(self.unchanged_)], *(residual(table) for residual in self.residuals_)], axis=1)

    def _regressed(self, columns: NodeColumns) -> dict[str, tuple[str, ...]]:
        """Columns of the inputs that descend from A, each with the columns it is regressed on."""
        by_parents = self.regress_on == "parents"
        regressed: dict[str, tuple[str, ...]] = {}
        for node in columns.descendants():
            causes = columns.causes(node, with_outcome=False) if by_parents else columns.protected
            if node in columns.inputs:
                regressed |= dict.fromkeys(columns.of([node]), columns.of(causes, self.regress_on))
        return regressed

    def _residual(self, table: pd.DataFrame, column: str, names: tuple[str, ...], seed: int) -> _Residual:
        causes, value = TableEncoding.of(table, names), TableEncoding.of(table, (column,))
        inputs, target = torch.from_numpy(causes.features(table)), torch.from_numpy(value.features(table))
        if self.regressor is not None:
            return _Residual(causes, value, EstimatorRegression.fitted(self.regressor, inputs, target))
        return _Residual(causes, value, self._regression(inputs, target, is_category=value.categories[0], seed=seed))


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
