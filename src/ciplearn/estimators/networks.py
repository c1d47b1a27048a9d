"""The default network, and networks of users' own."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ciplearn._core.errors import InputTypeError
from ciplearn._core.numbers import whole


class Perceptron(nn.Module):
    """Fully connected layers with hyperbolic tangents between them.

    Where an intervention takes a row outside the data, nothing that is learnt from data constrains the prediction.
    Saturating units stay nearly constant there, rectified ones go on linearly. For the same reason inputs should span
    [0, 1] rather than have unit variance: the function that the layers start from is then smooth across the data.

    The layers' output is in units of ``spread`` around ``centre``. Without that, a target that fills a small part of
    its range is learnt so slowly that a strong penalty wins before training has begun.

    Parameters
    ----------
    n_inputs : int
    hidden : sequence of int
        Widths.
    n_outputs : int
    centre, spread : sequence of float, optional
        Mean and standard deviation of each output, where the target has such.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        n_inputs: int,
        hidden: Sequence[int],
        n_outputs: int,
        centre: Sequence[float] | None = None,
        spread: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.n_inputs = n_inputs
        if not isinstance(hidden, Iterable):
            raise InputTypeError(f"hidden must be a sequence of widths, got {hidden!r}; pass for example (64, 64).")
        self.hidden: tuple[int, ...] = tuple(whole(width, "Each width in hidden", minimum=1) for width in hidden)
        self.n_outputs = n_outputs
        self.register_buffer("centre", torch.zeros(n_outputs) if centre is None else torch.tensor(list(centre)).float())
        self.register_buffer("spread", torch.ones(n_outputs) if spread is None else torch.tensor(list(spread)).float())
        layers: list[nn.Module] = []
        for width in self.hidden:
            layers += [nn.Linear(n_inputs, width), nn.Tanh()]
            n_inputs = width
        self.layers = nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))

    def forward(self, inputs: Tensor) -> Tensor:  # (b, n_inputs) -> (b, n_outputs)
        """Evaluate the network."""
        return torch.addcmul(self.centre, self.layers(inputs), self.spread)


def network_of(module: Any) -> nn.Module:
    """Return a copy of a user's network, or what a user's function makes."""
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    try:
        made = module() if callable(module) else module
    except TypeError as error:
        raise InputTypeError(
            f"module must be a network or a function without arguments, got {module!r}: {error}; pass an instance, or "
            f"a lambda."
        ) from error
    if not isinstance(made, nn.Module):
        raise InputTypeError(
            f"module must be a torch.nn.Module, or a function that returns one, got {made!r}; pass an instance."
        )
    return made
