"""Leaving out what may follow A: A itself, all that descends from A, directions that A moves, or all but residuals.

These are the naive predictor, CF1 [kusner2017], invariant directions and CF2; a straight line leads from CF1 to an
unconstrained predictor.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import check_is_fitted

from ciplearn._core.arguments import one_of, positive
from ciplearn._core.arguments import share as checked_share
from ciplearn._core.columns import CLASSIFICATION
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.rows import as_seed
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline, NodeColumns, asked_once
from ciplearn.baselines.fitted_models import ColumnRegression, EstimatorRegression
from ciplearn.estimators.imagined import checked_models, imagine

Array = np.ndarray[Any, Any]

_CONSTANT = 1e-9  # combinations with less than this share of the largest variance are constants: indicators sum to one


@dataclass(eq=False, repr=False)
class NaivePredictor(Baseline):
    """Ŷ = f(inputs without A): not looking at the protected variables, only at everything they have changed.

    Needs no graph. Parameters and attributes: see `Baseline`.

    >>> from ciplearn import baselines, datasets
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> baselines.NaivePredictor(protected=["A"], epochs=2).fit(table[["A", "L", "Z"]], table["Y"]).inputs_
    ('L', 'Z')
    """

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        seen = tuple(node for node in columns.inputs if node not in columns.protected)
        if not seen:
            why = f"X has {len(columns.names)} feature(s), and every input is protected ({as_set(columns.protected)})"
            raise InputError(f"Nothing is left to predict from: {why}; name more inputs.")
        return columns.of(seen)


@dataclass(eq=False, repr=False)
class CF1(Baseline):
    """Ŷ = f(non-descendants of A), level 1 of counterfactual fairness [kusner2017].

    Counterfactually invariant whatever the data look like, if the graph is right. Parameters and attributes: see
    `Baseline`; the graph is needed.

    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.CF1(graph=world.graph, outcome="Y", protected=["A"], epochs=2, random_state=0)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).inputs_
    ('Z',)
    """

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        if seen := columns.unchanged():
            return seen
        why = f"every input descends from {as_set(columns.protected)} in the graph"
        which = f"the inputs are {as_set(columns.inputs)}"
        raise InputError(f"CF1 has nothing to predict from: {why} ({which}); add a non-descendant, or use CF2.")


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
    >>> model = baselines.InvariantDirections(protected=["sex"], counterfactuals=world, epochs=2)
    >>> model.fit(people.drop(columns="income"), people["income"]).unchanged_
    ('age', 'region')
    """

    counterfactuals: Any = None
    tolerance: float = 1e-3

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        return columns.of(columns.inputs)

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        if self.counterfactuals is None:
            why = "InvariantDirections asks causal models what A moves, got counterfactuals=None"
            raise InputError(f"{why}; pass for example counterfactuals=fit_scm(graph, table).")
        tolerance = positive(self.tolerance, "tolerance", maximum=1)
        complete = table.notna().all(axis=1).to_numpy()
        if not complete.any():
            raise InputError("No row is complete, so that no model can say what A moves; impute some columns first.")
        values = np.asarray(y)[complete].reshape(len(table[complete]), -1)
        outcome = (self.outcome, values[:, 0]) if self.outcome is not None and values.shape[1] == 1 else None
        about = table[complete], columns.of(columns.protected), outcome
        movement = np.sum([self._movement(model, *about) for model in checked_models(self.counterfactuals)], axis=0)
        encoded = self.encoding_.features(table[complete]).astype(float)
        spread = np.cov(encoded, rowvar=False, ddof=0).reshape(movement.shape)
        still = np.diag(movement) <= tolerance**2 * np.diag(spread)
        entries = zip(self.encoding_.columns, self.encoding_.slices, strict=True)
        self.unchanged_ = tuple(column.name for column, places in entries if still[places].all())
        self.moved_ = self.encoding_.only([name for name in self.inputs_ if name not in self.unchanged_])
        places = self.encoding_.places(self.moved_.names)
        block = np.ix_(places, places)
        self.directions_ = _unmoved(movement[block], spread[block], tolerance)
        if not self.unchanged_ and not self.directions_.shape[1]:
            why = f"the models move every combination of the inputs {as_set(columns.inputs)}"
            raise InputError(f"Nothing is left to predict from: {why}; add inputs that the protected do not move.")
        return super()._learnt(table, y, weights, columns)

    def _view(self, table: pd.DataFrame) -> pd.DataFrame:
        values = self.moved_.features(table).astype(float) @ self.directions_
        names = [f"direction {number}" for number in range(values.shape[1])]
        return pd.concat([table[list(self.unchanged_)], pd.DataFrame(values, columns=names, index=table.index)], axis=1)

    def _movement(
        self, model: Any, table: pd.DataFrame, protected: Sequence[str], outcome: tuple[str, Any] | None
    ) -> Array:  # (width, width)
        """E Cov_a′ x(a′): the covariance of a row's inputs between worlds, averaged over rows."""
        worlds = imagine(model, table, protected, self.encoding_, outcome, as_seed(self.random_state))
        inputs = worlds.inputs[0].numpy().astype(float)  # (n, m, width)
        m = inputs.shape[1]
        share = np.full(m, 1 / m) if worlds.weights is None else worlds.weights.numpy().astype(float)
        around = inputs - np.einsum("m,nmj->nj", share, inputs)[:, None]
        return np.asarray(np.einsum("m,nmi,nmj->ij", share, around, around, optimize=True) / len(inputs))


