"""Parents as a matrix of numbers: what regressors and networks read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ciplearn.scm.kinds import Array, Categories, Kind, Vector
from ciplearn.scm.mechanism import Parents


@dataclass(frozen=True)
class Design:
    """Columns of numbers for a list of nodes: numbers as they are, labels as one column a level but the first.

    Attributes
    ----------
    nodes : tuple of str
    kinds : mapping from node to Kind
    """

    nodes: tuple[str, ...]
    kinds: Mapping[str, Kind]

    @property
    def width(self) -> int:
        """The number of columns."""
        return sum(self._width(self.kinds[node]) for node in self.nodes)

    def __call__(self, values: Parents) -> Array:  # (n, width)
        """Return the matrix of some rows."""
        return np.concatenate([self._columns(node, values[node]) for node in self.nodes], axis=1)

    def _columns(self, node: str, values: Array) -> Array:
        kind = self.kinds[node]
        if isinstance(kind, Categories):
            return np.eye(len(kind.levels))[kind.codes(values, node)][:, 1:]
        return values.reshape(len(values), -1).astype(np.float64)

    @staticmethod
    def _width(kind: Kind) -> int:
        if isinstance(kind, Categories):
            return len(kind.levels) - 1
        return kind.size if isinstance(kind, Vector) else 1
