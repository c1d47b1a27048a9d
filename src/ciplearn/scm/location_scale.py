"""Noise that moves or stretches a node: h(V) = m(pa) + s(pa) U, h an increasing map to the whole line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from ciplearn._core.errors import InputError
from ciplearn.scm.kinds import Array, Categories, kept
from ciplearn.scm.mechanism import Design, Mechanism, MechanismRecipe, NodeSample, Parents, cloned
from ciplearn.scm.smooth_ridge import RidgeSystem, SmoothFunction

# Bumps of a mean and of a scale, and the widths to choose from.
CENTRES = 100
WIDTHS = (0.1, 0.5, 2.0, 8.0)

# Steps of the regression for the scale, and the most that log s may move in one.
_SCALE_STEPS, _LARGEST_STEP = 10, 1.0

# Rows weigh between one over this and this in the second regression for the mean.
_LARGEST_WEIGHT = 30.0

# A scale below this share of its mean is a rounding error; residuals below this are none: their squares are zero.
_LEAST_SCALE, _SMALLEST = 1e-6, 1e-150

# m(pa) and s(pa), each of the target's shape.
Moments = Callable[[Parents], tuple[Array, Array]]


class Link:
    """An increasing h with its inverse on the numbers between two bounds; without more, h(v) = v for all numbers."""

    low: float = -np.inf
    high: float = np.inf
    prefix: ClassVar[str] = ""  # what the report says before the mechanism's name

    def allows(self, values: Array) -> bool:
        """Whether h is finite at all values."""
        return bool(((values > self.low) & (values < self.high)).all())

    def forward(self, values: Array) -> Array:
        """h(v)."""
        return values

    def back(self, line: Array) -> Array:
        """h⁻¹(z)."""
        return line

    def check(self, values: Array, node: str) -> None:
        """Refuse values outside the domain."""
        if not self.allows(values):
            why = f"{node} holds {float(np.min(values)):g} to {float(np.max(values)):g}, beyond what {self!r} can take"
            raise InputError(f"{why}; use another link or mechanism for this node.")


@kept
@dataclass(frozen=True)
class Identity(Link):
    """h(v) = v."""


@kept
@dataclass(frozen=True)
class Log(Link):
    """h(v) = log(v − low): for numbers above a bound, on which noise acts as a factor.

    >>> from ciplearn.scm import AdditiveNoise, Log
    >>> AdditiveNoise(link=Log()).label
    'log scale, additive noise'
    """

    low: float = 0.0
    prefix: ClassVar[str] = "log scale, "

    def forward(self, values: Array) -> Array:
        """log(v − low)."""
        return np.asarray(np.log(values - self.low))

    def back(self, line: Array) -> Array:
        """Low + exp z; beyond exp(700) a double overflows."""
        return np.asarray(self.low + np.exp(np.minimum(line, 700.0)))


@kept
@dataclass(frozen=True)
class Logit(Link):
    """h(v) = log((v − low) / (high − v)): for numbers between two bounds.

    >>> import numpy as np
    >>> from ciplearn.scm import Logit
    >>> Logit(0, 10).back(np.array([0.0]))
    array([5.])
    """

    low: float = 0.0
    high: float = 1.0
    prefix: ClassVar[str] = "logit scale, "

    def forward(self, values: Array) -> Array:
        """log((v − low) / (high − v))."""
        return np.asarray(np.log(values - self.low) - np.log(self.high - values))

    def back(self, line: Array) -> Array:
        """Low + (high − low) / (1 + exp(−z))."""
        return np.asarray(self.low + (self.high - self.low) * expit(line))


@dataclass(frozen=True)
class AdditiveNoise(MechanismRecipe):
    """h(V) = m̂(pa) + U with m̂ a fitted regressor and U drawn from its residuals.

    ``regressor``: of scikit-learn, cloned before it is fitted; by default a smooth ridge regression, linear where there
    is no data. ``link``: h, the identity by default; on a `Log` scale the noise is a factor.

    >>> from sklearn.linear_model import LinearRegression
    >>> from ciplearn.scm import AdditiveNoise
    >>> AdditiveNoise(LinearRegression()).label  # pass it on: fit_scm(graph, rows, mechanisms={"hours": ...})
    'additive noise, LinearRegression'
    """

    regressor: Any = None
    link: Link = field(default_factory=Identity)

    @property
    def label(self) -> str:
        """The link's and the regressor's name."""
        name = "" if self.regressor is None else f", {type(self.regressor).__name__}"
        return f"{self.link.prefix}additive noise{name}"

    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> FittedLocationScale:
        """Fit the regressor and keep its residuals."""
        link = self.link
        if isinstance(sample.kind, Categories):
            raise InputError(f"{sample.node} holds labels, which additive noise cannot make; use Multinomial for it.")
        link.check(sample.target, sample.node)
        target = link.forward(sample.target)
        if self.regressor is not None:
            regressor = cloned(self.regressor, "regressor", "predict", "LinearRegression")
            regressor.fit(sample.matrix, target)
            around = RegressorMoments(sample.design, regressor, target.ndim == 2)
            return FittedLocationScale.centred(link, around, target - around(sample.values)[0], sample.node)
        columns = target.reshape(sample.n, -1)
        features = like.moments.mean.features() if like else sample.smoother.features(columns, WIDTHS, CENTRES)
        # Leave-one-out residuals are as large as those of new rows.
        mean, residuals = features.regression(sample.matrix, columns)
        moments = SmoothMoments(sample.design, mean, None, -np.inf, np.inf, target.ndim == 2)
        return FittedLocationScale.centred(link, moments, residuals.reshape(target.shape), sample.node)


@dataclass(frozen=True)
class LocationScale(MechanismRecipe):
    """h(V) = m̂(pa) + ŝ(pa) U with ŝ > 0 and U drawn from the standardised residuals.

    ŝ is a gamma regression of the absolute residuals with a log link; m̂ is then fitted again with the weights 1 / ŝ².
    Each number of a vector has a scale of its own, and the residuals of a row stay together. ``link``: h; the identity
    by default.

    >>> from ciplearn.scm import LocationScale, Log
    >>> LocationScale(Log()).label
    'log scale, location-scale noise'
    """

    link: Link = field(default_factory=Identity)

    @property
    def label(self) -> str:
        """The link's name."""
        return f"{self.link.prefix}location-scale noise"

    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> FittedLocationScale:
        """Fit mean, scale, and the mean again."""
        additive = sample.fitted(AdditiveNoise(link=self.link), generator, like)
        target, matrix = self.link.forward(sample.target), sample.matrix
        residuals = additive.residuals.reshape(sample.n, -1)
        if like is None:
            size, usual = _size(residuals)
            # The logarithm is what is regressed; a little more keeps residuals of nothing from choosing the features.
            scale_features = sample.smoother.features(np.log(size / usual + 0.003), WIDTHS, CENTRES)
        else:
            scale_features = like.moments.log_scale.features()
        rows = scale_features(matrix)
        system = RidgeSystem(rows)
        rough = scale_features.function(*_gamma_regression(system, rows, residuals))(matrix)
        # A vector shares the weights of its rows: one system of equations for all its numbers.
        weights = 1 / np.square(np.exp(rough)).mean(axis=1)
        usual = np.median(weights)
        weights = weights.clip(usual / _LARGEST_WEIGHT, usual * _LARGEST_WEIGHT)
        mean, residuals = additive.moments.mean.features().regression(matrix, target.reshape(sample.n, -1), weights)
        log_scale = scale_features.function(*_gamma_regression(system, rows, residuals))
        seen = log_scale(matrix)
        low, high = float(seen.min()), float(seen.max())
        moments = SmoothMoments(sample.design, mean, log_scale, low, high, target.ndim == 2)
        return FittedLocationScale(self.link, moments, (residuals / np.exp(seen)).reshape(target.shape), sample.node)


