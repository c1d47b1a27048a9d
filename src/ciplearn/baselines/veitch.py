"""The penalties of Veitch et al. for their causal and anti-causal graphs [veitch2021]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ciplearn._core.arguments import non_negative, one_of
from ciplearn._core.columns import CLASSIFICATION, form_groups
from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline, NodeColumns, outcome_columns
from ciplearn.causal import Independence
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.tables import read_table
from ciplearn.kernels import Gaussian
from ciplearn.penalties import HSCIC, HSIC, MMD, Penalty

CAUSAL, ANTICAUSAL = "causal", "anticausal"

_KERNEL = Gaussian(0.1)


@dataclass(eq=False, repr=False)
class Veitch(Baseline):
    """Loss + gamma · HSIC(Ŷ, A) if the inputs cause Y, loss + gamma · HSCIC(Ŷ, A | Y) if Y causes the inputs.

    Where A is discrete the criterion is the maximum mean discrepancy between its groups, within the classes of Y in
    the anti-causal case; with a Y that is a number it stays HSCIC. Only the training sees Y as a conditioning variable.
    Scales are the paper's: length scale 0.1 on columns scaled to [0, 1], ridge 0.01.

    Parameters
    ----------
    gamma : float
        Weight of the penalty.
    penalty : Penalty, optional
        Another criterion of the same independence.
    direction : "auto", "causal" or "anticausal"
        ``"auto"`` reads it off the graph: anti-causal if Y acts on an input, causal if it does not; a graph in which
        unprotected inputs stand on both sides of Y is refused.
    prepare_once : bool
        Prepare the penalty on all training rows once; ``False`` prepares it on each batch anew.

    Other parameters: see `Baseline`; a graph is needed for ``direction="auto"`` only, and no ``estimator`` is taken.

    Attributes
    ----------
    direction_ : str
    independence_ : Independence
        What the penalty enforces. Other attributes: see `Baseline`.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> model = baselines.Veitch(protected=["A"], direction="causal", epochs=2)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    gamma: float = 1.0
    penalty: Penalty | None = None
    direction: str = "auto"
    prepare_once: bool = True

    def penalty_value(self, X: Any, y: Any = None) -> float:
        """Return the penalty of the predictions on these rows; the anti-causal one needs y."""
        check_is_fitted(self, "model_")
        if self.direction_ == ANTICAUSAL and y is None:
            raise InputError("The anti-causal penalty conditions on the outcome, got y=None; pass y.")
        return self.model_.penalty_value(self._with_outcome(read_table(self, X, reset=False), y))

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        if self.estimator is not None:
            why = f"Veitch trains with a penalty, which needs gradients, got estimator={self.estimator!r}"
            raise InputError(f"{why}; leave it out.")
        return columns.of(columns.inputs)

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.inputs_, *columns.of(columns.protected))))

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> CIPEstimator:
        self.direction_ = self._settled_direction(columns)
        right = columns.of(columns.protected)
        shown = self._with_outcome(table[list(self._read_by_fit(columns))], y)
        given = tuple(name for name in shown.columns if name not in table.columns)
        self.independence_ = Independence(right=right, given=given)
        penalty: Penalty = HSIC(_KERNEL, _KERNEL) if self.direction_ == CAUSAL else HSCIC.paper()
        if (self.direction_ == CAUSAL or self.task_ == CLASSIFICATION) and form_groups(table, right):
            penalty = MMD(_KERNEL)
        model = self._network(
            inputs=self.inputs_,
            independence=self.independence_,
            gamma=non_negative(self.gamma, "gamma"),
            penalty=penalty if self.penalty is None else self.penalty,
            prepare_once=self.prepare_once,
        )
        return model.fit(shown, y, weights)

    def _with_outcome(self, table: pd.DataFrame, y: Any) -> pd.DataFrame:
        """Put y beside the inputs, for the penalty alone."""
        if self.direction_ == CAUSAL:
            return table
        return pd.concat([table, outcome_columns(y, self.task_).set_index(table.index)], axis=1)

    def _settled_direction(self, columns: NodeColumns) -> str:
        if one_of(self.direction, "direction", ("auto", CAUSAL, ANTICAUSAL)) != "auto":
            return self.direction
        if columns.graph is None or columns.outcome is None:
            raise InputError("direction='auto' is read off a graph, got graph=None; pass a graph, or the direction.")
        others = set(columns.inputs) - set(columns.protected)
        effects = others & columns.graph.descendants(columns.outcome)
        causes = others & columns.graph.ancestors(columns.outcome)
        if effects and causes:
            both = f"is caused by {as_set(sorted(causes))} and causes {as_set(sorted(effects))}"
            why = f"The graph is neither causal nor anti-causal: {columns.outcome!r} {both}"
            raise InputError(f"{why}; pass the direction.")
        return ANTICAUSAL if effects else CAUSAL
