"""What a mechanism to be fitted is: a recipe, the sample it is fitted to, and parents as a matrix of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from ciplearn._core.errors import InputTypeError
from ciplearn.scm.kinds import Array, Categories, Kind
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.saving import kept
from ciplearn.scm.smooth_ridge import Smoother


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
        return self.standardised(self.parts(values), np.zeros(self.width), np.ones(self.width), np.float64)

    def parts(self, values: Parents) -> list[Array]:
        """Return the rows of each node, with codes for labels; slices of them make the matrix of a slice."""
        return [self._part(node, values[node]) for node in self.nodes]

    def standardised(self, parts: list[Array], mean: Array, spread: Array, dtype: type) -> Array:  # (n, width)
        """Return (matrix − mean) / spread, computed in double precision and kept in ``dtype``."""
        matrix: Array = np.empty((len(parts[0]), self.width), dtype=dtype)
        start = 0
        for node, part in zip(self.nodes, parts, strict=True):
            kind = self.kinds[node]
            columns = slice(start, start + kind.width)
            start = columns.stop
            # A label's columns take as many values as there are levels: these are computed, the rows are looked up.
            values = np.eye(len(kind.levels))[:, 1:] if isinstance(kind, Categories) else part
            scaled = (values - mean[columns]) / spread[columns]
            with np.errstate(over="ignore"):
                scaled = scaled.astype(dtype, copy=False)
            matrix[:, columns] = scaled.take(part, axis=0) if isinstance(kind, Categories) else scaled
        return matrix

    def _part(self, node: str, values: Array) -> Array:
        kind = self.kinds[node]
        if isinstance(kind, Categories):
            return kind.codes(values, node)
        return values.reshape(len(values), kind.width).astype(np.float64)


@dataclass(frozen=True)
class NodeSample:
    """The rows of one node and its parents."""

    node: str
    kind: Kind
    parents: tuple[str, ...]
    values: Mapping[str, Array]  # of the node and of its parents, at least
    kinds: Mapping[str, Kind]

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
        """Return some of the rows, by place."""
        values = {name: array[rows] for name, array in self.values.items()}
        return NodeSample(self.node, self.kind, self.parents, values, self.kinds)

    @cached_property
    def matrix(self) -> Array:  # (n, width)
        """The parents as numbers."""
        return self.design(self.values) if self.parents else np.zeros((self.n, 0))

    @cached_property
    def smoother(self) -> Smoother:
        """Smooth regressions on the parents."""
        return Smoother(self.matrix)

    @cached_property
    def _fits(self) -> dict[MechanismRecipe, Any]:
        return {}

    def fitted(self, recipe: MechanismRecipe, generator: Generator, like: Any = None) -> Any:
        """Return the fit of a recipe to these rows, made once: a scale is fitted around additive noise, and so on."""
        if recipe not in self._fits:
            self._fits[recipe] = recipe.fit(self, generator, like)
        return self._fits[recipe]


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
    """Return a fresh copy of a user's scikit-learn estimator."""
    if not (hasattr(estimator, "fit") and hasattr(estimator, method)):
        raise InputTypeError(
            f"{role} must have fit and {method}, got {type(estimator).__name__}; pass a scikit-learn {role} such as "
            f"{example}()."
        )
    return clone(estimator)
