"""What trainings share that differ in gamma and seed alone: encoded rows, roles, the penalty's operator."""

from __future__ import annotations

import copy
from typing import Any

from sklearn.base import clone

from ciplearn.estimators.base import CIPEstimator
from ciplearn.learning.settings import chosen_device
from ciplearn.penalties import Operator


class Prepared:
    """An estimator that has read its rows.

    The operator does not depend on gamma, nor on predictions, and preparing it can take longer than a training.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With its roles.
    X, y, sample_weight
        As `fit` of the estimator takes them.

    Attributes
    ----------
    rows : Rows
        Encoded, on the estimator's device.
    roles : Roles
    operator : Operator or None
        The penalty on all rows, where that is what every training takes.
    """

    def __init__(self, estimator: CIPEstimator, X: Any, y: Any, sample_weight: Any = None) -> None:
        self._prototype = clone(estimator)
        rows, self.roles = self._prototype._read_rows(X, y, sample_weight, ())
        self._prototype.roles_ = self.roles
        self.rows = rows.to(chosen_device(estimator.device))
        self.operator: Operator | None = None
        # Early stopping trains on a share of the rows, another one for each seed.
        if self.roles.independence is not None and estimator.prepare_once and not estimator.early_stopping:
            self.operator = self._prototype._bound_penalty().prepare(self.rows.right, self.rows.given)

    def judge(self, X: Any) -> Operator | None:
        """The penalty prepared on other rows, for all models alike."""
        return None if self.roles.independence is None else self._prototype.penalty_operator(X)

    def untrained(self, gamma: float, **settings: Any) -> CIPEstimator:
        """Return an estimator at a gamma that knows encoding and roles and has no network yet."""
        one = copy.copy(self._prototype)
        # A random state that is drawn from would give each copy other numbers than a fresh estimator gets.
        one.random_state = copy.deepcopy(self._prototype.random_state)
        return one.set_params(gamma=gamma, **settings)

    def trained(self, gamma: float, **settings: Any) -> CIPEstimator:
        """Train at a gamma."""
        return self.untrained(gamma, **settings)._train(self.rows, self.roles, self.operator)
