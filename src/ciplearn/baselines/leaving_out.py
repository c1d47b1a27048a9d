"""Leaving out what may follow A: A itself, all that descends from A, or directions that A moves.

The first is the naive predictor and the second CF1 [kusner2017]; the third keeps the combinations of inputs that no
causal model says A moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import positive
from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns
from ciplearn.estimators.imagining import checked_models, imagine

Array = np.ndarray[Any, Any]

# Combinations with less than this share of the largest variance are constants: indicators sum to one.
_CONSTANT = 1e-9


@dataclass(eq=False, repr=False)
class NaivePredictor(Baseline):
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
class CF1(Baseline):
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


@dataclass(eq=False, repr=False)
class InvariantDirections(Baseline):
    """Ŷ = f(unchanged inputs, wᵀx for each w with wᵀx(a) = wᵀx(a′) in every causal model, for all rows, a and a′).

    x are the encoded inputs that some model says A moves, x(a) what they would have been had A been a. Whatever f is,
    Ŷ is counterfactually invariant in each of the models: the strict end of training under doubt, found by an
    eigenvalue problem instead of a penalty. Where models are linear, one that A moves k inputs in costs one direction
    of k, and each further model costs at most one more; leaving out what may descend from A costs all of them.

    Parameters
    ----------
    counterfactuals : causal model or list of them
        With ``counterfactual(rows, {name: values})``, of `fit_scm` for example; one per graph that is thought possible.
    tolerance : float
        A direction is kept where models move it by at most this part of its standard deviation.

    Other parameters and attributes: see `Baseline`.

    Attributes
    ----------
    unchanged_ : tuple of str
        Columns that no model moves.
    directions_ : array, shape (width, k)
        The weights w of the directions, on the encoded columns that some model moves.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> model = baselines.InvariantDirections(
    ...     graph=world.graph, outcome="income", protected=["sex"], counterfactuals=world, epochs=2, random_state=0
    ... )
    >>> model = model.fit(people.drop(columns="income"), people["income"])
    >>> model.unchanged_
    ('age', 'region')
    """

    counterfactuals: Any = None
    tolerance: float = 1e-3

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        return columns.of(columns.inputs)

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        if self.counterfactuals is None:
            raise InputError(
                "InvariantDirections asks causal models what A moves, got counterfactuals=None; pass for example "
                "counterfactuals=fit_scm(graph, table)."
            )
        tolerance = positive(self.tolerance, "tolerance", maximum=1)
        complete = table.notna().all(axis=1).to_numpy()
        if not complete.any():
            raise InputError("No row is complete, so that no model can say what A moves; impute some columns first.")
        values = np.asarray(y)[complete].reshape(len(table[complete]), -1)
        outcome = (self.outcome, values[:, 0]) if self.outcome is not None and values.shape[1] == 1 else None
        moved = [
            self._movement(model, table[complete], columns.of(columns.protected), outcome)
            for model in checked_models(self.counterfactuals)
        ]
        movement = np.sum(moved, axis=0)
        spread = np.cov(self.encoding_.features(table[complete]).astype(float), rowvar=False, ddof=0)
        spread = spread.reshape(movement.shape)
        still = np.diag(movement) <= tolerance**2 * np.diag(spread)
        self.unchanged_ = tuple(
            column.name
            for column, entries in zip(self.encoding_.columns, self.encoding_.slices, strict=True)
            if still[entries].all()
        )
        self.moved_ = self.encoding_.only([name for name in self.inputs_ if name not in self.unchanged_])
        places = self.encoding_.places(self.moved_.names)
        block = np.ix_(places, places)
        self.directions_ = _unmoved(movement[block], spread[block], tolerance)
        if not self.unchanged_ and not self.directions_.shape[1]:
            raise InputError(
                f"Nothing is left to predict from: the models move every combination of the inputs "
                f"{as_set(columns.inputs)}; add inputs that do not follow the protected variables."
            )
        return super()._learnt(table, y, weights, columns)

    def _view(self, table: pd.DataFrame) -> pd.DataFrame:
        values = self.moved_.features(table).astype(float) @ self.directions_
        names = [f"direction {number}" for number in range(values.shape[1])]
        return pd.concat([table[list(self.unchanged_)], pd.DataFrame(values, columns=names, index=table.index)], axis=1)

    def _movement(
        self, model: Any, table: pd.DataFrame, protected: Sequence[str], outcome: tuple[str, Any] | None
    ) -> Array:  # (width, width)
        """E Cov_a′ x(a′): the covariance of a row's inputs between worlds, averaged over rows."""
        worlds = imagine(model, table, protected, self.encoding_, outcome, self._seed())
        inputs = worlds.inputs[0].numpy().astype(float)  # (n, m, width)
        share = np.full(inputs.shape[1], 1 / inputs.shape[1])
        if worlds.weights is not None:
            share = worlds.weights.numpy().astype(float)
        around = inputs - np.einsum("m,nmj->nj", share, inputs)[:, None]
        return np.asarray(np.einsum("m,nmi,nmj->ij", share, around, around, optimize=True) / len(inputs))


def _unmoved(movement: Array, spread: Array, tolerance: float) -> Array:  # (p, p), (p, p) -> (p, k)
    """Return the directions w, of variance one and uncorrelated, with wᵀ movement w ≤ tolerance² wᵀ spread w."""
    variances, vectors = np.linalg.eigh(spread)
    some = variances > _CONSTANT * max(variances[-1], 1e-300) if len(variances) else variances > 0
    whitened = vectors[:, some] / np.sqrt(variances[some])
    moved, turned = np.linalg.eigh(whitened.T @ movement @ whitened)
    return np.asarray(whitened @ turned[:, moved <= tolerance**2])