def _gamma_regression(system: RidgeSystem, rows: Array, residuals: Array) -> tuple[Array, Array]:  # (n, p), (n, d)
    """Return coefficients and intercepts of E|r| = exp η(x): each step is a ridge regression of η + |r| e^−η − 1."""
    size, usual = _size(residuals)
    eta = np.broadcast_to(np.log(usual), size.shape)
    ridge, _ = system.best_ridge(size / usual)
    for step in range(_SCALE_STEPS):
        working = eta + (size * np.exp(-eta) - 1).clip(max=4.0)
        if step == _SCALE_STEPS // 2:
            ridge, _ = system.best_ridge(working)
        coefficients, level = system.solve(working, ridge)
        eta = eta + (rows @ coefficients + level - eta).clip(-_LARGEST_STEP, _LARGEST_STEP)
    return coefficients, level


def _size(residuals: Array) -> tuple[Array, Array]:  # (n, d) -> (n, d), (d,)
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

    def __call__(self, parents: Parents) -> tuple[Array, Array]:
        """Return mean and scale of some rows."""
        both = self.design.looked_up(self._of_matrix, parents)(slice(None))
        mean, scale = np.split(both, 2, axis=1)
        return (mean, scale) if self.vector else (mean[:, 0], scale[:, 0])

    def _of_matrix(self, matrix: Array) -> Array:  # (n, 2 d): means, scales
        mean = self.mean(matrix)
        no_log = np.zeros_like(mean)
        scale = np.exp(no_log if self.log_scale is None else self.log_scale(matrix).clip(self.low, self.high))
        return np.hstack([mean, scale])


@dataclass(frozen=True)
class RegressorMoments:
    """m̂(pa), the prediction of a fitted scikit-learn regressor."""

    design: Design
    regressor: Any
    vector: bool

    def __call__(self, parents: Parents) -> tuple[Array, Array]:
        """Return the prediction for some rows, and ones."""
        predicted = np.asarray(self.design.looked_up(self.regressor.predict, parents)(slice(None)), dtype=np.float64)
        mean = predicted.reshape((len(predicted), -1) if self.vector else len(predicted))
        return mean, np.ones_like(mean)


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
        return self.link.back(mean + scale * noise)

    def recover(self, parents: Parents, value: Array) -> Array:
        """(h(V) − m̂(pa)) / ŝ(pa)."""
        if len(value) == 0:
            return value
        self.link.check(value, self.node)
        mean, scale = self.moments(parents)
        return (self.link.forward(value) - mean) / scale

    def quantiles(self, parents: Parents, levels: Array) -> Array:  # (k,) -> (n, k) or (n, d, k)
        """Push the quantiles of the residuals through the equation."""
        return self.at(parents, np.quantile(self.residuals, levels, axis=0).T)

    def at(self, parents: Parents, noise: Array) -> Array:  # (k,), (d, k) or (n, k) -> (n, k) or (n, d, k)
        """Return the values at several noises of each row."""
        mean, scale = self.moments(parents)
        return self.link.back(mean[..., None] + scale[..., None] * noise)

    def ranks(self, parents: Parents, value: Array, generator: Generator) -> Array:  # (n,) or (n, d)
        """Return the places of the noises among the residuals."""
        noise = self.recover(parents, value)
        columns, law = noise.reshape(len(noise), -1), self.residuals.reshape(len(self.residuals), -1)
        below = [np.searchsorted(np.sort(law[:, c]), columns[:, c]) for c in range(columns.shape[1])]
        return ((np.stack(below, axis=1) + 0.5) / (len(law) + 1)).reshape(noise.shape)
