"""Units: rows together with the noise that made them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from ciplearn.scm.kinds import Array


@dataclass(frozen=True, eq=False)
class Units:
    """What abduction knows about some rows; sampling with the noise kept gives the same.

    Attributes
    ----------
    values : mapping from node to array
        What each node was, latent nodes included where they are known.
    noise : mapping from node to array
        The noise behind it, for the nodes that were asked for.
    index : pandas Index
        Of the rows the units came from.
    draws : int
        How many times each row stands here, each with noise of its own; the draws of one row stand together.
    exact : bool
        Whether the noise is the one noise that fits, rather than a draw from those that do.
    effective_draws : array of shape (rows,) or None
        Where latent parents were inferred by weighted draws, how many independent draws those are worth per row.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> scm = datasets.first_synthetic()
    >>> rows = scm.sample(5, random_state=0)
    >>> units = scm.abduct(rows)
    >>> units.n, units.exact
    (5, True)
    """

    values: Mapping[str, Array]
    noise: Mapping[str, Array]
    index: pd.Index
    draws: int = 1
    exact: bool = True
    effective_draws: Array | None = None

    @property
    def n(self) -> int:
        """How many units there are: rows times draws."""
        return len(self.index) * self.draws

    def take(self, rows: Any) -> Self:
        """Return the units of some rows, by place; a row may be named several times."""
        rows = np.asarray(rows, dtype=np.int64)
        places = (rows[:, None] * self.draws + np.arange(self.draws)).ravel()
        return replace(
            self,
            values={node: array.take(places, axis=0) for node, array in self.values.items()},
            noise={node: array.take(places, axis=0) for node, array in self.noise.items()},
            index=self.index.take(rows),
            effective_draws=None if self.effective_draws is None else self.effective_draws[rows],
        )

    def only(self, nodes: Collection[str]) -> Self:
        """Return the same units with the values and the noise of some nodes alone."""
        return replace(
            self,
            values={node: array for node, array in self.values.items() if node in nodes},
            noise={node: array for node, array in self.noise.items() if node in nodes},
        )

    def row_index(self) -> pd.Index:
        """The index of a frame of these units: the rows' own, with the number of the draw where there are several."""
        if self.draws == 1:
            return self.index
        rows, draws = np.repeat(np.arange(len(self.index)), self.draws), np.tile(np.arange(self.draws), len(self.index))
        return pd.MultiIndex.from_arrays([self.index.take(rows), draws], names=[self.index.name or "row", "draw"])
