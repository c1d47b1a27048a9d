"""The values of the protected variables that stand for their law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn.scm.kinds import Array

# More joint values than these are not listed; of a number so many quantiles stand for all, beside labels so many in all
# and at least so many of each label, else so many draws.
_MOST_LISTED = 16
_QUANTILES = 16
_BESIDE_LABELS, _OF_EACH_LABEL = 24, 4
_DRAWN = 48


@dataclass(frozen=True, eq=False)
class Levels:
    """Joint values of A with their shares: all of them where they are few, else some that stand for all.

    Those of a number are its quantiles in equal steps, beside each label that is protected too; of several numbers rows
    drawn without repetition.
    """

    values: pd.DataFrame  # one row per joint value, one column per protected column
    shares: Array  # (K,)
    listed: bool  # whether these are all that occur

    @classmethod
    def of(cls, table: pd.DataFrame, generator: np.random.Generator) -> Levels:
        """Read them off rows of the protected columns."""
        groups = table.groupby(list(table.columns), sort=True, observed=True).size()
        if len(groups) <= _MOST_LISTED:
            values = groups.index.to_frame(index=False)
            # Labels keep the kind that the table gave them.
            values = values.astype({name: table[name].dtype for name in table.columns})
            return cls(values, groups.to_numpy() / len(table), True)
        labels = [name for name in table.columns if not holds_numbers(table[name])]
        parts = [part for _, part in table.groupby(labels, observed=True)] if labels else [table]
        if table.shape[1] - len(labels) != 1 or len(parts) * _OF_EACH_LABEL > _BESIDE_LABELS:
            drawn = table.iloc[generator.permutation(len(table))[:_DRAWN]]
            return cls(drawn.reset_index(drop=True), np.full(len(drawn), 1 / len(drawn)), False)
        count = _BESIDE_LABELS // len(parts) if labels else _QUANTILES
        number = next(name for name in table.columns if name not in labels)
        steps = (np.arange(count) + 0.5) / count
        drawn = pd.concat(
            [
                part.iloc[[0] * count].assign(**{number: part[number].quantile(steps, "nearest").to_numpy()})
                for part in parts
            ]
        )
        shares = np.repeat([len(part) / len(table) / count for part in parts], count)
        return cls(drawn.reset_index(drop=True), shares, False)

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
        """Return at most so many of values that stand for others, evenly chosen; listed ones as they are."""
        if self.listed or len(self) <= count:
            return self
        places = np.linspace(0, len(self) - 1, count).round().astype(int)
        shares = self.shares[places] / self.shares[places].sum()
        return Levels(self.values.iloc[places].reset_index(drop=True), shares, False)
