"""Noise that moves or stretches a node: h(V) = m(pa) + s(pa) U."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.scm.design import Design
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.links import Identity, Link
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.recipe import NodeSample, Recipe, cloned
from ciplearn.scm.smooth_ridge import RidgeSystem, SmoothFeatures, SmoothFunction

# Bumps of a mean and of a scale, and the widths to choose from.
CENTRES = 100
WIDTHS = (0.1, 0.5, 2.0, 8.0)

# Steps of the regression for the scale, and the most that log s may move in one.
_SCALE_STEPS = 10
_LARGEST_STEP = 1.0

# Rows weigh between one over this and this in the second regression for the mean.
_LARGEST_WEIGHT = 30.0

# A scale below this share of its mean is a rounding error.
_LEAST_SCALE = 1e-6
# Residuals below this are none: their squares are zero.
_SMALLEST = 1e-150

# m(pa) and s(pa), each of the target's shape; None stands for a scale of 1.
Moments = Callable[[Parents], tuple[Array, Array | None]]


@dataclass(frozen=True)
class AdditiveNoise(Recipe):
    """h(V) = m̂(pa) + U with m̂ a fitted regressor and U drawn from its residuals.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        Cloned before it is fitted. Default: a smooth ridge regression, linear where there is no data.
    link : Link
        h; the identity by default. On a `Log` scale the noise is a factor.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from ciplearn import datasets, fit_scm
    >>> from ciplearn.scm import AdditiveNoise
    >>> world = datasets.applicants()
    >>> straight = AdditiveNoise(LinearRegression())
    >>> scm = fit_scm(world.graph, world.sample(300, random_state=0), mechanisms={"hours": straight}, random_state=0)
    >>> next(fit.mechanism for fit in scm.report.nodes if fit.node == "hours")
    'additive noise, LinearRegression'
    """

    regressor: Any = None
    link: Link = field(default_factory=Identity)

    @property
    def label(self) -> str:
        """The link's and the regressor's name."""
        name = "" if self.regressor is None else f", {type(self.regressor).__name__}"
        return f"{self.link.prefix}additive noise{name}"

    def fit(self, sample: NodeSample, generator: Generator) -> FittedLocationScale:
        """Fit the regressor and keep its residuals."""
        target = _linked(sample, self.link)
        if self.regressor is None:
            features = sample.smoother.features(target.reshape(sample.n, -1), WIDTHS, CENTRES)
            return self._smooth(features, sample, target)
        regressor = cloned(self.regressor, "regressor", "predict", "LinearRegression")
        regressor.fit(sample.matrix, target)
        around = RegressorMoments(sample.design, regressor, target.ndim == 2)
        return FittedLocationScale.centred(self.link, around, target - around(sample.values)[0], sample.node)

    def refit(self, fitted: FittedLocationScale, sample: NodeSample, generator: Generator) -> FittedLocationScale:
        """Fit to more rows, with the bumps of the first fit."""
        if self.regressor is not None:
            return self.fit(sample, generator)
        return self._smooth(_smooth_moments(fitted).mean.features(), sample, _linked(sample, self.link))

    def _smooth(self, features: SmoothFeatures, sample: NodeSample, target: Array) -> FittedLocationScale:
        # Leave-one-out residuals are as large as those of new rows.
        coefficients, level, residuals = RidgeSystem(features(sample.matrix)).fit(target.reshape(sample.n, -1))
        mean = features.function(coefficients, level)
        moments = SmoothMoments(sample.design, mean, None, -np.inf, np.inf, target.ndim == 2)
        return FittedLocationScale.centred(self.link, moments, residuals.reshape(target.shape), sample.node)


@dataclass(frozen=True)
class LocationScale(Recipe):
    """h(V) = m̂(pa) + ŝ(pa) U with ŝ > 0 and U drawn from the standardised residuals.

    ŝ is a gamma regression of the absolute residuals with a log link; m̂ is then fitted again with the weights 1 / ŝ².
    Each number of a vector has a scale of its own, and the residuals of a row stay together.

    Parameters
    ----------
    link : Link
        h; the identity by default.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> from ciplearn.scm import LocationScale
    >>> world = datasets.applicants()
    >>> rows = world.sample(300, random_state=0)
    >>> scm = fit_scm(world.graph, rows, mechanisms={"hours": LocationScale()}, random_state=0)
    >>> next(fit.mechanism for fit in scm.report.nodes if fit.node == "hours")
    'location-scale noise'
    """

    link: Link = field(default_factory=Identity)

    @property
    def label(self) -> str:
        """The link's name."""
        return f"{self.link.prefix}location-scale noise"

    def fit(self, sample: NodeSample, generator: Generator) -> FittedLocationScale:
        """Fit mean, scale, and the mean again."""
        return self.around(AdditiveNoise(link=self.link).fit(sample, generator), sample)

    def refit(self, fitted: FittedLocationScale, sample: NodeSample, generator: Generator) -> FittedLocationScale:
        """Fit to more rows, with the bumps of the first fit."""
        log_scale = _smooth_moments(fitted).log_scale
        assert log_scale is not None
        additive = AdditiveNoise(link=self.link).refit(fitted, sample, generator)
        return self.around(additive, sample, log_scale.features())

    def around(
        self, additive: FittedLocationScale, sample: NodeSample, scale_features: SmoothFeatures | None = None
    ) -> FittedLocationScale:
        """Give a scale to additive noise that was fitted to the same rows with the same link and no regressor."""
        target = self.link.forward(sample.target)
        matrix, columns = sample.matrix, target.reshape(sample.n, -1)
        scales = _ScaleRegression.of(sample, additive.residuals.reshape(sample.n, -1), scale_features)
        rough = scales.log_scale(additive.residuals.reshape(sample.n, -1))(matrix)
        # A vector shares the weights of its rows: one system of equations for all its numbers.
        weights = 1 / np.square(np.exp(rough)).mean(axis=1)
        usual = np.median(weights)
        weights = weights.clip(usual / _LARGEST_WEIGHT, usual * _LARGEST_WEIGHT)
        features = _smooth_moments(additive).mean.features()
        coefficients, level, residuals = RidgeSystem(features(matrix), weights).fit(columns)
        log_scale = scales.log_scale(residuals)
        seen = log_scale(matrix)
        moments = SmoothMoments(
            sample.design,
            features.function(coefficients, level),
            log_scale,
            float(seen.min()),
            float(seen.max()),
            vector=target.ndim == 2,
        )
        return FittedLocationScale(self.link, moments, (residuals / np.exp(seen)).reshape(target.shape), sample.node)


