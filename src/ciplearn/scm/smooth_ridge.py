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
import torch

from ciplearn._core.rows import row_blocks
from ciplearn.kernels.ridge import LeftOut, eigh, inverse_root
from ciplearn.scm.kinds import Array, kept

# Rows that the width of the bumps is chosen on.
CHOICE_ROWS = 2000

# Rows taken at a time: few enough to stay in the processor's cache.
_BLOCK = 2048

# Rounds in which columns are stretched by their relevance, and the least that is left of a column.
_STRETCHES, _LEAST_RELEVANCE = 3, 0.02

# A function bends where its error is below this share of a line's.
_BENT = 0.998

# Strengths of the ridge, relative to the mean variance of a feature.
RIDGES = np.logspace(-8, 1, 13)


@kept
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
        for block in row_blocks(len(matrix), _BLOCK):
            rows = (matrix[block] - self.mean) / self.spread
            values[block] = _bumps(rows, self.centres, self.bump) @ self.weights + rows @ self.slope + self.level
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
        return cls(mean, spread, centres, bump, inverse_root(torch.from_numpy(_bumps(centres, centres, bump))).numpy())

    def __call__(self, matrix: Array) -> Array:  # (n, c) -> (n, c + r)
        """Return the features of some rows."""
        columns, rank = len(self.mean), self.whiten.shape[1]
        features = np.empty((len(matrix), columns + rank))
        for block in row_blocks(len(matrix), _BLOCK):
            rows = (matrix[block] - self.mean) / self.spread
            features[block, :columns] = rows
            features[block, columns:] = _bumps(rows, self.centres, self.bump) @ self.whiten
        return features

    def function(self, coefficients: Array, level: Array) -> SmoothFunction:  # (c + r, k), (k,)
        """Return the function with these coefficients."""
        slope, weights = np.split(coefficients, [len(self.mean)])
        return SmoothFunction(self.mean, self.spread, self.centres, self.bump, slope, self.whiten @ weights, level)

    def regression(
        self, matrix: Array, target: Array, weights: Array | None = None
    ) -> tuple[SmoothFunction, Array]:  # (n, c), (n, k), (n,) -> function, (n, k)
        """Return the ridge regression of a target on rows, and its leave-one-out residuals."""
        coefficients, level, residuals = RidgeSystem(self(matrix), weights).fit(target)
        return self.function(coefficients, level), residuals


def _bumps(rows: Array, centres: Array, bump: float) -> Array:  # (n, m)
    """exp(−g ‖x − c‖²), with ‖x‖² − 2 xᵀc + ‖c‖² as one product: exp is then the only pass over the bumps."""
    corners = np.vstack([2 * bump * centres.T, -bump * np.square(centres).sum(axis=1)])
    exponent = np.column_stack([rows, np.ones(len(rows))]) @ corners
    exponent -= bump * np.square(rows).sum(axis=1)[:, None]
    return np.asarray(np.exp(np.minimum(exponent, 0.0, out=exponent), out=exponent))


def legendre(u: Array) -> Array:  # (n, d), between −1 and 1 -> (n, 3 d)
    """Return the first three Legendre polynomials: shift, spread and asymmetry."""
    return np.hstack([u, (3 * u**2 - 1) / 2, (5 * u**3 - 3 * u) / 2])


