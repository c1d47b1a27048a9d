"""What a mechanism is: how a node comes about from its parents and its noise; and what a recipe fits one to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from ciplearn._core.errors import InputTypeError
from ciplearn._core.rows import alike
from ciplearn.scm.kinds import Array, Categories, Kind, kept
from ciplearn.scm.smooth_ridge import Smoother

# Values of a node's parents, by name; each has n rows.
Parents = Mapping[str, Array]


class Mechanism(ABC):
    """V = f(pa, U) with a law of U.

    Noise is an array whose first axis is rows; what a row holds is the mechanism's own affair.

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
    """The mechanism of a latent node whose fit tells what the observed nodes say about it."""

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


@kept
@dataclass(frozen=True)
class Design:
    """Columns of numbers for a list of nodes: numbers as they are, labels as one column per level but the first."""

    nodes: tuple[str, ...]
    kinds: Mapping[str, Kind]

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(self.kinds[node].width for node in self.nodes)

    def __call__(self, values: Parents) -> Array:  # (n, width)
        """Return the matrix of some rows."""
        return self.standardised(self.parts(values))

    def looked_up(self, function: Callable[[Array], Array], values: Parents) -> Callable[[slice], Array]:
        """Return a function of the matrix's rows as one of slices of rows; of rows that are alike it is asked once.

        Worlds of one row share most parents, and labels take few values: most imagined rows repeat others.
        """
        parts = self.parts(values)
        first, like = alike(parts, len(parts[0]))
        repeats = 2 * len(first) < len(like)
        matrix = self.standardised([part[first] for part in parts] if repeats else parts)
        if not repeats:
            return lambda rows: function(matrix[rows])
        known = function(matrix)
        return lambda rows: known[like[rows]]

    def parts(self, values: Parents) -> list[Array]:
        """Return the rows of each node, with codes for labels; slices of them make the matrix of a slice."""
        return [self.kinds[node].codes(values[node], node) for node in self.nodes]

    def standardised(
        self, parts: list[Array], mean: Array | float = 0.0, spread: Array | float = 1.0, dtype: type = np.float64
    ) -> Array:  # (n, width)
        """Return (matrix − mean) / spread, computed in double precision and kept in ``dtype``."""
        mean, spread = (np.broadcast_to(each, self.width) for each in (mean, spread))
        matrix: Array = np.empty((len(parts[0]), self.width), dtype=dtype)
        start = 0
        for node, part in zip(self.nodes, parts, strict=True):
            kind = self.kinds[node]
            columns = slice(start, start + kind.width)
            start = columns.stop
            # A label's columns take as many values as there are levels: these are computed, the rows are looked up.
            values = np.eye(len(kind.levels))[:, 1:] if isinstance(kind, Categories) else part
            with np.errstate(over="ignore"):
                scaled: Array = ((values - mean[columns]) / spread[columns]).astype(dtype, copy=False)
            matrix[:, columns] = scaled.take(part, axis=0) if isinstance(kind, Categories) else scaled
        return matrix


@dataclass(frozen=True)
class NodeSample:
    """The rows of one node and its parents."""

    node: str
    kind: Kind
    parents: tuple[str, ...]
    values: Mapping[str, Array]  # of the node and of its parents, at least
    kinds: Mapping[str, Kind]
    fits: dict[MechanismRecipe, Any] = field(init=False, default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.target)

    @property
    def target(self) -> Array:
        """The node's own values."""
        return self.values[self.node]

    @property
    def design(self) -> Design:
        """How the parents become numbers."""
        return Design(self.parents, {parent: self.kinds[parent] for parent in self.parents})

    def take(self, rows: Array) -> NodeSample:
        """Return some of the rows, by number."""
        return replace(self, values={name: array[rows] for name, array in self.values.items()})

    @cached_property
    def matrix(self) -> Array:  # (n, width)
        """The parents as numbers."""
        return self.design(self.values) if self.parents else np.zeros((self.n, 0))

    @cached_property
    def smoother(self) -> Smoother:
        """Smooth regressions on the parents."""
        return Smoother(self.matrix)

    def fitted(self, recipe: MechanismRecipe, generator: Generator, like: Any = None) -> Any:
        """Return the fit of a recipe to these rows, made once: a scale is fitted around additive noise, and so on."""
        if recipe not in self.fits:
            self.fits[recipe] = recipe.fit(self, generator, like)
        return self.fits[recipe]


class MechanismRecipe(ABC):
    """A recipe for the mechanism of an observed node."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What the report calls it."""

    @abstractmethod
    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> Mechanism:
        """Fit the mechanism; what takes long to choose may be taken from ``like``, its fit to some of the rows."""


def cloned(estimator: Any, role: str, method: str, example: str) -> Any:
    """Return a fresh copy of a user's scikit-learn estimator, or refuse it."""
    if not (hasattr(estimator, "fit") and hasattr(estimator, method)):
        why = f"{role} must have fit and {method}, got {type(estimator).__name__}"
        raise InputTypeError(f"{why}; pass a scikit-learn {role} such as {example}().")
    return clone(estimator)
