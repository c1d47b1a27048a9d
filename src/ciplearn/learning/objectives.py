"""What a network is trained to predict: the loss, and what of its output the penalty sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy


class Objective(ABC):
    """A loss on the network's raw output, and the prediction that follows from that output."""

    @abstractmethod
    def losses(self, output: Tensor, target: Tensor) -> Tensor:  # (b, k), (b, ...) -> (b,)
        """Loss of each row."""

    @abstractmethod
    def prediction(self, output: Tensor) -> Tensor:  # (b, k) -> (b, d)
        """What the penalty's kernel compares."""

    def loss(self, output: Tensor, target: Tensor, weights: Tensor | None) -> Tensor:
        """Mean loss, weighted where rows have weights."""
        losses = self.losses(output, target)
        return losses.mean() if weights is None else (losses * weights).sum() / weights.sum()


@dataclass(frozen=True)
class SquaredError(Objective):
    """Mean over outputs of (ŷ − y)²; the penalty sees ŷ."""

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Mean over outputs of the squared error."""
        return (output - target).square().mean(dim=1)

    def prediction(self, output: Tensor) -> Tensor:
        """The output itself."""
        return output


@dataclass(frozen=True)
class BinaryCrossEntropy(Objective):
    """−log p of the right one of two classes, from one logit; the penalty sees the second class's probability."""

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of one logit."""
        return binary_cross_entropy_with_logits(output[:, 0], target.to(output.dtype), reduction="none")

    def prediction(self, output: Tensor) -> Tensor:
        """Probability of the second class."""
        return torch.sigmoid(output)


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """−log p of the right class, from a logit a class; the penalty sees all probabilities."""

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of a logit a class."""
        return cross_entropy(output, target, reduction="none")

    def prediction(self, output: Tensor) -> Tensor:
        """Probabilities of the classes."""
        return torch.softmax(output, dim=1)
