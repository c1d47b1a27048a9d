"""Rows that a network is shown with another A in every step: data augmentation without copies in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ciplearn.baselines.regression import ColumnRegression


class Change(ABC):
    """What becomes of encoded rows when A is drawn anew."""

    @abstractmethod
    def __call__(self, rows: Tensor, noise: Tensor) -> Tensor:  # (b, width), (b, width) -> (b, width)
        """Return changed rows."""


@dataclass(frozen=True)
class DrawnProtected(Change):
    """A drawn from the training rows, all of its columns together; everything else as it was.

    Attributes
    ----------
    pool : Tensor, shape (n, width of A)
        Encoded A of the training rows: its marginal law.
    places : Tensor of int
        Where A stands in a row.
    """

    pool: Tensor
    places: Tensor

    def __call__(self, rows: Tensor, noise: Tensor) -> Tensor:
        """Draw A."""
        drawn = self.pool[torch.randint(len(self.pool), (len(rows),), device=rows.device)]
        return rows.index_copy(1, self.places, drawn)


@dataclass(frozen=True)
class Equation:
    """How one column follows from its causes: mean plus the row's own noise, or a draw from predicted levels."""

    places: Tensor
    causes: Tensor
    regression: ColumnRegression
    is_category: bool

    def residual(self, rows: Tensor) -> Tensor:  # (n, width) -> (n, width of the column)
        """What the causes leave unexplained in observed rows; nothing for a category, which is drawn."""
        observed = rows[:, self.places]
        return torch.zeros_like(observed) if self.is_category else observed - self.regression.mean(rows[:, self.causes])

    def value(self, rows: Tensor, noise: Tensor) -> Tensor:
        """The column's value where its causes have the values in ``rows``."""
        mean = self.regression.mean(rows[:, self.causes])
        if not self.is_category:
            return mean + noise[:, self.places]
        drawn = torch.multinomial(mean, 1)[:, 0]
        return one_hot(drawn, mean.shape[1]).to(mean.dtype)


@dataclass(frozen=True)
class PropagatedChange(Change):
    """A change of A that its descendants follow, equation by equation, each after its causes."""

    first: Change
    equations: Sequence[Equation]

    def __call__(self, rows: Tensor, noise: Tensor) -> Tensor:
        """Change A, then what A changes."""
        changed = self.first(rows, noise)
        for equation in self.equations:
            changed = changed.index_copy(1, equation.places, equation.value(changed, noise))
        return changed


class AugmentedNetwork(nn.Module):
    """A network that is trained on changed rows and asked about rows as they are.

    Parameters
    ----------
    network : nn.Module
    change : Change
    seen : Tensor of int
        Where the network's inputs stand in the rows that change.
    """

    def __init__(self, network: nn.Module, change: Change, seen: Tensor) -> None:
        super().__init__()
        self.network = network
        self.change = change
        self.seen = seen

    def forward(self, inputs: Tensor, rows: Tensor, noise: Tensor) -> Tensor:
        """Evaluate the network, in training on rows with another A."""
        if not self.training:
            return self.network(inputs)
        with torch.no_grad():
            shown = self.change(rows, noise)[:, self.seen]
        return self.network(shown)
