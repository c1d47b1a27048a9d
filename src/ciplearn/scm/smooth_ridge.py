"""The default regression: smooth where there is data, linear where there is none.

A function of the parents is a linear function plus a combination of Gaussian bumps,

    f(x) = b + xᵀ slope + Σ_j weight_j exp(−g ‖x − c_j‖²),

with centres c_j among the rows. Ridge regression on such features needs one eigendecomposition of their covariance;
every strength of the ridge, every target and every leave-one-out error then costs a product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ciplearn.scm.kinds import Array

# Rows that the width of the bumps is chosen on.
_CHOICE_ROWS = 2000

# Rows predicted at a time: few enough to stay in the processor's cache.
_BLOCK = 2048

# Rounds in which columns are stretched by their relevance, and the least that is left of a column.
_STRETCHES = 3
_LEAST_RELEVANCE = 0.02

# Strengths of the ridge, relative to the mean variance of a feature.
_RIDGES = np.logspace(-8, 1, 13)

# Eigenvalues of the bumps' Gram matrix below this share of the largest are rounding errors.
_RANK = 1e-10


@dataclass(frozen=True)
class SmoothFunction:
    """f(x) = level + xᵀ slope + Σ_j weight_j exp(−g ‖x − c_j‖²), x standardised; several outputs share the bumps."""

    mean: Array  # (c,)
    spread: Array  # (c,)
    centres: Array  # (m, c)
    bump: float  # g
    slope: Array  # (c, k)
    weights: Array  # (m, k)
    level: Array  # (k,)

    def __call__(self, matrix: Array) -> Array:  # (n, c) -> (n, k)
        """Return the outputs of some rows."""
        values = np.empty((len(matrix), len(self.level)))
        # ‖x − c‖² = ‖x‖² − 2 xᵀc + ‖c‖² as one product: exp is then the only pass over the bumps.
        corners = np.vstack([2 * self.bump * self.centres.T, -self.bump * np.square(self.centres).sum(axis=1)])
        for start in range(0, len(matrix), _BLOCK):
            rows = (matrix[start : start + _BLOCK] - self.mean) / self.spread
            exponent = np.column_stack([rows, np.ones(len(rows))]) @ corners
            exponent -= self.bump * np.square(rows).sum(axis=1)[:, None]
            np.exp(np.minimum(exponent, 0.0, out=exponent), out=exponent)
            values[start : start + _BLOCK] = exponent @ self.weights + rows @ self.slope + self.level
        return values

    def features(self) -> SmoothFeatures:
        """Return the features that this is a linear function of."""
        return SmoothFeatures.around(self.mean, self.spread, self.centres, self.bump)

    def bends(self, matrix: Array) -> Array:  # (n, c) -> (c,)
        """Return the standard deviation of ∂f/∂x over some rows: 0 for a column in which f is a line with one slope."""
        rows = (matrix - self.mean) / self.spread
        bumps = _bumps(rows, self.centres, self.bump)
        total = np.zeros(rows.shape[1])
        for weights in self.weights.T:
            # ∂/∂x Σ_j w_j exp(−g ‖x − c_j‖²) = −2 g (x Σ_j w_j k_j − Σ_j w_j k_j c_j)
            steep = bumps @ weights
            total += (-2 * self.bump * (rows * steep[:, None] - (bumps * weights) @ self.centres)).var(axis=0)
        return np.asarray(np.sqrt(total))


@dataclass(frozen=True)
class SmoothFeatures:
    """Standardised columns, and the bumps made orthogonal: what the ridge regression sees."""

    mean: Array
    spread: Array
    centres: Array
    bump: float
    whiten: Array  # (m, r)

    @classmethod
    def of(cls, matrix: Array, width: float, n_centres: int, relevance: Array | None = None) -> Self:
        """Read scales off the rows, and take some of them as centres.

        A column of zeros and ones is the indicator of a label and keeps its unit: divided by its spread, a rare label
        would be far from every other row. ``relevance`` stretches the columns.
        """
        indicator = ((matrix == 0) | (matrix == 1)).all(axis=0)
        spread = matrix.std(axis=0)
        spread = np.where(indicator | (spread == 0), 1.0, spread)
        spread = spread if relevance is None else spread / relevance
        mean = matrix.mean(axis=0)
        rows = np.random.default_rng(0).permutation(len(matrix))
        centres = (matrix[rows[: 2 * n_centres]] - mean) / spread
        centres = np.unique(centres, axis=0) if n_centres else centres
        if len(centres) > n_centres:
            centres = centres[np.sort(np.random.default_rng(1).permutation(len(centres))[:n_centres])]
        return cls.around(mean, spread, centres, width / matrix.shape[1])

    @classmethod
    def around(cls, mean: Array, spread: Array, centres: Array, bump: float) -> Self:
        """Return the features with bumps around some centres."""
        values, vectors = np.linalg.eigh(_bumps(centres, centres, bump))
        kept = values > _RANK * values.max(initial=0.0)
        return cls(mean, spread, centres, bump, vectors[:, kept] / np.sqrt(values[kept]))

    def __call__(self, matrix: Array) -> Array:  # (n, c) -> (n, c + r)
        """Return the features of some rows."""
        rows = (matrix - self.mean) / self.spread
        return np.hstack([rows, _bumps(rows, self.centres, self.bump) @ self.whiten])

    def function(self, coefficients: Array, level: Array) -> SmoothFunction:  # (c + r, k), (k,)
        """Return the function with these coefficients."""
        columns = len(self.mean)
        weights = self.whiten @ coefficients[columns:]
        slope = coefficients[:columns]
        return SmoothFunction(self.mean, self.spread, self.centres, self.bump, slope, weights, level)


def _bumps(rows: Array, centres: Array, bump: float) -> Array:  # (n, m)
    squares = np.square(rows).sum(axis=1)[:, None] - 2 * rows @ centres.T + np.square(centres).sum(axis=1)
    return np.asarray(np.exp(-bump * np.maximum(squares, 0.0)))


class RidgeSystem:
    """Weighted ridge regressions on the same features and weights: min Σ w (y − b − φᵀβ)² + n ridge |β|².

    Attributes
    ----------
    features : array of shape (n, p)
    weights : array of shape (n,)
        With mean 1.
    """

    def __init__(self, features: Array, weights: Array | None = None) -> None:
        n = len(features)
        self.weights = np.ones(n) if weights is None else weights / weights.mean()
        self._centre = self.weights @ features / n
        self._root = np.sqrt(self.weights)[:, None]
        rows = (features - self._centre) * self._root
        covariance = rows.T @ rows / n
        self._values, self._vectors = np.linalg.eigh(covariance)
        self._values = np.maximum(self._values, 0.0)
        self._scores = rows @ self._vectors  # (n, p)
        self.scale = float(np.trace(covariance)) / max(1, covariance.shape[0]) or 1.0

    def solve(self, target: Array, ridge: float) -> tuple[Array, Array]:  # (n, k) -> (p, k), (k,)
        """Return coefficients and intercepts."""
        n = len(target)
        middle = self.weights @ target / n
        along = self._scores.T @ ((target - middle) * self._root) / n
        coefficients = self._vectors @ (along / (self._values + ridge * self.scale)[:, None])
        return coefficients, middle - self._centre @ coefficients

    def best_ridge(self, target: Array) -> tuple[float, Array]:  # (n, k) -> ridge, (n, k)
        """Return the ridge with the smallest leave-one-out error, and the leave-one-out residuals that it leaves.

        e_i = (y_i − ŷ_i) / (1 − h_i), with h the diagonal of the hat matrix: exact for fixed features.
        """
        n, k = target.shape
        rows = (target - self.weights @ target / n) * self._root
        along = self._scores.T @ rows / n
        size = np.maximum(np.square(rows).mean(axis=0), np.finfo(float).tiny)
        shrunk = 1 / (self._values[:, None] + _RIDGES * self.scale)  # (p, r)
        leverage = np.minimum((np.square(self._scores) @ shrunk + self.weights[:, None]) / n, 1 - 1e-6)  # (n, r)
        error = np.zeros(len(_RIDGES))
        for place in range(k):
            left = (rows[:, place, None] - self._scores @ (along[:, place, None] * shrunk)) / (1 - leverage)
            error += np.square(left).mean(axis=0) / size[place]
        best = int(error.argmin())
        left = (rows - self._scores @ (along * shrunk[:, best, None])) / (1 - leverage[:, best, None])
        return float(_RIDGES[best]), left / self._root

    def fit(self, target: Array) -> tuple[Array, Array, Array]:  # (n, k) -> (p, k), (k,), (n, k)
        """Return coefficients and intercepts under the best ridge, and its leave-one-out residuals."""
        ridge, errors = self.best_ridge(target)
        return (*self.solve(target, ridge), errors)


def choose_features(matrix: Array, target: Array, widths: tuple[float, ...], n_centres: int) -> SmoothFeatures:
    """Return features whose scales have the smallest leave-one-out error on a part of the rows.

    The width comes first. Then each column is stretched by how much the function found so far bends along it, as in
    recursive feature machines [radhakrishnan2024], as long as that helps: columns that do not matter drop out.
    """  # (n, c), (n, k)
    few = np.sort(np.random.default_rng(0).permutation(len(matrix))[:_CHOICE_ROWS])
    rows, wanted = matrix[few], target[few]

    def tried(width: float, relevance: Array | None) -> tuple[float, SmoothFunction]:
        features = SmoothFeatures.of(rows, width, n_centres, relevance)
        coefficients, level, left = RidgeSystem(features(rows)).fit(wanted)
        return float(np.square(left).mean()), features.function(coefficients, level)

    trials = {width: tried(width, None) for width in widths}
    width = min(trials, key=lambda width: trials[width][0])
    error, function = trials[width]
    relevance = np.ones(matrix.shape[1])
    for _ in range(_STRETCHES if matrix.shape[1] > 1 else 0):
        bends = function.bends(rows) * relevance
        if not bends.max() > 0:
            break
        stretched = np.maximum(bends / bends.max(), _LEAST_RELEVANCE)
        stretched = stretched / np.sqrt(np.square(stretched).mean())
        trials = {trial: tried(trial, stretched) for trial in (width / 2, width, 2 * width)}
        narrower = min(trials, key=lambda width: trials[width][0])
        if trials[narrower][0] >= error:
            break
        (error, function), width, relevance = trials[narrower], narrower, stretched
    return SmoothFeatures.of(matrix, width, n_centres, relevance)