def _unmoved(movement: Array, spread: Array, tolerance: float) -> Array:  # (p, p), (p, p) -> (p, k)
    """Return the directions w, of variance one and uncorrelated, with wᵀ movement w ≤ tolerance² wᵀ spread w."""
    variances, vectors = np.linalg.eigh(spread)
    some = variances > _CONSTANT * max(variances[-1], 1e-300) if len(variances) else variances > 0
    whitened = vectors[:, some] / np.sqrt(variances[some])
    moved, turned = np.linalg.eigh(whitened.T @ movement @ whitened)
    return np.asarray(whitened @ turned[:, moved <= tolerance**2])


@dataclass(eq=False, repr=False)
class StraightLine(Baseline):
    """Ŷ = g + s (f − g) with g = CF1, f unconstrained on all inputs, and s² = ``share``.

    An intervention on A leaves g alone, so the variance of counterfactuals of Ŷ is exactly ``share`` times that of f.
    The squared error is about that of f plus (1 − s)² times what g loses to f. Two trainings give the whole line, see
    `at`. Classifiers mix the probabilities of g and f. Where every input descends from A, g is the best constant: the
    mean, or the shares of the classes.

    Parameters
    ----------
    share : float
        The share of f's variance of counterfactuals that is kept, between 0 (CF1) and 1 (unconstrained).

    Other parameters and attributes: see `Baseline`; the graph is needed.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> line = baselines.StraightLine(graph=world.graph, outcome="Y", protected=["A"], epochs=2, random_state=0)
    >>> line = line.fit(table.drop(columns="Y"), table["Y"])
    >>> f, g, middle = (line.at(share).predict(table) for share in (1, 0, 0.25))
    >>> bool(abs(middle - (f + g) / 2).max() < 1e-5)
    True
    """

    share: float = 0.05

    def at(self, share: float) -> Self:
        """Return the predictor at another share, between 0 and 1; nothing is trained again."""
        check_is_fitted(self, "model_")
        other = copy.copy(self).set_params(share=share)
        other.model_ = replace(self.model_, share=checked_share(share, "share"))
        return other

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        columns.unchanged()  # says that a graph is needed
        return columns.of(columns.inputs)

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Mixture:
        share, unchanged = checked_share(self.share, "share"), columns.unchanged()
        free = self._trained(table[list(self.inputs_)], y, weights)
        classes = free.classes_ if self.task_ == CLASSIFICATION else None
        if classes is not None and not hasattr(free, "predict_proba"):
            why = f"The straight line mixes probabilities, but {type(self.estimator).__name__} has none"
            raise InputError(f"{why}; pass a classifier with predict_proba.")
        if unchanged:
            invariant = self._trained(table[list(unchanged)], y, weights)
        else:
            constant = DummyRegressor() if classes is None else DummyClassifier(strategy="prior")
            invariant = constant.fit(table, np.asarray(y), weights)
        return Mixture(invariant, unchanged, free, share)


