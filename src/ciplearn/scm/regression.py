"""Additive noise around any scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm.design import Design
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.smooth_ridge import SmoothRidge
from ciplearn.scm.specification import NodeSample, Score, Specification, explained


@dataclass(frozen=True)
class AdditiveNoise(Specification):
    """V = m̂(pa) + U with m̂ a fitted regressor and U drawn from its residuals.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        Cloned before it is fitted. Default: `SmoothRidge`, smooth where there is data and linear where there is none.
    """

    regressor: Any = None

    @property
    def label(self) -> str:
        """The regressor's name."""
        return f"additive noise, {'smooth ridge' if self.regressor is None else type(self.regressor).__name__}"

    def fit(self, sample: NodeSample, generator: Generator) -> Mechanism:
        """Fit the regressor and keep its residuals."""
        if isinstance(sample.kind, Categories):
            raise InputError(
                f"{sample.node} holds labels, which additive noise cannot make; use Multinomial for this node."
            )
        regressor = SmoothRidge() if self.regressor is None else self._cloned()
        regressor.fit(sample.matrix(), sample.target)
        return FittedAdditive.around(RegressionMean(sample.design, regressor, sample.target.ndim == 2), sample)

    def score(self, mechanism: Mechanism, held_out: NodeSample, generator: Generator) -> Score:
        """R², the share of the variance that the parents explain."""
        return explained(held_out, mechanism.recover(held_out.values, held_out.target))

    def _cloned(self) -> Any:
        if not (hasattr(self.regressor, "fit") and hasattr(self.regressor, "predict")):
            raise InputTypeError(
                f"regressor must have fit and predict, got {type(self.regressor).__name__}; pass a scikit-learn "
                "regressor such as LinearRegression()."
            )
        return clone(self.regressor)


@dataclass(frozen=True)
class RegressionMean:
    """m̂(pa), the prediction of a fitted regressor."""

    design: Design
    regressor: Any
    vector: bool

    def __call__(self, parents: Parents) -> Array:  # (n,) or (n, d)
        """Return the prediction for some rows."""
        predicted = np.asarray(self.regressor.predict(self.design(parents)), dtype=np.float64)
        return predicted.reshape(len(predicted), -1) if self.vector else predicted.reshape(len(predicted))


@dataclass(frozen=True)
class FittedAdditive(Mechanism):
    """V = m̂(pa) + U, U from the residuals."""

    mean: Callable[[Parents], Array]
    residuals: Array

    @classmethod
    def around(cls, mean: Callable[[Parents], Array], sample: NodeSample) -> FittedAdditive:
        """Keep the residuals of a fitted mean, centred."""
        residuals = sample.target - mean(sample.values)
        return cls(mean, residuals - residuals.mean(axis=0))

    def draw(self, n: int, generator: Generator) -> Array:
        """Residuals, with replacement."""
        return np.asarray(self.residuals[generator.integers(len(self.residuals), size=n)])

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """m̂(pa) + u."""
        return noise if len(noise) == 0 else self.mean(parents) + noise

    def recover(self, parents: Parents, value: Array) -> Array:
        """V − m̂(pa)."""
        return value if len(value) == 0 else value - self.mean(parents)

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Return the one noise that fits."""
        return self.recover(parents, value)
