"""What finds the function behind a prediction: a network, trees, a linear model; they stand in the room `learners`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from ciplearn._core.arguments import one_of
from ciplearn._core.columns import CLASSIFICATION, REGRESSION
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.estimators.roles import Columns
from ciplearn.learning import Fit, Rows, TrainingRows, TrainingSettings

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator
    from ciplearn.estimators.preparation import Split

Array = np.ndarray[Any, Any]

# Keywords of `CIPEstimator` that a learner has as settings.
NETWORK_KEYWORDS = (
    *("hidden", "epochs", "batch_size", "learning_rate", "weight_decay", "schedule", "early_stopping"),
    *("validation_fraction", "patience", "device", "mixed_precision"),
)


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

    def fit(self) -> Fit:
        """Let the estimator's learner train; without one it is a network."""
        learner = self.estimator.learner
        return self.by_gradients() if learner is None else learner.trained(self)

    def table(self, name: str) -> tuple[Array, Array | None]:  # (n, width), (n,)
        """The encoded table and the rows' weights; a learner of this name refuses what only a network takes."""
        rows = self.split.rows
        if not isinstance(rows, TrainingRows) or len(rows.inputs) > 1:
            raise InputError(
                f"The learner {name!r} takes a table in memory, got tensors or a table that streams; pass "
                f"learner=Network()."
            )
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

    Examples
    --------
    >>> from ciplearn.learners import LEARNERS
    >>> sorted(LEARNERS)
    ['boosted', 'linear', 'network']
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

        Parameters
        ----------
        task : "regression" or "classification"
        random_state : int, numpy Generator, RandomState or None
        **more
            Further parameters of `CIPRegressor`, such as ``missing="impute"``.
        """
        from ciplearn.estimators import CIPClassifier, CIPRegressor

        one_of(task, "task", (REGRESSION, CLASSIFICATION))
        kind = CIPClassifier if task == CLASSIFICATION else CIPRegressor
        return kind(**{"learner": self, "gamma": 0.0, "random_state": random_state, **more})


@dataclass(eq=False, repr=False)
class EstimatorKeywords(BaseEstimator):
    """What estimators and baselines are told alike: roles of the columns, and how a network is made and trained."""

    graph: CausalGraph | None = None
    outcome: str | None = None
    protected: Columns = None
    context: Columns = None
    inputs: Columns = None
    _: KW_ONLY
    missing: str = "error"
    module: nn.Module | Callable[[], nn.Module] | None = None
    hidden: Sequence[int] = (64, 64)
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
    verbose: bool = False
    random_state: Any = None
    learner: Learner | None = None

    def setting(self, name: str) -> Any:
        """Return a setting of the training: the learner's, or the keyword of that name."""
        return getattr(self.learner, name, getattr(self, name))

    def training_settings(self, *, gamma: float, seed: int) -> TrainingSettings:
        """Return the settings as the training loop takes them."""
        names = ("epochs", "batch_size", "learning_rate", "weight_decay", "schedule", "mixed_precision")
        patience = self.setting("patience") if self.setting("early_stopping") else None
        return TrainingSettings(gamma, **{name: self.setting(name) for name in names}, patience=patience, seed=seed)


def check_learner(estimator: CIPEstimator) -> None:
    """Refuse what is no learner, and a setting that is said by a keyword beside a learner."""
    learner = estimator.learner
    if learner is None:
        return
    if not isinstance(learner, Learner):
        raise InputTypeError(f"learner must be a learner, got {learner!r}; pass for example Network() or Boosted().")
    for each in fields(EstimatorKeywords):
        value = getattr(estimator, each.name)
        if each.name in NETWORK_KEYWORDS and value != each.default:
            raise InputError(
                f"{each.name}={value!r} was passed beside a learner, which has settings of its own; pass settings of a "
                f"network as learner=Network({each.name}=...)."
            )