@dataclass(frozen=True)
class Mixture:
    """g + s (f − g) of two trained predictors, s² = ``share``."""

    invariant: Any  # g
    unchanged: tuple[str, ...]  # the columns that g reads
    unconstrained: Any  # f, which reads all columns
    share: float

    @property
    def classes_(self) -> np.ndarray:
        """The classes, where there are such."""
        return self.unconstrained.classes_

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        """Mix numbers."""
        return self._mixed(asked_once(table, self.unchanged, self.invariant.predict), self.unconstrained.predict(table))

    def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
        """Mix class probabilities."""
        invariant = asked_once(table, self.unchanged, self.invariant.predict_proba)
        return self._mixed(invariant, self.unconstrained.predict_proba(table))

    def _mixed(self, invariant: np.ndarray, unconstrained: np.ndarray) -> np.ndarray:
        weight = sqrt(self.share)
        # In this form both ends of the line are g and f to the last bit.
        return (1 - weight) * invariant + weight * unconstrained


@dataclass(eq=False, repr=False)
class CF2(Baseline):
    """Ŷ = f(non-descendants of A, V − E[V | parents of V] for each descendant V of A).

    Level 3 of counterfactual fairness [kusner2017]: each descendant is modelled with additive noise, and its noise
    stands in for it. Counterfactually invariant where each descendant is a function of its observed parents plus noise
    that is independent of them. A descendant that is a category counts with its indicators minus their predicted
    probabilities.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        What regresses a descendant: its number scaled to [0, 1], or the indicators of its levels. By default a network
        like the predictor's, trained alike, which for a category predicts probabilities.
    regress_on : "parents" or "protected"
        ``"protected"`` regresses on A alone, as [quinzan2024] does under the name of level 2. Where A and a descendant
        share a cause, such residuals still follow A. An outcome among the parents, which `predict` does not know, is
        left out; where A acts through it, A stands in for it.

    Other parameters and attributes: see `Baseline`; the graph is needed.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.CF2(graph=world.graph, protected=["A"], outcome="Y", regressor=LinearRegression(), epochs=2)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    regressor: Any = None
    regress_on: str = "parents"

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        one_of(self.regress_on, "regress_on", ("parents", "protected"))
        unchanged, regressed = columns.unchanged(), self._regressed(columns)
        if not unchanged and not regressed:
            why = f"the only inputs are {as_set(columns.inputs)}, which are protected"
            raise InputError(f"CF2 has nothing to predict from: {why}; name more inputs.")
        causes = (name for names in regressed.values() for name in names)
        return tuple(dict.fromkeys((*unchanged, *regressed, *causes)))

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        seed = as_seed(self.random_state)
        self.unchanged_ = columns.unchanged()
        self.residuals_ = []
        for number, (column, names) in enumerate(self._regressed(columns).items()):
            causes, value = TableEncoding.of(table, names), TableEncoding.of(table, (column,))
            rows = torch.from_numpy(causes.features(table)), torch.from_numpy(value.features(table))
            regression: ColumnRegression
            if self.regressor is not None:
                regression = EstimatorRegression.fitted(self.regressor, *rows)
            else:
                regression = self._regression(*rows, is_category=value.categories[0], seed=seed + number)
            self.residuals_.append(_Residual(causes, value, regression))
        return super()._learnt(table, y, weights, columns)

    def _view(self, table: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([table[list(self.unchanged_)], *(residual(table) for residual in self.residuals_)], axis=1)

    def _regressed(self, columns: NodeColumns) -> dict[str, tuple[str, ...]]:
        """Columns of the inputs that descend from A, each with the columns it is regressed on."""
        by_parents = self.regress_on == "parents"
        regressed: dict[str, tuple[str, ...]] = {}
        for node in columns.descendants():
            causes = columns.causes(node, with_outcome=False) if by_parents else columns.protected
            if node in columns.inputs:
                regressed |= dict.fromkeys(columns.of([node]), columns.of(causes, self.regress_on))
        return regressed


@dataclass(frozen=True)
class _Residual:
    """V − E[V | causes] of one column, as columns of their own."""

    causes: TableEncoding
    value: TableEncoding
    regression: ColumnRegression

    def __call__(self, table: pd.DataFrame) -> pd.DataFrame:
        column = self.value.columns[0]
        observed = torch.from_numpy(self.value.features(table)).double()
        residual = observed - self.regression.mean(torch.from_numpy(self.causes.features(table)).double())
        levels = getattr(column, "levels", ("",))
        names = [f"residual of {column.name}{'=' if level else ''}{level}" for level in levels]
        return pd.DataFrame(residual.numpy(), columns=names, index=table.index)
