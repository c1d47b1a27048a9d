"""`GammaSearch`: the largest gamma that a tolerance on predictive performance allows."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.numbers import whole
from ciplearn.causal import Verdict
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.trials import Trials

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
    models_ : mapping from gamma to estimator
        The models of ``frontier_``, trained without the validation rows.
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
        if not isinstance(self.estimator, CIPEstimator):
            kind = type(self.estimator).__name__
            advice = "put the search into the pipeline, as its last step" if kind == "Pipeline" else "pass one"
            raise InputTypeError(f"The search is over a CIPRegressor or CIPClassifier, got {kind}; {advice}.")
        measure = self._settled_measure()
        whole(self.max_trials, "max_trials", minimum=2)
        with tqdm(total=self.max_trials + 1, disable=not self.verbose, unit="fit") as bar:
            trials = Trials(
                self.estimator,
                X,
                y,
                sample_weight,
                validation_fraction=self.validation_fraction,
                random_state=self.random_state,
                bar=bar,
            )
            choice = trials.search(measure, self.tolerance, self.low, self.high, self.max_trials)
        if choice.remark:
            warnings.warn(choice.remark, UserWarning, stacklevel=2)
        self.best_gamma_, self.remark_ = choice.gamma, choice.remark
        self.frontier_, self.models_ = trials.frontier, trials.models
        self.base_score_ = trials.points[0].measures[measure]
        self.best_estimator_ = self.models_[self.best_gamma_]
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(gamma=self.best_gamma_)
            self.best_estimator_.fit(X, y, sample_weight)
        return self

    @property
    def _chosen(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the chosen model."""
        return np.asarray(self._chosen.predict(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of the chosen model."""
        return np.asarray(self._chosen.predict_proba(X))

    def score(self, X: Any, y: Any) -> float:
        """R² or accuracy of the chosen model."""
        return float(self._chosen.score(X, y))

    def penalty_value(self, X: Any) -> float:
        """Return the penalty of the chosen model's predictions on these rows."""
        return float(self._chosen.penalty_value(X))

    @property
    def verdict_(self) -> Verdict | None:
        """What the graph says about the chosen model's independence; None without a graph."""
        verdict: Verdict | None = self._chosen.verdict_
        return verdict

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the chosen model was fitted on."""
        return int(self._chosen.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of these columns; only where a table was passed."""
        return np.asarray(self._chosen.feature_names_in_)

    @property
    def classes_(self) -> np.ndarray:
        """Classes of the chosen model, in the order of its probabilities; only in classification."""
        return np.asarray(self._chosen.classes_)

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