class RidgeSystem:
    """Weighted ridge regressions on the same features: min Σ w (y − b − φᵀβ)² + n ridge |β|², w with mean 1."""

    def __init__(self, features: Array, weights: Array | None = None) -> None:  # (n, p), (n,)
        n = len(features)
        self.weights = np.ones(n) if weights is None else weights / weights.mean()
        self._centre = self.weights @ features / n
        self._root = np.sqrt(self.weights)[:, None]
        rows = (features - self._centre) * self._root
        values, vectors = eigh(torch.from_numpy(rows.T @ rows))
        self._vectors = vectors.numpy()
        self._scores = rows @ self._vectors  # (n, p)
        # The mean variance of a feature is the unit of the ridge.
        self.scale = float(values.sum()) / n / max(1, len(values)) or 1.0
        self._regressions = LeftOut(
            torch.from_numpy(self._scores),
            values,
            torch.from_numpy(n * self.scale * RIDGES),
            torch.from_numpy(self.weights / n),  # a row's share of the intercept
        )

    def solve(self, target: Array, ridge: int) -> tuple[Array, Array]:  # (n, k) -> (p, k), (k,)
        """Return coefficients and intercepts under one of the ridges."""
        rows, middle = self._centred(target)
        coefficients = self._vectors @ (self._regressions.inverse[:, ridge, None].numpy() * (self._scores.T @ rows))
        return coefficients, middle - self._centre @ coefficients

    def best_ridge(self, target: Array) -> tuple[int, Array]:  # (n, k) -> number of the ridge, (n, k)
        """Return the ridge with the smallest leave-one-out error, and the leave-one-out residuals that it leaves."""
        rows = torch.from_numpy(self._centred(target)[0])
        cross = self._regressions.scores.T @ rows
        size = rows.square().mean(dim=0).clamp_min(np.finfo(float).tiny)
        best = int((self._regressions.errors(rows, cross) / size).sum(dim=1).argmin())
        return best, self._regressions.residuals(rows, cross, best).numpy() / self._root

    def fit(self, target: Array) -> tuple[Array, Array, Array]:  # (n, k) -> (p, k), (k,), (n, k)
        """Return coefficients and intercepts under the best ridge, and its leave-one-out residuals."""
        ridge, errors = self.best_ridge(target)
        return (*self.solve(target, ridge), errors)

    def _centred(self, target: Array) -> tuple[Array, Array]:  # (n, k) -> (n, k), (k,)
        middle = self.weights @ target / len(target)
        return (target - middle) * self._root, middle


class Smoother:
    """Smooth regressions of many targets on one matrix: what no target changes is decomposed once."""

    def __init__(self, matrix: Array) -> None:  # (n, c)
        self.matrix = matrix
        self._few = np.sort(np.random.default_rng(0).permutation(len(matrix))[:CHOICE_ROWS])
        self._unstretched: dict[tuple[float, int], _Trial] = {}

    def features(self, target: Array, widths: tuple[float, ...], n_centres: int) -> SmoothFeatures:  # (n, k)
        """Return features whose scales have the smallest leave-one-out error on a part of the rows.

        Where bumps do not help a line, there are none. Else the width comes first. Then each column is stretched by how
        much the function so far bends along it, as in recursive feature machines [radhakrishnan2024], as long as that
        helps: columns that do not matter drop out.
        """
        rows, wanted = self.matrix[self._few], target[self._few]
        line = self._plain(1.0, 0).error(wanted)
        errors = {width: self._plain(width, n_centres).error(wanted) for width in widths}
        width = min(errors, key=errors.__getitem__)
        error, best = errors[width], self._plain(width, n_centres)
        relevance = np.ones(rows.shape[1])
        for _ in range(_STRETCHES if rows.shape[1] > 1 else 0):
            bends = best.function(wanted).bends(rows) * relevance
            if not bends.max() > 0:
                break
            stretched = np.maximum(bends / bends.max(), _LEAST_RELEVANCE)
            stretched = stretched / np.sqrt(np.square(stretched).mean())
            # Among many columns a bend shows only once they are stretched, so one trial is always worth it.
            widths = (width / 2, width, 2 * width) if error < _BENT * line else (width,)
            trials = {trial: _Trial(rows, trial, n_centres, stretched) for trial in widths}
            errors = {trial: made.error(wanted) for trial, made in trials.items()}
            nearest = min(errors, key=errors.__getitem__)
            if errors[nearest] >= error:
                break
            error, best, width, relevance = errors[nearest], trials[nearest], nearest, stretched
        if error >= _BENT * line:
            # Bumps that do not help would still extrapolate.
            return SmoothFeatures.of(self.matrix, 1.0, 0)
        return SmoothFeatures.of(self.matrix, width, n_centres, relevance)

    def _plain(self, width: float, n_centres: int) -> _Trial:
        """Features that are not stretched, which serve all targets."""
        if (width, n_centres) not in self._unstretched:
            self._unstretched[width, n_centres] = _Trial(self.matrix[self._few], width, n_centres)
        return self._unstretched[width, n_centres]


class _Trial:
    """Features that compete, on the rows of the competition."""

    def __init__(self, rows: Array, width: float, n_centres: int, relevance: Array | None = None) -> None:
        self.features = SmoothFeatures.of(rows, width, n_centres, relevance)
        self.system = RidgeSystem(self.features(rows))

    def error(self, target: Array) -> float:
        return float(np.square(self.system.best_ridge(target)[1]).mean())

    def function(self, target: Array) -> SmoothFunction:
        return self.features.function(*self.system.fit(target)[:2])
