"""Noise of a user's equations: its law, and draws that reproduce a value where several noises do."""

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
from ciplearn.scm.mechanism import Mechanism, Parents

# A discrete law with more atoms than this is sampled, not enumerated.
MAX_ATOMS = 4096

# Draws in all before rows that are still unexplained are given up: a few rare rows get millions each.
_BUDGET = 100_000_000

# Draws per round, which bounds memory.
_ROUND = 1_000_000

# Noises whose images decide whether a value can be met by chance at all.
_ATOM_PROBES = 256


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
            drawn = np.asarray(self.distribution.rvs(size=shape if independent else n, random_state=generator))
        else:
            drawn = np.asarray(self.distribution.sample(shape, rng=generator))
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
class _FunctionLaw(Law):
    """A function (n, generator) -> array."""

    function: Callable[[int, Generator], Any]
    node: str

    def draw(self, n: int, generator: Generator) -> Array:
        drawn = np.asarray(self.function(n, generator))
        if drawn.ndim == 0 or drawn.shape[0] != n:
            raise InputError(
                f"The noise of {self.node} must give {n} rows when asked for {n}, but an array of shape {drawn.shape} "
                "was received; use the first argument as the number of rows."
            )
        return drawn


@dataclass(frozen=True)
class _Constant(Law):
    """No randomness: a node that is a function of its parents alone."""

    value: float

    def draw(self, n: int, generator: Generator) -> Array:
        return np.full(n, self.value)

    def atoms(self) -> tuple[Array, Array]:
        return np.array([self.value]), np.ones(1)


def is_distribution(value: Any) -> bool:
    """Tell whether a value is a scipy distribution, of the old or of the new kind."""
    return hasattr(value, "rvs") or (hasattr(value, "sample") and hasattr(value, "logpdf"))


def as_law(noise: Any, node: str, kind: Kind) -> Law:
    """Read what a user gave as a node's noise."""
    if is_distribution(noise):
        return ScipyLaw(noise, kind.size if isinstance(kind, Vector) else None)
    if callable(noise):
        return _FunctionLaw(noise, node)
    if isinstance(noise, Real) and not isinstance(noise, bool):
        return _Constant(float(noise))
    raise InputTypeError(
        f"The noise of {node} must be a frozen scipy distribution, a function (n, generator) -> array, or a number for "
        f"none, got {noise!r}; pass for example scipy.stats.norm(0, 1)."
    )


def by_atoms(
    mechanism: Mechanism, node: str, atoms: tuple[Array, Array], parents: Parents, value: Array, generator: Generator
) -> Array:  # (n,)
    """Draw from P(u | f(pa, u) = v) ∝ P(u) 1[f(pa, u) = v] by listing every u: exact."""
    n = value.shape[0]
    levels, weights = atoms
    # One uniform number per row walks down the weights of the matching atoms, so memory stays at a few columns.
    matches = np.zeros((len(levels), n), dtype=bool)
    for i, level in enumerate(levels):
        matches[i] = same(mechanism.evaluate(parents, np.full(n, level)), value)
    mass = np.cumsum(matches * weights[:, None], axis=0)
    refuse_impossible(node, mass[-1] > 0)
    chosen = (mass <= generator.uniform(size=n) * mass[-1]).sum(axis=0)
    return np.asarray(levels[chosen])


def by_rejection(
    mechanism: Mechanism, node: str, parents: Parents, value: Array, generator: Generator
) -> Array:  # (n, ...)
    """Draw u from its law until f(pa, u) = v: exact draws, for values that have positive probability."""
    n = value.shape[0]
    if not is_discrete(mechanism, parents, n, generator):
        raise InputError(
            f"The noise of {node} cannot be read back from its value: its equation has no inverse, is not linear in "
            f"the noise, and its values are continuous; pass inverses={{{node!r}: ...}}, or sample with sample_units, "
            "which keeps the noise."
        )
    noise = mechanism.draw(n, generator)
    open_rows = np.flatnonzero(~same(mechanism.evaluate(parents, noise), value))
    spent, width = n, 1
    while open_rows.size and spent < _BUDGET:
        # Most rows need a few draws; those that stay open get twice as many each round.
        width = max(1, min(2 * width, _ROUND // open_rows.size))
        rows = np.repeat(open_rows, width)
        trial = mechanism.draw(rows.size, generator)
        hit = same(mechanism.evaluate({name: values[rows] for name, values in parents.items()}, trial), value[rows])
        hit = hit.reshape(open_rows.size, width)
        met = hit.any(axis=1)
        first = np.arange(open_rows.size) * width + hit.argmax(axis=1)
        noise[open_rows[met]] = trial[first[met]]
        open_rows = open_rows[~met]
        spent += rows.size
    met = np.ones(n, dtype=bool)
    met[open_rows] = False
    refuse_impossible(node, met)
    return noise


def same(one: Array, other: Array) -> Array:  # (n,), boolean
    """Which rows hold the same value, up to rounding for numbers."""
    if one.dtype == object or other.dtype == object:
        return np.asarray(one == other, dtype=bool)
    close = np.asarray(np.isclose(one, other, rtol=1e-9, atol=1e-12))
    return np.asarray(close.all(axis=1)) if close.ndim == 2 else close


def is_discrete(mechanism: Mechanism, parents: Parents, n: int, generator: Generator) -> bool:
    """Whether two noises often give the same value at the first of n rows of parents."""
    if n == 0:
        return True
    first = {name: np.repeat(values[:1], _ATOM_PROBES, axis=0) for name, values in parents.items()}
    images = mechanism.evaluate(first, mechanism.draw(_ATOM_PROBES, generator))
    return images.dtype == object or len(np.unique(images, axis=0)) < _ATOM_PROBES


def refuse_impossible(node: str, met: Array) -> None:
    """Raise where some rows have no noise that explains them."""
    missing = int((~met).sum())
    if missing:
        raise InputError(
            f"No noise of {node} reproduces its observed value in {missing} of {met.size} rows (first: row "
            f"{int(np.flatnonzero(~met)[0])}); these rows are impossible, or too rare to be met by chance, "
            "under this model: check the equation and the rows."
        )
