"""What a network is trained to predict: the loss, and what of its output the penalty sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.workers import ALONE, Workers


class Objective(ABC):
    """A loss on the network's raw output, and the prediction that follows from that output.

    Examples
    --------
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
            known = torch.ones_like(losses) if weights is None else weights.to(losses)
            total, weight = workers.total(torch.stack([(losses * known).sum(), known.sum()]))
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
            raise InputError(
                f"The network must return {rows} rows of {columns or 'some'} columns for this batch, got shape "
                f"{tuple(output.shape)}; return one row per row of the inputs and one column per output."
            )
        if not output.is_floating_point():
            raise InputTypeError(f"The network must return floating-point numbers, got {output.dtype}; convert them.")


@dataclass(frozen=True)
class SquaredError(Objective):
    """Mean over outputs of (ŷ − y)²; the penalty sees ŷ.

    Examples
    --------
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

    Examples
    --------
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

    Attributes
    ----------
    classes : int, optional
        How many there are, where that is known.

    Examples
    --------
    >>> import torch
    >>> from ciplearn.learning import CrossEntropy
    >>> CrossEntropy(classes=2).prediction(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """

    classes: int | None = None

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of one logit per class."""
        return cross_entropy(output, target, reduction="none")

    def columns(self, target: Tensor) -> int | None:
        """One logit per class."""
        return self.classes

    def prediction(self, output: Tensor) -> Tensor:
        """Probabilities of the classes."""
        return torch.softmax(output, dim=1)
