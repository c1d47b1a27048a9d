"""Trainings at one gamma after the other, all on the same rows and judged on the same others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import mean_squared_error
from sklearn.utils import _safe_indexing as take

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import non_negative, positive
from ciplearn.estimators.prepared import Prepared
from ciplearn.estimators.splitting import split_rows
from ciplearn.learning.frontier import Frontier, Point
from ciplearn.learning.gamma import Choice, largest_allowed_gamma
from ciplearn.penalties import Operator

# A penalty has levelled off unless ten times the gamma lowers it to less than this share.
_STILL_FALLS = 0.9


class Trials:
    """Models at several gammas, and what each costs and buys.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With its roles; its gamma is replaced.
    X, y, sample_weight
        The rows, as `fit` of the estimator takes them.
    validation_fraction : float
        Share of the rows that judge; training never sees them.
    random_state : int or None
        Of the split.
    bar : tqdm
        A progress bar that counts trainings.

    Attributes
    ----------
    models : mapping from gamma to estimator
    points : list of Point
        Loss, score and penalty of each model on the rows that judge.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation_fraction: float,
        random_state: Any,
        bar: Any,
    ) -> None:
        labels = y if is_classifier(estimator) else None
        train, judge = split_rows(X, y, validation_fraction, random_state, labels)
        self.models: dict[float, Any] = {}
        self.points: list[Point] = []
        self._bar = bar
        if sample_weight is not None and np.shape(sample_weight) != (len(train) + len(judge),):
            raise InputError(
                f"sample_weight must have one number a row, got shape {np.shape(sample_weight)} for "
                f"{len(train) + len(judge)} rows; pass one weight a row."
            )
        weights = None if sample_weight is None else take(sample_weight, train)
        self._prepared = Prepared(estimator, take(X, train), take(y, train), weights)
        self._judging = take(X, judge), take(y, judge)
        self._judge = self._prepared.judge(self._judging[0])

    @property
    def frontier(self) -> Frontier:
        """Every gamma that was tried."""
        return Frontier(tuple(self.points))

    def measured(self, gamma: float) -> Mapping[str, float]:
        """Train at a gamma and judge."""
        model = self._prepared.trained(gamma)
        measures = measures_of(model, *self._judging, self._judge)
        self.models[gamma] = model
        self.points.append(Point(gamma, 0, measures))
        self._bar.update()
        self._bar.set_postfix(gamma=f"{gamma:.3g}", **{name: f"{value:.3g}" for name, value in measures.items()})
        return measures

    def search(self, measure: str, tolerance: float, low: float, high: float, max_trials: int) -> Choice:
        """Train without a penalty, then bisect for the largest gamma within a tolerance.

        With ``measure="penalty"`` the tolerance bounds the penalty, and the smallest gamma that meets it is chosen.
        """
        if measure == "penalty":
            return self._search_bounded(positive(tolerance, "tolerance"), low, high, max_trials)
        tolerance = non_negative(tolerance, "tolerance")
        free = self.measured(0.0)[measure]

        def allowed(value: float) -> bool:
            return value <= free * (1 + tolerance) if measure == "loss" else value >= free - tolerance

        return largest_allowed_gamma(lambda gamma: self.measured(gamma)[measure], allowed, low, high, max_trials)

    def _search_bounded(self, bound: float, low: float, high: float, max_trials: int) -> Choice:
        if "penalty" not in self.measured(0.0):
            raise InputError(
                "There is no penalty to bound where no independence is to be kept; name protected columns."
            )
        largest_allowed_gamma(
            lambda gamma: self.measured(gamma)["penalty"], lambda value: value > bound, low, high, max_trials
        )
        penalties = {point.gamma: point.measures["penalty"] for point in self.points}
        if min(penalties.values()) > bound:
            # Does the penalty still fall where the interval ends?
            near = max(low, high / 10)
            penalties[near] = self.measured(near)["penalty"]
        meeting = [gamma for gamma, penalty in penalties.items() if penalty <= bound]
        if meeting:
            return Choice(min(meeting), "")
        falls = penalties[high] < _STILL_FALLS * penalties[near]
        remark = (
            f"Even gamma {high:g} does not meet the bound {bound:g}: the least penalty reached is "
            f"{min(penalties.values()):.3g}, and a bound below what a constant prediction has cannot be met; "
            f"{'raise high' if falls else 'the penalty no longer falls, so raise the bound'}."
        )
        return Choice(high, remark)


def measures_of(model: Any, X: Any, y: Any, operator: Operator | None = None) -> dict[str, float]:
    """Loss, score and penalty of a fitted model on held-out rows, by an operator on them if one is at hand."""
    if is_classifier(model):
        labels = np.asarray(y)
        places = np.searchsorted(model.classes_, labels).clip(max=len(model.classes_) - 1)
        # A class that training has not seen has no probability.
        seen = model.predict_proba(X)[np.arange(len(labels)), places] * (model.classes_[places] == labels)
        loss = float(-np.log(np.clip(seen, 1e-12, None)).mean())
    else:
        loss = float(mean_squared_error(y, model.predict(X)))
    measures = {"loss": loss, "score": float(model.score(X, y))}
    if model.independence_ is not None:
        measures["penalty"] = model.penalty_value(X, operator=operator)
    return measures
