"""Noise that is drawn by what a row holds, so that a row is predicted alike whichever rows stand beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ciplearn.scm.kinds import Array

# Different draws that rows may get; two rows of the same content always get the same.
_PLACES = 509


class RowNoise(np.random.Generator):
    """A generator whose arrays hold, for each of n rows, numbers that depend on that row alone.

    An array whose length is a multiple of n holds several numbers per row, those of one row together. The laws that
    mechanisms draw from are covered; others are drawn as usual.
    """

    def __init__(self, rows: pd.DataFrame, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self._rows = (pd.util.hash_pandas_object(rows, index=False).to_numpy() % _PLACES).astype(np.int64)

    def _by_row(self, law: Any, size: Any, *parameters: float) -> Any:
        shape = (size,) if isinstance(size, int | np.integer) else size
        n = len(self._rows)
        if not shape or not n or shape[0] % n:
            return law(*parameters, size=size)
        each = shape[0] // n
        table: Array = law(*parameters, size=(_PLACES, each, *shape[1:]))
        return table[self._rows].reshape(shape)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel draws."""
        return self._by_row(super().gumbel, size, loc, scale)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform draws."""
        return self._by_row(super().uniform, size, low, high)

    def integers(self, low: Any, high: Any = None, size: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Whole numbers."""
        law: Any = super().integers
        return self._by_row(lambda *ends, size: law(*ends, size=size, **more), size, low, high)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal draws."""
        return self._by_row(super().normal, size, loc, scale)

    def standard_normal(self, size: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Normal draws."""
        return self.normal(size=size)
