"""Parents as a matrix of numbers: what regressors and networks read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array, Categories, Kind
from ciplearn.scm.mechanism import Parents


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
