"""`GammaSearch`: the largest gamma that a tolerance on predictive performance allows."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing as take
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import non_negative, positive
from ciplearn.learning.frontier import Frontier, Point
from ciplearn.learning.gamma import largest_allowed_gamma
from ciplearn.penalties import Operator

_MEASURES = ("loss", "score", "penalty")


class GammaSearch(MetaEstimatorMixin, BaseEstimator):
    """The paper's procedure: train without a penalty, fix what may be lost, bisect for the largest gamma within that.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With its roles; its gamma is replaced.
    tolerance : float
        With ``measure="loss"`` the largest relative increase of the loss, with ``"score"`` the largest drop of R² or
        accuracy; with ``"penalty"`` a bound on the penalty itself, and the smallest gamma that meets it is sought.
    measure : "loss", "score" or "penalty", optional
        By default the loss for regression and the accuracy for classification.
    low, high : float
        Ends of the search.
    max_trials : int
        The largest number of gammas to try.
    validation_fraction : float
        Share of the rows that judge; training never sees them.
    refit : bool
        Train once more on all rows with the chosen gamma.
    verbose : bool
        Show a progress bar.
    random_state : int or None
        Of the split.

    Attributes
    ----------
    best_gamma_ : float
        0 if even the smallest gamma is beyond the tolerance.
    best_estimator_ : estimator
    base_score_ : float
        The measure without a penalty.
    frontier_ : Frontier
        Every gamma that was tried, 0 included: loss, score and penalty on the validation rows.
    remark_ : str
        What to know about the ends of the interval; empty if nothing.
    """

    def __init__(
        self,
        estimator: Any,
        tolerance: float = 0.10,
        measure: str | None = None,
        low: float = 1e-4,
        high: float = 1e4,
        max_trials: int = 12,
        validation_fraction: float = 0.2,
        refit: bool = True,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.tolerance = tolerance
        self.measure = measure
        self.low = low
        self.high = high
        self.max_trials = max_trials
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search on a split of the rows, then train on all of them."""
        measure = self._settled_measure()
        tolerance = (
            positive(self.tolerance, "tolerance") if measure == "penalty" else non_negative(self.tolerance, "tolerance")
        )
        labels = y if is_classifier(self.estimator) else None
        fit_rows, judge_rows = train_test_split(
            np.arange(len(X)), test_size=self.validation_fraction, random_state=self.random_state, stratify=labels
        )
        judge_X, judge_y = take(X, judge_rows), take(y, judge_rows)
        judges: list[Operator] = []  # at most one: all trials share rows, roles and encoding
        points: list[Point] = []
        models: dict[float, Any] = {}
        with tqdm(total=self.max_trials + 1, disable=not self.verbose, unit="fit") as bar:

            def measured(gamma: float) -> Point:
                model = clone(self.estimator).set_params(gamma=gamma)
                model.fit(take(X, fit_rows), take(y, fit_rows), _maybe(sample_weight, fit_rows))
                models[gamma] = model
                if model.independence_ is not None and not judges:
                    judges.append(model.penalty_operator(judge_X))
                points.append(Point(gamma, 0, measures_of(model, judge_X, judge_y, *judges)))
                bar.update()
                bar.set_postfix(gamma=f"{gamma:.3g}", **{name: f"{v:.3g}" for name, v in points[-1].measures.items()})
                return points[-1]

            base = measured(0.0).measures[measure]
            choice = largest_allowed_gamma(
                lambda gamma: measured(gamma).measures[measure],
                _rule(measure, base, tolerance),
                self.low,
                self.high,
                self.max_trials,
            )
        self.base_score_ = base
        self.best_gamma_ = choice.gamma
        self.remark_ = choice.remark
        if measure == "penalty":
            # Here larger gammas are the allowed ones, and the smallest of them costs least.
            meeting = [trial.gamma for trial in choice.trials if not trial.allowed]
            self.best_gamma_ = min(meeting) if meeting else self.high
            self.remark_ = (
                "" if meeting else f"Even gamma {self.high:g} does not meet the bound {tolerance:g}; raise high."
            )
        if self.remark_:
            warnings.warn(self.remark_, UserWarning, stacklevel=2)
        self.frontier_ = Frontier(tuple(points))
        self.best_estimator_ = models[self.best_gamma_]
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(gamma=self.best_gamma_)
            self.best_estimator_.fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """R² or accuracy of the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y)

    def _settled_measure(self) -> str:
        if self.measure is None:
            return "score" if is_classifier(self.estimator) else "loss"
        if self.measure not in _MEASURES:
            raise InputError(f"measure must be one of {', '.join(_MEASURES)}, got {self.measure!r}; pass one of these.")
        return self.measure

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags


def measures_of(model: Any, X: Any, y: Any, operator: Operator | None = None) -> dict[str, float]:
    """Loss, score and penalty of a fitted model on held-out rows, by an operator on them if one is at hand."""
    if is_classifier(model):
        seen = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, np.asarray(y))]
        loss = float(-np.log(np.clip(seen, 1e-12, None)).mean())
    else:
        loss = float(mean_squared_error(y, model.predict(X)))
    measures = {"loss": loss, "score": float(model.score(X, y))}
    if model.independence_ is not None:
        measures["penalty"] = model.penalty_value(X, operator=operator)
    return measures


def _rule(measure: str, base: float, tolerance: float) -> Any:
    if measure == "loss":
        return lambda value: value <= base * (1 + tolerance)
    if measure == "score":
        return lambda value: value >= base - tolerance
    return lambda value: value > tolerance


def _maybe(weights: Any, rows: np.ndarray) -> Any:
    return None if weights is None else take(weights, rows)
