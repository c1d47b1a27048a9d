"""How a network is trained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.arguments import non_negative, one_of, positive, whole
from ciplearn._core.errors import InputError
from ciplearn._core.tensors import Adam

SCHEDULES = ("cosine", "constant")

# Beyond these no training ends, or no number in single precision is left.
_MOST_EPOCHS = 10_000_000
_LARGEST_RATE = 1e30


@dataclass(frozen=True)
class TrainingSettings:
    """Adam on shuffled batches.

    Attributes
    ----------
    gamma : float
        Weight of the penalty, in units of ``gamma_scale``.
    epochs, batch_size : int
    learning_rate, weight_decay : float
    schedule : "cosine" or "constant"
        How the learning rate goes: down to zero along half a cosine over the epochs, so that training settles, or not.
    patience : int or None
        Stop after this many epochs without a better objective on the validation rows, and return to the best; None
        trains all epochs.
    mixed_precision : bool
        Run the network in bfloat16 where torch deems it safe; loss, penalty and weights stay in single precision.
    gamma_scale : float
        What a gamma of 1 weighs.
    seed : int
        Of initial weights, shuffles and dropout.

    Examples
    --------
    >>> from ciplearn.learning import TrainingSettings
    >>> settings = TrainingSettings(gamma=1.0, epochs=10)
    >>> settings.rate_in(0) > settings.rate_in(9)
    True
    """

    gamma: float = 0.0
    epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "cosine"
    patience: int | None = None
    mixed_precision: bool = False
    gamma_scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        non_negative(self.gamma, "gamma")
        positive(self.gamma_scale, "gamma_scale")
        whole(self.epochs, "epochs", minimum=1, maximum=_MOST_EPOCHS)
        whole(self.batch_size, "batch_size", minimum=2)
        positive(self.learning_rate, "learning_rate", maximum=_LARGEST_RATE)
        non_negative(self.weight_decay, "weight_decay", maximum=_LARGEST_RATE)
        one_of(self.schedule, "schedule", SCHEDULES)
        if self.patience is not None:
            whole(self.patience, "patience", minimum=1)

    def rate_in(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (1 + math.cos(math.pi * epoch / self.epochs)) / 2

    @property
    def weight(self) -> float:
        """What the penalty is multiplied with."""
        return self.gamma * self.gamma_scale


def adam(parameters: Iterable[Tensor], settings: TrainingSettings, device: torch.device) -> Adam:
    """Return the optimiser; on a CUDA device one whose step can be recorded, with the rate in a tensor."""
    recorded = device.type == "cuda"
    rate = torch.tensor(settings.learning_rate, device=device) if recorded else settings.learning_rate
    return Adam(parameters, lr=rate, weight_decay=settings.weight_decay, capturable=recorded)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate; in place where it is a tensor, which a step that was recorded on a device reads."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def chosen_device(device: str | torch.device) -> torch.device:
    """Return the device that is asked for; ``"auto"`` takes a CUDA device where there is one."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    refusal = InputError(f"device must be 'auto', 'cpu' or 'cuda', got {device!r}; pass one of these.")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise refusal from error
    if chosen.type == "meta":
        raise refusal
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {device!r} was asked for, but torch sees no CUDA device; use device='cpu' or 'auto'.")
    try:
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # A kind of device that torch knows by name only, or a number that is none.
        raise refusal from error
    return chosen