def _linked(sample: NodeSample, link: Link) -> Array:
    if isinstance(sample.kind, Categories):
        raise InputError(
            f"{sample.node} holds labels, which additive noise cannot make; use Multinomial for this node."
        )
    link.check(sample.target, sample.node)
    return link.forward(sample.target)


def _smooth_moments(fitted: FittedLocationScale) -> SmoothMoments:
    assert isinstance(fitted.moments, SmoothMoments)
    return fitted.moments


@dataclass(frozen=True)
class _ScaleRegression:
    """Gamma regressions with a log link, E|r| = exp η(x), on the same features."""

    features: SmoothFeatures
    rows: Array  # (n, p), the features
    system: RidgeSystem

    @classmethod
    def of(cls, sample: NodeSample, residuals: Array, features: SmoothFeatures | None) -> _ScaleRegression:  # (n, d)
        if features is None:
            size, usual = _size(residuals)
            # The logarithm is what is regressed; a little more keeps residuals of nothing from choosing the features.
            features = sample.smoother.features(np.log(size / usual + 0.003), WIDTHS, CENTRES)
        rows = features(sample.matrix)
        return cls(features, rows, RidgeSystem(rows))

    def log_scale(self, residuals: Array) -> SmoothFunction:  # (n, d)
        """Return η: each step is a ridge regression of η + |r| e^−η − 1."""
        size, usual = _size(residuals)
        eta = np.broadcast_to(np.log(usual), size.shape)
        ridge, _ = self.system.best_ridge(size / usual)
        for step in range(_SCALE_STEPS):
            working = eta + (size * np.exp(-eta) - 1).clip(max=4.0)
            if step == _SCALE_STEPS // 2:
                ridge, _ = self.system.best_ridge(working)
            coefficients, level = self.system.solve(working, ridge)
            eta = eta + (self.rows @ coefficients + level - eta).clip(-_LARGEST_STEP, _LARGEST_STEP)
        return self.features.function(coefficients, level)


