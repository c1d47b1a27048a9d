"""What finds the function behind a prediction, such as a network or a linear model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from sklearn.base import is_classifier
from torch import nn

from ciplearn._core.arguments import check_flags, entries, one_of, positive, whole
from ciplearn._core.columns import CLASSIFICATION, REGRESSION
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.estimators.networks import Perceptron, widths_of
from ciplearn.learning import Fit, Rows, TrainingRows, TrainingSettings

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator
    from ciplearn.estimators.preparation import Split

Array = np.ndarray[Any, Any]

_USUAL_STRENGTH = 1.0  # of logistic regression, where a class has too few rows for each fold to see it


@dataclass(frozen=True)
class Training:
    """What a learner is trained with."""

    estimator: CIPEstimator  # knows the encoding and the target
    split: Split  # the rows, and what predictions are penalised for
    settings: TrainingSettings  # gamma and seed
    path: Sequence[int]  # where inputs of an invariant path stand; none for no path
    by_gradients: Callable[[], Fit]  # trains a network in the usual loop

    @property
    def is_penalised(self) -> bool:
        """Whether there is more to train for than the loss."""
        return self.settings.gamma > 0 and self.split.invariance is not None

    def table(self, name: str) -> tuple[Array, Array | None]:  # (n, width), (n,)
        """The encoded table and the rows' weights; a learner of this name refuses what only a network takes."""
        rows = self.split.rows
        if not isinstance(rows, TrainingRows) or len(rows.inputs) > 1:
            why = f"The learner {name!r} takes a table in memory, got tensors or a table that streams"
            raise InputError(f"{why}; pass learner=Network().")
        for keyword in ("module", "warm_start"):
            if getattr(self.estimator, keyword):
                raise InputError(f"{keyword} is for networks, got it with the learner {name!r}; drop one of the two.")
        return rows.inputs[0].numpy(), row_weights(rows)

    def fitted(self, module: nn.Module) -> Fit:
        """A module that was fitted at once, with its loss on the rows."""
        rows = self.split.rows
        with torch.no_grad():
            loss = self.estimator._objective().loss(module(rows.inputs[0]).float(), rows.target, rows.weights)
        return Fit(module, ({"loss": float(loss)},))


def row_weights(rows: Rows) -> Array | None:  # (n,)
    """The weights of rows, where they have any."""
    return None if rows.weights is None else rows.weights.double().numpy()


@dataclass(frozen=True)
class Learner(ABC):
    """A way to find the function behind a prediction, with its settings.

    Subclasses are frozen dataclasses whose fields are the settings. A setting with the name of a keyword of
    `CIPRegressor` takes that keyword's place.

    >>> from ciplearn.learners import LEARNERS
    >>> LEARNERS["linear"]().settings["folds"]
    4
    """

    name: ClassVar[str]
    is_network: ClassVar[bool] = False

    @abstractmethod
    def trained(self, training: Training) -> Fit:
        """Train on rows that are encoded; the module returned takes them and gives one column per output."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def is_available(cls) -> bool:
        """Whether the library that it rests on can be loaded."""
        return True

    def estimator(self, task: str, random_state: Any = None, **more: Any) -> CIPEstimator:
        """Return an estimator, not yet fitted, that predicts from all columns and is penalised for nothing.

        ``task``: "regression" or "classification"; ``more``: keywords of `CIPRegressor`, such as ``missing="impute"``.
        """
        from ciplearn.estimators import CIPClassifier, CIPRegressor

        one_of(task, "task", (REGRESSION, CLASSIFICATION))
        kind = CIPClassifier if task == CLASSIFICATION else CIPRegressor
        return kind(**{"learner": self, "gamma": 0.0, "random_state": random_state, **more})


@dataclass(frozen=True)
class Network(Learner):
    """Fully connected layers, trained with Adam.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers.
    epochs, batch_size, learning_rate, weight_decay
    schedule : "cosine" or "constant"
        Whether the learning rate goes down to zero over the epochs.
    early_stopping, validation_fraction, patience
        Hold out rows, stop when the objective on them has not improved for ``patience`` epochs, return to the best.
    device : "auto", "cpu" or "cuda"
    mixed_precision : bool
        Run the network in bfloat16 where torch deems it safe.

    Examples
    --------
    >>> from ciplearn.learners import Network
    >>> Network(hidden=(8,), epochs=2).estimator("regression").setting("hidden")
    (8,)
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
        object.__setattr__(self, "hidden", widths_of(self.hidden))

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
    >>> from ciplearn.learners import Linear
    >>> Linear().estimator("regression").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).predict([[1.0]]).round()
    array([1.])
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
        object.__setattr__(self, "strengths", tuple(positive(strength, "Each of the strengths") for strength in named))

    def trained(self, training: Training) -> Fit:
        """Solve for the weights."""
        if training.is_penalised:
            return training.by_gradients()
        inputs, weights = training.table(self.name)
        target = training.split.rows.target
        if is_classifier(training.estimator):
            solved = self._logistic(inputs, target.numpy(), weights, training.settings.seed)
        else:
            from sklearn.linear_model import RidgeCV

            solved = RidgeCV(list(self.strengths)).fit(inputs, target.double().numpy(), sample_weight=weights)
        coefficients = np.atleast_2d(solved.coef_)
        # The default network without hidden layers.
        made = Perceptron(coefficients.shape[1], (), len(coefficients)).double()
        layer: Any = made.layers[0]
        layer.weight = nn.Parameter(torch.from_numpy(coefficients))
        layer.bias = nn.Parameter(torch.from_numpy(np.atleast_1d(solved.intercept_)))
        return training.fitted(made.float().eval())

    def _logistic(self, inputs: Array, labels: Array, weights: Array | None, seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV, StratifiedKFold

        model = LogisticRegression(C=1 / _USUAL_STRENGTH, max_iter=2000)
        if np.bincount(labels).min() >= self.folds and len(self.strengths) > 1:
            folds = StratifiedKFold(self.folds, shuffle=True, random_state=seed)
            choices = {"C": [1 / strength for strength in self.strengths]}
            search = GridSearchCV(model, choices, scoring="neg_log_loss", cv=folds, refit=False)
            model.set_params(**search.fit(inputs, labels, sample_weight=weights).best_params_)
        return model.fit(inputs, labels, sample_weight=weights)


# Keywords of estimators and baselines that a learner has as settings.
NETWORK_KEYWORDS = tuple(field.name for field in fields(Network))


def check_learner(estimator: CIPEstimator) -> None:
    """Refuse what is no learner, and a setting that is said by a keyword beside a learner."""
    learner = estimator.learner
    if learner is None:
        return
    if not isinstance(learner, Learner):
        raise InputTypeError(f"learner must be a learner, got {learner!r}; pass for example Network() or Boosted().")
    for name in NETWORK_KEYWORDS:
        if (value := getattr(estimator, name)) != getattr(Network, name):
            why = f"{name}={value!r} was passed beside a learner, which has settings of its own"
            raise InputError(f"{why}; pass settings of a network as learner=Network({name}=...).")
