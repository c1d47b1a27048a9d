"""Small networks for estimated mechanisms, trained without touching torch's global random state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from ciplearn._core.errors import NumericalError
from ciplearn._core.tensors import Adam, torch_seeded
from ciplearn.scm.kinds import Array
from ciplearn.scm.recipe import Design
from ciplearn.scm.saving import kept

# Training ends after so many epochs in which the loss of held-out rows has not fallen by this share.
_PATIENCE = 4
_GAIN = 1e-3


@kept
@dataclass(frozen=True)
class Scaler:
    """Standardisation of columns."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, matrix: Array) -> Scaler:  # (n, c)
        """Read mean and standard deviation off the rows; a constant column keeps its unit."""
        spread = matrix.std(axis=0)
        return cls(matrix.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def tensor(self, matrix: Array, dtype: torch.dtype = torch.float32) -> Tensor:  # (n, c)
        """Return standardised rows."""
        return torch.as_tensor((matrix - self.mean) / self.spread, dtype=dtype)

    def inputs(self, design: Design, parts: list[Array]) -> Tensor:  # (n, c)
        """Return the standardised rows of a design's parts, as `tensor` does for its matrix."""
        return torch.from_numpy(design.standardised(parts, self.mean, self.spread, np.float32))

    def undo(self, matrix: Array) -> Array:
        """Return rows in their own units."""
        return np.asarray(matrix * self.spread + self.mean)


@dataclass(frozen=True)
class AdamSettings:
    """Settings of Adam."""

    epochs: int
    batch_size: int
    learning_rate: float


def train(
    make: Callable[[], nn.ModuleDict],
    rows: list[Tensor],
    loss_of: Callable[[nn.ModuleDict, list[Tensor], torch.Generator], Tensor],
    training: AdamSettings,
    generator: Generator,
    held_out: list[Tensor] | None = None,
) -> tuple[nn.ModuleDict, int]:
    """Minimise the loss of fresh networks by Adam on shuffled batches; return them and how many epochs they saw.

    With held-out rows, training ends when it no longer helps them, and the networks are those that served them best.
    """
    seed = int(generator.integers(2**31))
    draws = torch.Generator().manual_seed(seed)
    # Layers draw their first weights from torch's global state: lend them a seeded one and put the old one back.
    with torch_seeded(seed):
        networks = make()
    n = rows[0].shape[0]
    whole = _joined(networks)
    optimiser = Adam([whole], lr=training.learning_rate)
    least, best, epochs = float("inf"), None, training.epochs
    for epoch in range(training.epochs):
        order = torch.randperm(n, generator=draws)
        # One gather per epoch: batches are views of the shuffled rows.
        for batch in zip(*(part[order].split(training.batch_size) for part in rows), strict=True):
            loss = loss_of(networks, list(batch), draws)
            optimiser.zero_grad(set_to_none=False)
            loss.backward()
            optimiser.step()
        if not torch.isfinite(loss):
            raise NumericalError(
                f"Training diverged: the loss is {float(loss):.3g} after epoch {epoch + 1}; lower the learning rate "
                f"below {training.learning_rate:g}."
            )
        if held_out is not None:
            with torch.no_grad():
                left = float(loss_of(networks, held_out, torch.Generator().manual_seed(seed)))
            if left < least - _GAIN * abs(least) or best is None:
                least, best, epochs = left, whole.detach().clone(), epoch + 1
            elif epoch + 1 >= epochs + _PATIENCE:
                break
    if best is not None:
        whole.data.copy_(best)
    for weights in networks.parameters():
        # Weights of their own again, so that each is kept and sent without all others.
        weights.data, weights.grad = weights.data.clone(), None
    return networks.eval().requires_grad_(False), epochs


def _joined(networks: nn.ModuleDict) -> nn.Parameter:
    """Move all weights and their gradients into one vector each: Adam then takes few steps, on all weights at once."""
    separate = list(networks.parameters())
    whole = nn.Parameter(nn.utils.parameters_to_vector(separate).detach())
    whole.grad = torch.zeros_like(whole)
    nn.utils.vector_to_parameters(whole.data, separate)
    for weights, gradient in zip(separate, whole.grad.split([part.numel() for part in separate]), strict=True):
        weights.grad = gradient.view_as(weights)
    return whole


def filled(network: nn.Module, weights: Mapping[str, Array]) -> nn.Module:
    """Give a network the weights of a saved one."""
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return network.eval().requires_grad_(False)


def restored_tanh_network(weights: Mapping[str, Array]) -> nn.Module:
    """Return the `tanh_network` with some weights."""
    first, last = weights["0.weight"], weights["2.weight"]
    return filled(tanh_network(first.shape[1], first.shape[0], last.shape[0]), weights)


def tanh_network(inputs: int, hidden: int, outputs: int) -> nn.Module:
    """Two linear layers with a tanh between."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))
