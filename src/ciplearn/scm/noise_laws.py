"""Noise laws: what a node's noise is drawn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm.kinds import Array, Kind, Vector

# A discrete law with more atoms than this is sampled, not enumerated.
MAX_ATOMS = 4096


class Law(ABC):
    """A distribution of one node's noise."""

    @abstractmethod
    def draw(self, n: int, generator: Generator) -> Array:  # (n,) or (n, d)
        """Draw n independent rows of noise."""

    def log_density(self, noise: Array) -> Array | None:  # (n,) or (n, d) -> (n,)
        """Return the log density of each row, or None where the law has none to offer."""
        return None

    def atoms(self) -> tuple[Array, Array] | None:
        """Return every value and its probability if there are finitely many, else None."""
        return None


@dataclass(frozen=True)
class ScipyLaw(Law):
    """A frozen scipy distribution; one of a single number gives the d entries of a vector independently."""

    distribution: Any  # scipy.stats.norm(0, 1), scipy.stats.multivariate_normal(...), scipy.stats.Normal(), ...
    size: int | None = None  # d for the noise of a vector

    def draw(self, n: int, generator: Generator) -> Array:
        """Draw with the generator given."""
        independent = self.size is not None and not hasattr(self.distribution, "dim")
        shape = (n, self.size) if independent else (n,)
        if hasattr(self.distribution, "rvs"):
            drawn = self.distribution.rvs(size=shape if len(shape) > 1 else n, random_state=generator)
        else:
            drawn = self.distribution.sample(shape, rng=generator)
        drawn = np.asarray(drawn)
        # Multivariate laws drop the rows' axis for n = 1.
        return drawn.reshape((n, self.size)) if self.size is not None else drawn.reshape((n, *drawn.shape[1:]))

    def log_density(self, noise: Array) -> Array | None:
        """Sum over the entries of a vector."""
        of_rows = getattr(self.distribution, "logpdf", None) or getattr(self.distribution, "logpmf", None)
        if of_rows is None:
            return None
        density = np.asarray(of_rows(noise))
        return density.sum(axis=1) if density.ndim == 2 else density

    def atoms(self) -> tuple[Array, Array] | None:
        """The support of a discrete law of a single number."""
        if self.size is not None or not hasattr(self.distribution, "pmf") or not hasattr(self.distribution, "support"):
            return None
        low, high = self.distribution.support()
        if not (np.isfinite(low) and np.isfinite(high)) or high - low >= MAX_ATOMS:
            return None
        values = np.arange(low, high + 1)
        weights = np.asarray(self.distribution.pmf(values))
        kept = weights > 0
        return values[kept], weights[kept]


@dataclass(frozen=True)
class FunctionLaw(Law):
    """A function (n, generator) -> array."""

    function: Callable[[int, Generator], Any]
    node: str

    def draw(self, n: int, generator: Generator) -> Array:
        """Call the function."""
        drawn = np.asarray(self.function(n, generator))
        if drawn.ndim == 0 or drawn.shape[0] != n:
            raise InputError(
                f"The noise of {self.node} must give {n} rows when asked for {n}, but an array of shape {drawn.shape} "
                "was received; use the first argument as the number of rows."
            )
        return drawn


@dataclass(frozen=True)
class Constant(Law):
    """No randomness: a node that is a function of its parents alone."""

    value: float = 0.0

    def draw(self, n: int, generator: Generator) -> Array:
        """Repeat the value."""
        return np.full(n, self.value)

    def atoms(self) -> tuple[Array, Array] | None:
        """The one value."""
        return np.array([self.value]), np.ones(1)


def is_distribution(value: Any) -> bool:
    """Tell whether a value is a scipy distribution, of the old or of the new kind."""
    return hasattr(value, "rvs") or (hasattr(value, "sample") and hasattr(value, "logpdf"))


def as_law(noise: Any, node: str, kind: Kind) -> Law:
    """Read what a user gave as a node's noise."""
    size = kind.size if isinstance(kind, Vector) else None
    if isinstance(noise, Law):
        return noise
    if is_distribution(noise):
        return ScipyLaw(noise, size)
    if callable(noise):
        return FunctionLaw(noise, node)
    if isinstance(noise, Real) and not isinstance(noise, bool):
        return Constant(float(noise))
    raise InputTypeError(
        f"The noise of {node} must be a frozen scipy distribution, a function (n, generator) -> array, or a number for "
        f"none, got {noise!r}; pass for example scipy.stats.norm(0, 1)."
    )
