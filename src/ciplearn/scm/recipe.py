"""What a mechanism to be fitted is: a recipe, and the sample it is fitted to."""

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
from ciplearn.scm.design import Design
from ciplearn.scm.kinds import Array, Kind
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.smooth_ridge import Smoother


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


class Recipe(ABC):
    """A recipe for the mechanism of an observed node."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What the report calls it."""

    @abstractmethod
    def fit(self, sample: NodeSample, generator: Generator) -> Mechanism:
        """Fit the mechanism."""

    def refit(self, fitted: Any, sample: NodeSample, generator: Generator) -> Mechanism:
        """Fit the mechanism to more rows; what took long to choose may be kept from ``fitted``, its fit to some."""
        return self.fit(sample, generator)


def cloned(estimator: Any, role: str, method: str, example: str) -> Any:
    """Return a fresh copy of a user's scikit-learn estimator."""
    if not (hasattr(estimator, "fit") and hasattr(estimator, method)):
        raise InputTypeError(
            f"{role} must have fit and {method}, got {type(estimator).__name__}; pass a scikit-learn {role} such as "
            f"{example}()."
        )
    return clone(estimator)
