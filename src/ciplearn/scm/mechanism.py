"""What a mechanism is: how one node comes about from its parents and its noise, and how to read the noise back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ciplearn.scm.kinds import Array
from ciplearn.scm.saving import kept

# Values of a node's parents, by name; each has n rows.
Parents = Mapping[str, Array]


class Mechanism(ABC):
    """V = f(pa, U) with a law of U.

    Noise is an array whose first axis is rows; what a row holds is the mechanism's own affair.

    Examples
    --------
    >>> from ciplearn.scm import GumbelMax, Mechanism
    >>> isinstance(GumbelMax(["f", "m"], [0.5, 0.5]), Mechanism)
    True
    """

    @abstractmethod
    def draw(self, n: int, generator: Generator) -> Array:
        """Draw n rows of noise."""

    @abstractmethod
    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """f(pa, u), row by row."""

    @abstractmethod
    def recover(self, parents: Parents, value: Array) -> Array | None:
        """Return the one noise with f(pa, u) = value, or None where there may be several."""

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Draw one row of noise from its law given f(pa, U) = value, for each row: by default the one that fits."""
        noise = self.recover(parents, value)
        assert noise is not None
        return noise

    def log_density(self, parents: Parents, value: Array) -> Array | None:  # (n,)
        """Return the log density (or log probability) of the value given the parents, or None where it is unknown."""
        return None

    def quantiles(self, parents: Parents, levels: Array) -> Array | None:  # (k,) -> (n, k) or (n, d, k)
        """Return the quantiles of each number given the parents, or None where they are unknown."""
        return None

    def ranks(self, parents: Parents, value: Array, generator: Generator) -> Array | None:  # (n,) or (n, d)
        """Return the place of the noise in its law, between 0 and 1, or None where it has none.

        Uniform and independent of the parents if the mechanism is right; drawn where several noises fit.
        """
        return None


class LatentMechanism(Mechanism):
    """The mechanism of a latent node that knows, from its own fit, what the observed nodes say about it."""

    @abstractmethod
    def infer(self, observed: Parents, generator: Generator) -> Array:
        """Draw the latent node's noise given the values of observed nodes, one row for each of theirs."""

    @property
    @abstractmethod
    def evidence(self) -> tuple[str, ...]:
        """The observed nodes that `infer` reads."""


@kept
@dataclass(frozen=True)
class FittedRoot(Mechanism):
    """V = U with U drawn from the observed values; numbers, vectors and labels alike."""

    seen: Array

    def draw(self, n: int, generator: Generator) -> Array:
        """Observed values, with replacement."""
        return np.asarray(self.seen[generator.integers(len(self.seen), size=n)])

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """Return the noise itself."""
        return noise

    def recover(self, parents: Parents, value: Array) -> Array:
        """Return the value itself."""
        return value


@kept
@dataclass(frozen=True)
class JointNoise:
    """Rows of the noises of nodes that share hidden causes: they are drawn together."""

    rows: Mapping[str, Array]

    def draw(self, n: int, generator: Generator) -> dict[str, Array]:
        """Rows, with replacement."""
        rows = generator.integers(len(next(iter(self.rows.values()))), size=n)
        return {node: values[rows] for node, values in self.rows.items()}