def _size(residuals: Array) -> tuple[Array, Array]:  # (n, d) -> (n, d), (d,)
    """Return absolute residuals and their means."""
    size = np.abs(residuals)
    usual = size.mean(axis=0)
    # Residuals of a node that never varies are zero: any unit does.
    usual = np.where(usual > _SMALLEST, usual, 1.0)
    return np.maximum(size, _LEAST_SCALE * usual), usual


@kept
@dataclass(frozen=True)
class SmoothMoments:
    """m̂(pa) and ŝ(pa) as smooth functions; log ŝ stays between the values it took on the rows of the fit."""

    design: Design
    mean: SmoothFunction
    log_scale: SmoothFunction | None
    low: float
    high: float
    vector: bool

    def __call__(self, parents: Parents) -> tuple[Array, Array | None]:
        """Return mean and scale of some rows."""
        matrix = self.design(parents)
        mean = self._shaped(self.mean(matrix))
        if self.log_scale is None:
            return mean, None
        return mean, self._shaped(np.exp(self.log_scale(matrix).clip(self.low, self.high)))

    def _shaped(self, values: Array) -> Array:
        return values if self.vector else values[:, 0]


@dataclass(frozen=True)
class RegressorMoments:
    """m̂(pa), the prediction of a fitted scikit-learn regressor."""

    design: Design
    regressor: Any
    vector: bool

    def __call__(self, parents: Parents) -> tuple[Array, None]:
        """Return the prediction for some rows."""
        predicted = np.asarray(self.regressor.predict(self.design(parents)), dtype=np.float64)
        return predicted.reshape(len(predicted), -1) if self.vector else predicted.reshape(len(predicted)), None


@kept
@dataclass(frozen=True)
class FittedLocationScale(Mechanism):
    """h(V) = m̂(pa) + ŝ(pa) U, U from the residuals."""

    link: Link
    moments: Moments
    residuals: Array  # (n,) or (n, d)
    node: str = "A node"  # files of an earlier version do not name it

    @classmethod
    def centred(cls, link: Link, moments: Moments, residuals: Array, node: str) -> FittedLocationScale:
        """Keep the residuals around their mean."""
        return cls(link, moments, residuals - residuals.mean(axis=0), node)

    def draw(self, n: int, generator: Generator) -> Array:
        """Residuals, with replacement."""
        return np.asarray(self.residuals[generator.integers(len(self.residuals), size=n)])

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """h⁻¹(m̂(pa) + ŝ(pa) u)."""
        if len(noise) == 0:
            return noise
        mean, scale = self.moments(parents)
        return self.link.back(mean + (noise if scale is None else scale * noise))

    def recover(self, parents: Parents, value: Array) -> Array:
        """(h(V) − m̂(pa)) / ŝ(pa)."""
        if len(value) == 0:
            return value
        self.link.check(value, self.node)
        mean, scale = self.moments(parents)
        left = self.link.forward(value) - mean
        return left if scale is None else left / scale

    def quantiles(self, parents: Parents, levels: Array) -> Array:  # (k,) -> (n, k) or (n, d, k)
        """Push the quantiles of the residuals through the equation."""
        return self.at(parents, np.quantile(self.residuals, levels, axis=0).T)

    def at(self, parents: Parents, noise: Array) -> Array:  # (k,), (d, k) or (n, k) -> (n, k) or (n, d, k)
        """Return the values at several noises of each row."""
        mean, scale = self.moments(parents)
        return self.link.back(mean[..., None] + (noise if scale is None else scale[..., None] * noise))

    def ranks(self, parents: Parents, value: Array, generator: Generator) -> Array:  # (n,) or (n, d)
        """Return the places of the noises among the residuals."""
        noise = self.recover(parents, value)
        columns, law = noise.reshape(len(noise), -1), self.residuals.reshape(len(self.residuals), -1)
        below = [np.searchsorted(np.sort(law[:, c]), columns[:, c]) for c in range(columns.shape[1])]
        return ((np.stack(below, axis=1) + 0.5) / (len(law) + 1)).reshape(noise.shape)
