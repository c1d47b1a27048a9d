"""A network, trained by gradients; and one without hidden layers, which ridge and logistic regression solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import is_classifier
from torch import nn

from ciplearn._core.arguments import check_flags, entries, positive, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.estimators.learner import Learner, Training
from ciplearn.estimators.networks import Perceptron
from ciplearn.learning.loop import Fit

Array = np.ndarray[Any, Any]

# Of logistic regression, where a class has too few rows for each fold to see it.
_USUAL_STRENGTH = 1.0


@dataclass(frozen=True)
class Network(Learner):
    """Fully connected layers, trained with Adam.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers.
    epochs, batch_size, learning_rate, weight_decay
        Of the training with Adam.
    schedule : "cosine" or "constant"
        Whether the learning rate goes down to zero over the epochs.
    early_stopping, validation_fraction, patience
        Hold out rows, stop when the objective on them has not improved for ``patience`` epochs, return to the best.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``.
    mixed_precision : bool
        Run the network in bfloat16 where torch deems it safe.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets
    >>> from ciplearn.learners import Network
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> model = CIPRegressor(learner=Network(hidden=(8,), epochs=2), random_state=0)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    name: ClassVar[str] = "network"
    is_network: ClassVar[bool] = True

    hidden: Any = (64, 64)
    epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    schedule: str = "cosine"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 10
    device: str = "auto"
    mixed_precision: bool = False

    def __post_init__(self) -> None:
        check_flags(self, "early_stopping", "mixed_precision")
        widths = entries(self.hidden)
        if widths is None:
            raise InputTypeError(
                f"hidden must be a sequence of widths, got {self.hidden!r}; pass for example (64, 64)."
            )
        object.__setattr__(self, "hidden", tuple(widths))

    def trained(self, training: Training) -> Fit:
        """Train in the usual loop."""
        return training.by_gradients()


@dataclass(frozen=True)
class Linear(Learner):
    """Ŷ = w·x + c: ridge regression of numbers, logistic regression of labels.

    With a penalty on the predictions the same function is trained by gradients, with the estimator's settings.

    Parameters
    ----------
    strengths : sequence of float
        Weights of ‖w‖² to choose from, by the error on rows left out.
    folds : int
        In how many parts rows of labels are left out in turn; of numbers each row is.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> from ciplearn.learners import Linear
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> model = Linear().estimator("regression").fit(table.drop(columns="Y"), table["Y"])
    >>> model.predict(table).shape
    (100,)
    """

    name: ClassVar[str] = "linear"
    hidden: ClassVar[tuple[int, ...]] = ()
    device: ClassVar[str] = "cpu"
    early_stopping: ClassVar[bool] = False

    strengths: Any = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
    folds: int = 4

    def __post_init__(self) -> None:
        whole(self.folds, "folds", minimum=2)
        named = entries(self.strengths)
        if not named:
            raise InputError(f"strengths must be numbers to choose from, got {self.strengths!r}; pass for example [1].")
        object.__setattr__(self, "strengths", tuple(positive(one, "Each of the strengths") for one in named))

    def trained(self, training: Training) -> Fit:
        """Solve for the weights."""
        if training.is_penalised:
            return training.by_gradients()
        inputs, weights = training.table(self.name)
        if is_classifier(training.estimator):
            found = self._logistic(inputs, training.split.rows.target.numpy(), weights, training.settings.seed)
        else:
            found = self._ridge(inputs, training.split.rows.target.double().numpy(), weights)
        return training.fitted(_affine(*found))

    def _ridge(self, inputs: Array, target: Array, weights: Array | None) -> tuple[Array, Array]:
        from sklearn.linear_model import RidgeCV

        model = RidgeCV(self.strengths).fit(inputs, target, sample_weight=weights)
        return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)

    def _logistic(self, inputs: Array, labels: Array, weights: Array | None, seed: int) -> tuple[Array, Array]:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV, StratifiedKFold

        model = LogisticRegression(C=1 / _USUAL_STRENGTH, max_iter=2000)
        if np.bincount(labels).min() >= self.folds and len(self.strengths) > 1:
            folds = StratifiedKFold(self.folds, shuffle=True, random_state=seed)
            choices = {"C": [1 / one for one in self.strengths]}
            search = GridSearchCV(model, choices, scoring="neg_log_loss", cv=folds, refit=False)
            model.set_params(**search.fit(inputs, labels, sample_weight=weights).best_params_)
        model.fit(inputs, labels, sample_weight=weights)
        return model.coef_, model.intercept_


def _affine(coefficients: Array, intercept: Array) -> nn.Module:
    """The default network without hidden layers."""
    made = Perceptron(coefficients.shape[1], (), len(coefficients)).double()
    layer: Any = made.layers[0]
    layer.weight = nn.Parameter(torch.from_numpy(coefficients))
    layer.bias = nn.Parameter(torch.from_numpy(intercept))
    return made.float().eval()
