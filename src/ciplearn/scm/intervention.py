"""Interventions: what a user may set a node to."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm.kinds import Array, Categories, Kind, Vector
from ciplearn.scm.mechanism import Parents
from ciplearn.scm.noise_laws import ScipyLaw, is_distribution


@dataclass(frozen=True)
class Action:
    """A node's new value, in any of the ways that `StructuralCausalModel.do` takes.

    Functions also find the node's natural value under its name, so ``lambda p: p["A"] + 1`` is a shift.
    """

    node: str
    kind: Kind
    value: Any

    @property
    def needs_nature(self) -> bool:
        """Whether the value depends on what the node would have been."""
        return self._function is not None

    @property
    def _function(self) -> Callable[..., Any] | None:
        return self.value if callable(self.value) and not is_distribution(self.value) else None

    def values(
        self,
        n: int,
        draws: int,
        parents: Parents,
        natural: Array | None,
        generator: Generator,
        index: pd.Index | None = None,
    ) -> Array:
        """Return the values of n units, ``draws`` of them per row, checked against the node's kind.

        ``index`` holds the labels of the rows, where they have any: a Series or frame is matched with them.
        """
        if is_distribution(self.value):
            size = self.kind.size if isinstance(self.kind, Vector) else None
            return self.kind.rows_of(ScipyLaw(self.value, size).draw(n, generator), n, self.node)
        function = self._function
        if function is None:
            rows = self.kind.rows_of(plain(self._matched(index), self.kind), n // draws, self.node)
            return np.repeat(rows, draws, axis=0) if draws > 1 else rows
        seen = dict(parents) if natural is None else {**parents, self.node: natural}
        value = function(seen, generator) if _arity(function) == 2 else function(seen)
        return self.kind.rows_of(plain(value, self.kind), n, self.node)

    def _matched(self, index: pd.Index | None) -> Any:
        """The value, its rows in the order of ``index``."""
        value = self.value
        if not isinstance(value, pd.DataFrame | pd.Series) or index is None or len(value) != len(index):
            return value
        # Labels that several rows share, as in a bootstrap sample, do not tell them apart: there the order counts.
        if index.has_duplicates or value.index.equals(index):
            return value
        places = value.index.get_indexer(index) if value.index.is_unique else np.array([-1])
        if (places < 0).any():
            raise InputError(
                f"The values for {self.node} do not have the labels of the rows: their index is "
                f"{list(value.index[:3])}... and that of the rows {list(index[:3])}...; pass values with the rows' "
                "index, or in the rows' order with to_numpy()."
            )
        return value.iloc[places]


def plain(value: Any, kind: Kind) -> Any:
    """Take a value out of its pandas wrapping."""
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.to_numpy(dtype=object) if isinstance(kind, Categories) else value.to_numpy()
    return np.asarray(value, dtype=object) if isinstance(value, pd.Categorical) else value


def _arity(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(needed) > 2:
        raise InputTypeError(
            f"An intervention function takes the parents, or the parents and a generator, but {len(needed)} arguments "
            "are needed; write lambda p: ... or lambda p, generator: ..."
        )
    return len(needed)
