"""The mean of one column given others, learnt on encoded rows: numbers scaled to [0, 1], one indicator per level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor, nn

from ciplearn._core.errors import InputTypeError
from ciplearn.estimators.networks import Perceptron, Ramps
from ciplearn.estimators.splits import held_out
from ciplearn.learning import (
    CrossEntropy,
    Objective,
    SquaredError,
    TrainingRows,
    TrainingSettings,
    Validation,
    train,
)


class ColumnRegression(ABC):
    """E[V | inputs] for a number V, the probabilities of its levels for a category."""

    @abstractmethod
    def mean(self, inputs: Tensor) -> Tensor:  # (n, d) -> (n, width of V)
        """Return the mean of each row, in the precision and on the device of the inputs."""


@dataclass(frozen=True)
class NetworkRegression(ColumnRegression):
    """A trained network; kept in double precision, in which a row's mean does not depend on its neighbours."""

    module: nn.Module
    objective: Objective

    def mean(self, inputs: Tensor) -> Tensor:
        """Ask the network."""
        weight = next(self.module.parameters())
        with torch.no_grad():
            output = self.module(inputs.to(weight.device, weight.dtype))
            return self.objective.prediction(output).to(inputs.device, inputs.dtype)


@dataclass(frozen=True)
class EstimatorRegression(ColumnRegression):
    """A fitted scikit-learn regressor."""

    estimator: Any
    width: int

    def mean(self, inputs: Tensor) -> Tensor:
        """Ask the estimator."""
        answer = np.asarray(self.estimator.predict(inputs.double().cpu().numpy()), dtype=float)
        return torch.from_numpy(answer.reshape(len(inputs), self.width)).to(inputs.device, inputs.dtype)


@dataclass(frozen=True)
class NetworkSettings:
    """How networks that regress one column on others are made and trained."""

    hidden: Sequence[int]
    training: TrainingSettings  # with patience, some rows say when to stop
    device: torch.device
    stopping: float = 0.1  # the share of these rows
    verbose: bool = False

    def regression(self, inputs: Tensor, target: Tensor, *, is_category: bool, seed: int) -> NetworkRegression:
        """Train a network: squared error for a number, cross-entropy for a category."""
        objective: Objective = CrossEntropy() if is_category else SquaredError()
        learnt = target.argmax(dim=1) if is_category else target
        # The layers answer in units of a number's spread, as those of the predictor do.
        centre, spread = (None, None) if is_category else (target.mean(0).tolist(), target.std(0).tolist())
        settings = replace(self.training, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        sizes = inputs.shape[1], self.hidden, target.shape[1]
        module = Perceptron(*sizes, centre, spread, generator, Ramps.of(inputs)).to(self.device)
        rows = TrainingRows(inputs=(inputs,), target=learnt).to(self.device)
        judge = None
        if settings.patience is not None:
            kept, stopping = held_out(len(rows), self.stopping, seed)
            rows, judge = rows.take(kept), Validation(rows.take(stopping))
        trained = train(module, rows, objective, settings, None, judge, verbose=self.verbose).module
        return NetworkRegression(trained.double(), objective)


def estimator_regression(regressor: Any, inputs: Tensor, target: Tensor) -> EstimatorRegression:
    """Fit a clone of a scikit-learn regressor to a column's number, or to the indicators of its levels."""
    if not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
        raise InputTypeError(f"regressor must have fit and predict, got {regressor!r}; pass LinearRegression().")
    values = target.double().numpy()
    fitted = clone(regressor).fit(inputs.double().numpy(), values[:, 0] if values.shape[1] == 1 else values)
    return EstimatorRegression(fitted, values.shape[1])
