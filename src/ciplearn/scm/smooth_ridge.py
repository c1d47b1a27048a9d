"""The default regressor: smooth where there is data, linear where there is none."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ciplearn.scm.kinds import Array

# Rows that the kernel's width is chosen on.
_CHOICE_ROWS = 1000

# Rows predicted at a time: few enough to stay in the processor's cache.
_BLOCK = 8192


class SmoothRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on standardised columns and on features of a Gaussian kernel exp(−g ‖x − z‖² / c), c columns.

    Both the ridge and g are chosen by leave-one-out error.

    Parameters
    ----------
    n_components : int
        Kernel features.
    widths : tuple of float
        Values of g to choose from.
    """

    def __init__(self, n_components: int = 100, widths: tuple[float, ...] = (0.1, 0.5, 2.0, 8.0)) -> None:
        self.n_components = n_components
        self.widths = widths

    def fit(self, X: Array, y: Array) -> Self:  # (n, c), (n,) or (n, d)
        """Choose g on a part of the rows, then fit all of them."""
        few = np.sort(np.random.default_rng(0).permutation(len(X))[:_CHOICE_ROWS])
        trials = {width: self._pipeline(width, X.shape[1], len(few)).fit(X[few], y[few]) for width in self.widths}
        self.width_ = max(trials, key=lambda width: float(np.mean(trials[width][-1].best_score_)))
        chosen = trials[self.width_]
        if len(few) < len(X):
            chosen = self._pipeline(self.width_, X.shape[1], len(X)).fit(X, y)
        self._fold(chosen)
        return self

    def predict(self, X: Array) -> Array:  # (n, c) -> (n,) or (n, d)
        """Predict some rows."""
        return np.concatenate([self._predict(X[start : start + _BLOCK]) for start in range(0, len(X), _BLOCK)])

    def _predict(self, X: Array) -> Array:
        # Kernel features times coefficients, with the map between them folded in: one product less than the pipeline.
        rows = (X - self._mean) / self._spread
        squares = np.square(rows).sum(axis=1)[:, None] - 2 * rows @ self._centres.T + self._norms
        kernel = np.exp(np.minimum(-self._gamma * squares, 0.0))
        return np.asarray(rows @ self._slope + kernel @ self._weights + self._level)

    def _fold(self, pipeline: Pipeline) -> None:
        scaler, features, ridge = pipeline[0], pipeline[1], pipeline[2]
        nystroem = features.transformer_list[1][1]
        self._mean, self._spread = scaler.mean_, scaler.scale_
        self._centres, self._gamma = nystroem.components_, nystroem.gamma
        self._norms = np.square(self._centres).sum(axis=1)
        coefficients = ridge.coef_.T
        columns = len(self._mean)
        self._slope, self._weights = coefficients[:columns], nystroem.normalization_.T @ coefficients[columns:]
        self._level = ridge.intercept_

    def _pipeline(self, width: float, columns: int, n: int) -> Pipeline:
        kernel = Nystroem(gamma=width / columns, n_components=min(self.n_components, n), random_state=0)
        features = FeatureUnion([("linear", FunctionTransformer()), ("kernel", kernel)])
        return make_pipeline(StandardScaler(), features, RidgeCV(alphas=np.logspace(-7, 2, 19)))
