"""What baselines fit: a scikit-learn estimator behind the encoding of a table, and the mean of a column given others.

Regressions work on encoded rows: numbers scaled to [0, 1], one indicator per level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor, nn

from ciplearn._core.columns import CLASSIFICATION, REGRESSION
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.wording import in_one_sentence
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import held_out
from ciplearn.estimators.networks import Perceptron, Ramps
from ciplearn.estimators.tables import read_labels, read_numbers
from ciplearn.learning import CrossEntropy, Objective, SquaredError, TrainingRows, Validation, train
from ciplearn.learning.settings import chosen_device


@dataclass(frozen=True)
class TableEstimator:
    """A fitted scikit-learn estimator behind the encoding of a table."""

    estimator: Any
    encoding: TableEncoding | None  # None where the estimator is a Pipeline: it takes the frame itself
    answer: tuple[int, ...] = ()  # the shape of one row's prediction: () for a number or a label

    @classmethod
    def fitted(
        cls, estimator: Any, rows: Any, y: Any, weights: Any, *, seed: int, encoding: TableEncoding | None = None
    ) -> Self:
        """Fit a clone to a table, or to rows that an encoding has encoded; open random states get the seed."""
        if encoding is None and not isinstance(estimator, Pipeline):
            encoding = TableEncoding.of(rows, rows.columns)
            rows = encoding.features(rows)
        fresh = clone(estimator)
        states = [name for name in fresh.get_params() if f"__{name}".endswith("__random_state")]
        fresh.set_params(**{name: seed for name in states if fresh.get_params()[name] is None})
        target = read_labels(y) if is_classifier(fresh) else read_numbers(y)
        step, last = fresh.steps[-1] if isinstance(fresh, Pipeline) else ("", fresh)
        if weights is not None and not has_fit_parameter(last, "sample_weight"):
            why = f"{type(last).__name__} takes no sample_weight, but weights were passed"
            raise InputError(f"{why}; leave them out, or pass another estimator.")
        weighted = {} if weights is None else {f"{step}__sample_weight" if step else "sample_weight": weights}
        with in_one_sentence(f"{type(fresh).__name__} cannot be fitted", "pass another estimator, or other rows"):
            fresh.fit(rows, target, **weighted)
        return cls(fresh, encoding, target.shape[1:])

    @property
    def classes_(self) -> np.ndarray:
        """The classes of a classifier, in order."""
        return self.estimator.classes_

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        """Ask the estimator."""
        return np.asarray(self.estimator.predict(self._rows(table))).reshape(len(table), *self.answer)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
        """Ask the estimator for class probabilities, where it has them."""
        return np.asarray(self.estimator.predict_proba(self._rows(table)))

    def _rows(self, table: pd.DataFrame) -> Any:
        return table if self.encoding is None else self.encoding.features(table)


def task_of_estimator(estimator: Any) -> str:
    """Return what an estimator does, or refuse what is no scikit-learn regressor or classifier."""
    if not isinstance(estimator, type) and hasattr(estimator, "get_params"):
        if is_classifier(estimator):
            return CLASSIFICATION
        if is_regressor(estimator):
            return REGRESSION
    why = f"estimator must be a scikit-learn regressor or classifier, got {estimator!r}"
    raise InputTypeError(f"{why}; pass for example HistGradientBoostingRegressor().")


class ColumnRegression(Protocol):
    """E[V | inputs] for a number V, the probabilities of its levels for a category."""

    def mean(self, inputs: Tensor) -> Tensor:  # (n, d) -> (n, width of V)
        """Return the mean of each row, in the precision and on the device of the inputs."""


@dataclass(frozen=True)
class NetworkRegression:
    """A trained network; kept in double precision, in which a row's mean does not depend on its neighbours."""

    module: nn.Module
    objective: Objective

    @classmethod
    def trained(cls, like: CIPEstimator, inputs: Tensor, target: Tensor, *, is_category: bool, seed: int) -> Self:
        """Train a network with another's settings: squared error for a number, cross-entropy for a category."""
        objective: Objective = CrossEntropy() if is_category else SquaredError()
        setting, device = like.setting, chosen_device(like.setting("device"))
        settings = like.training_settings(gamma=0.0, seed=seed)
        # The layers answer in units of a number's spread, as those of the predictor do.
        centre, spread = (None, None) if is_category else (target.mean(0).tolist(), target.std(0).tolist())
        sizes = inputs.shape[1], setting("hidden"), target.shape[1]
        module = Perceptron(*sizes, centre, spread, torch.Generator().manual_seed(seed), Ramps.of(inputs)).to(device)
        rows = TrainingRows(inputs=(inputs,), target=target.argmax(dim=1) if is_category else target).to(device)
        stopping = None
        if settings.patience is not None:
            kept, others = held_out(len(rows), setting("validation_fraction"), seed)
            rows, stopping = rows.take(kept), Validation(rows.take(others))
        fit = train(module, rows, objective, settings, None, stopping, verbose=bool(like.verbose))
        return cls(fit.module.double(), objective)

    def mean(self, inputs: Tensor) -> Tensor:
        """Ask the network."""
        weight = next(self.module.parameters())
        with torch.no_grad():
            output = self.module(inputs.to(weight.device, weight.dtype))
            return self.objective.prediction(output).to(inputs.device, inputs.dtype)


@dataclass(frozen=True)
class EstimatorRegression:
    """A scikit-learn regressor fitted to a column's number, or to the indicators of its levels."""

    estimator: Any
    width: int

    @classmethod
    def fitted(cls, regressor: Any, inputs: Tensor, target: Tensor) -> Self:
        """Fit a clone."""
        if not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
            raise InputTypeError(f"regressor must have fit and predict, got {regressor!r}; pass LinearRegression().")
        values = target.double().numpy()
        fitted = clone(regressor).fit(inputs.double().numpy(), values[:, 0] if values.shape[1] == 1 else values)
        return cls(fitted, values.shape[1])

    def mean(self, inputs: Tensor) -> Tensor:
        """Ask the estimator."""
        answer = np.asarray(self.estimator.predict(inputs.double().cpu().numpy()), dtype=float)
        return torch.from_numpy(answer.reshape(len(inputs), self.width)).to(inputs.device, inputs.dtype)
