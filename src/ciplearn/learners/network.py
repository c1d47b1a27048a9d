"""A network, trained by gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ciplearn._core.choices import check_flags, entries
from ciplearn._core.errors import InputTypeError
from ciplearn.estimators.learner import Learner, Training
from ciplearn.learning.loop import Fit


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
