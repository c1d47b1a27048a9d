"""The straight line between CF1 and an unconstrained predictor: the reference for every frontier."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import check_is_fitted

from ciplearn._core.arguments import share as checked_share
from ciplearn._core.columns import CLASSIFICATION
from ciplearn._core.errors import InputError
from ciplearn.baselines.base import Baseline, asked_once
from ciplearn.baselines.columns import NodeColumns


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

    Attributes
    ----------
    model_ : Mixture
        Both trained predictors, with the share.

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
        """Return the predictor at another share; nothing is trained again.

        Parameters
        ----------
        share : float
            Between 0 and 1.
        """
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
            raise InputError(
                f"The straight line mixes probabilities, but {type(self.estimator).__name__} has none; pass a "
                f"classifier with predict_proba."
            )
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
