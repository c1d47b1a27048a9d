"""The values of the protected variables that stand for their law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn.scm.kinds import Array

# More joint values than these are not listed; of a number so many quantiles stand for all, else so many draws.
_MOST_LISTED = 16
_QUANTILES = 16
_DRAWN = 48


@dataclass(frozen=True, eq=False)
class Levels:
    """Joint values of A with their shares: all of them where they are few, else some that stand for all.

    Those of a single number are its quantiles in equal steps, of others rows drawn without repetition.

    Attributes
    ----------
    values : DataFrame
        One row per joint value, one column per protected column.
    shares : array of shape (K,)
    listed : bool
        Whether these are all that occur.
    """

    values: pd.DataFrame
    shares: Array
    listed: bool

    @classmethod
    def of(cls, table: pd.DataFrame, generator: np.random.Generator) -> Levels:
        """Read them off rows of the protected columns."""
        groups = table.groupby(list(table.columns), sort=True, observed=True).size()
        if len(groups) <= _MOST_LISTED:
            values = groups.index.to_frame(index=False)
            # Labels keep the kind that the table gave them.
            values = values.astype({name: table[name].dtype for name in table.columns})
            return cls(values, groups.to_numpy() / len(table), True)
        if table.shape[1] == 1 and holds_numbers(table.iloc[:, 0]):
            steps = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
            drawn = table.quantile(steps, interpolation="nearest")
        else:
            drawn = table.iloc[generator.permutation(len(table))[:_DRAWN]]
        return cls(drawn.reset_index(drop=True), np.full(len(drawn), 1 / len(drawn)), False)

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, table: pd.DataFrame) -> Array:  # (n,)
        """Return which of the listed values each row has; -1 for a value that is not listed."""
        return np.asarray(self._index(self.values).get_indexer(self._index(table)))

    def _index(self, table: pd.DataFrame) -> pd.Index:
        """The rows as keys: numbers as numbers, whatever kind of number they are, labels as text."""
        keys = [
            table[name].to_numpy(dtype=float) if holds_numbers(self.values[name]) else table[name].astype(str)
            for name in self.values.columns
        ]
        return pd.MultiIndex.from_arrays(keys) if len(keys) > 1 else pd.Index(keys[0])

    def some(self, count: int) -> Levels:
        """Return at most so many of drawn values, evenly chosen; listed ones as they are."""
        if self.listed or len(self) <= count:
            return self
        places = np.linspace(0, len(self) - 1, count).round().astype(int)
        return Levels(self.values.iloc[places].reset_index(drop=True), np.full(count, 1 / count), False)
