"""Leaving out columns: A itself (the naive predictor), or all that descends from A (CF1) [kusner2017]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns


@dataclass(eq=False, repr=False)
class _LeavingOut(Baseline):
    """A predictor from some of the inputs."""

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        return self._trained(table[list(self.inputs_)], y, weights)


@dataclass(eq=False, repr=False)
class NaivePredictor(_LeavingOut):
    """Ŷ = f(inputs without A): not looking at the protected variables, only at everything they have changed.

    Needs no graph. Parameters and attributes: see `Baseline`.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.NaivePredictor(graph=world.graph, outcome="Y", protected=["A"], epochs=2, random_state=0)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).inputs_
    ('L', 'Z')
    """

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        seen = tuple(node for node in columns.inputs if node not in columns.protected)
        if not seen:
            raise InputError(
                f"Nothing is left to predict from: X has {len(columns.names)} feature(s), and every input is protected "
                f"({as_set(columns.protected)}); name more inputs."
            )
        return columns.of(seen)


@dataclass(eq=False, repr=False)
class CF1(_LeavingOut):
    """Ŷ = f(non-descendants of A), level 1 of counterfactual fairness [kusner2017].

    Counterfactually invariant whatever the data look like, if the graph is right. Parameters and attributes: see
    `Baseline`; the graph is needed.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.CF1(graph=world.graph, outcome="Y", protected=["A"], epochs=2, random_state=0)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).inputs_
    ('Z',)
    """

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        seen = columns.unchanged()
        if not seen:
            raise InputError(
                f"CF1 has nothing to predict from: every input descends from {as_set(columns.protected)} in the graph "
                f"(the inputs are {as_set(columns.inputs)}); add a non-descendant, or use CF2."
            )
        return seen
