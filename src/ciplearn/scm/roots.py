"""Nodes without parents: their law is what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Mechanism, Parents


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
