"""How a network is trained, for which loss, and what comes out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ciplearn._core.arguments import non_negative, one_of, positive, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tensors import Adam
from ciplearn._core.workers import ALONE, Workers

SCHEDULES = ("cosine", "constant")

# Beyond these no training ends, or no number in single precision is left.
_MOST_EPOCHS, _LARGEST_RATE = 10_000_000, 1e30


@dataclass(frozen=True)
class TrainingSettings:
    """Adam on shuffled batches.

    ``gamma`` weighs the penalty, counted in units of ``gamma_scale``. With ``schedule="cosine"`` the learning rate goes
    down to zero along half a cosine over the epochs, so that training settles; ``"constant"`` keeps it. Training stops
    after ``patience`` epochs without a better objective on the validation rows, and returns to the best; None trains
    all epochs. ``mixed_precision`` runs the network in bfloat16 where torch deems it safe; loss, penalty and weights
    stay in single precision. ``seed`` is that of initial weights, shuffles and dropout.

    >>> from ciplearn.learning import TrainingSettings
    >>> TrainingSettings(gamma=1.0, epochs=10).rate_in(0)
    0.001
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
    try:
        chosen = torch.device(device)
        is_absent = chosen.type == "cuda" and not torch.cuda.is_available()
        if not is_absent:
            # A device of the kind "meta" holds nothing, one that torch knows by name only cannot be used.
            torch.empty(1, device=chosen).item()
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', got {device!r}; pass one of these.") from error
    if is_absent:
        raise InputError(f"device {device!r} was asked for, but torch sees no CUDA device; use device='cpu' or 'auto'.")
    return chosen


class Objective(ABC):
    """A loss on the network's raw output, and the prediction that follows from that output.

    >>> from ciplearn.learning import Objective, SquaredError
    >>> isinstance(SquaredError(), Objective)
    True
    """

    @abstractmethod
    def losses(self, output: Tensor, target: Tensor) -> Tensor:  # (b, k), (b, ...) -> (b,)
        """Loss of each row."""

    @abstractmethod
    def prediction(self, output: Tensor) -> Tensor:  # (b, k) -> (b, d)
        """What the penalty's kernel compares."""

    @abstractmethod
    def columns(self, target: Tensor) -> int | None:
        """How many columns the output must have; None where any number will do."""

    def loss(self, output: Tensor, target: Tensor, weights: Tensor | None, workers: Workers = ALONE) -> Tensor:
        """Mean loss over the rows of all workers, weighted where rows have weights."""
        losses = self.losses(output, target)
        if workers.size > 1:
            shares = torch.ones_like(losses) if weights is None else weights.to(losses)
            total, weight = workers.total(torch.stack([(losses * shares).sum(), shares.sum()]))
            return total / weight.clamp_min(torch.finfo(weight.dtype).tiny)
        if weights is None:
            return losses.mean()
        # A batch of rows without weight has nothing to say, and no 0/0 either.
        return (losses * weights).sum() / weights.sum().clamp_min(torch.finfo(weights.dtype).tiny)

    def check(self, output: Any, target: Tensor) -> None:
        """Refuse an output that would be broadcast against the target, or is none."""
        if not isinstance(output, Tensor):
            raise InputTypeError(f"The network must return a tensor, got {type(output).__name__}; return one tensor.")
        rows, columns = len(target), self.columns(target)
        if output.dim() != 2 or len(output) != rows or columns not in (None, output.shape[1]):
            due = f"{rows} rows of {columns or 'some'} columns for this batch, got shape {tuple(output.shape)}"
            raise InputError(f"The network must return {due}; return one row per row and one column per output.")
        if not output.is_floating_point():
            raise InputTypeError(f"The network must return floating-point numbers, got {output.dtype}; convert them.")


@dataclass(frozen=True)
class SquaredError(Objective):
    """Mean over outputs of (ŷ − y)²; the penalty sees ŷ.

    >>> import torch
    >>> from ciplearn.learning import SquaredError
    >>> SquaredError().losses(torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [1.0]]))
    tensor([0., 4.])
    """

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Mean over outputs of the squared error."""
        return (output - target.reshape(output.shape)).square().mean(dim=1)

    def columns(self, target: Tensor) -> int:
        """One per output."""
        return target.shape[1:].numel()

    def prediction(self, output: Tensor) -> Tensor:
        """The output itself."""
        return output


@dataclass(frozen=True)
class BinaryCrossEntropy(Objective):
    """−log p of the right one of two classes, from one logit; the penalty sees the second class's probability.

    >>> import torch
    >>> from ciplearn.learning import BinaryCrossEntropy
    >>> BinaryCrossEntropy().prediction(torch.zeros(1, 1))
    tensor([[0.5000]])
    """

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of one logit."""
        return binary_cross_entropy_with_logits(output[:, 0], target.to(output.dtype), reduction="none")

    def columns(self, target: Tensor) -> int:
        """One logit."""
        return 1

    def prediction(self, output: Tensor) -> Tensor:
        """Probability of the second class."""
        return torch.sigmoid(output)


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """−log p of the right class, from one logit per class; the penalty sees all probabilities.

    >>> import torch
    >>> from ciplearn.learning import CrossEntropy
    >>> CrossEntropy(classes=2).prediction(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """

    classes: int | None = None  # how many there are, where that is known

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of one logit per class."""
        return cross_entropy(output, target, reduction="none")

    def columns(self, target: Tensor) -> int | None:
        """One logit per class."""
        return self.classes

    def prediction(self, output: Tensor) -> Tensor:
        """Probabilities of the classes."""
        return torch.softmax(output, dim=1)


@dataclass(frozen=True)
class Fit:
    """A trained network, in evaluation mode, and how it got there.

    ``history`` holds the mean ``loss`` of each epoch, the mean ``penalty`` unless gamma is 0, and the objective on
    ``validation`` rows where there are any.

    >>> from torch import nn
    >>> from ciplearn.learning import Fit
    >>> Fit(nn.Linear(2, 1).eval(), ({"loss": 0.5}, {"loss": 0.25})).history[-1]
    {'loss': 0.25}
    """

    module: nn.Module
    history: tuple[dict[str, float], ...]
