"""The network of the image experiment [quinzan2024]."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ciplearn._core.errors import InputError, InputTypeError

_SIDE = 64


class ImageNetwork(nn.Module):
    """Convolutions on pictures, a perceptron on the table, and a perceptron on what both say.

    Four groups of convolution, max pooling, ReLU and dropout with the sizes that the paper prints; 16 and 8 units for
    the table; 8, 8 and 16 units on top. Goes into ``CIPRegressor(module=ImageNetwork)``, with the pictures as the one
    entry of ``tensors``.

    Parameters
    ----------
    n_columns : int
        Numbers that the table becomes.
    dropout : float
        Share of units that a training step leaves out, in the convolutions and in the table's perceptron; the paper
        does not print it.
    """

    def __init__(self, n_columns: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.picture = nn.Sequential(
            *_group(nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.MaxPool2d(3, 2), dropout),  # side 64 -> 32 -> 15
            # The paper pools with size 1 and stride 2 here, which keeps every second pixel: only those are computed.
            *_group(nn.Conv2d(16, 64, 5, stride=2, padding=2), nn.Identity(), dropout),  # 15 -> 8
            *_group(nn.Conv2d(64, 64, 5, padding=2), nn.MaxPool2d(2, 1), dropout),  # 8 -> 7
            *_group(nn.Conv2d(64, 16, 5, padding=3), nn.MaxPool2d(2, 2), dropout),  # 7 -> 9 -> 4
            nn.Flatten(),
        )
        self.table = nn.Sequential(
            nn.Linear(n_columns, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 8), nn.ReLU(), nn.Dropout(dropout)
        )
        widths = (16 * 4 * 4 + 8, 8, 8, 16)
        layers = [nn.Sequential(nn.Linear(width, units), nn.ReLU()) for width, units in pairwise(widths)]
        last = nn.Linear(widths[-1], 1)
        self.head = nn.Sequential(*layers, last)
        self.apply(_start)
        # An output of zero at first: otherwise the narrow layers of some seeds die in the first steps.
        nn.init.zeros_(last.weight)
        # Channels last is the faster order for these sizes, on processors and on devices.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, table: Tensor, pictures: Tensor) -> Tensor:  # (n, columns), (n, 64, 64) -> (n, 1)
        """Evaluate the network; pictures may be bytes, so that a training set of them stays small."""
        return self.head(torch.cat([self.picture(as_channels(pictures, table.dtype)), self.table(table)], dim=1))


def as_channels(pictures: Tensor, dtype: torch.dtype) -> Tensor:  # (n, 64, 64) or (n, 1, 64, 64) -> (n, 1, 64, 64)
    """Return pictures as numbers of the network's type, or say what is wrong with them."""
    if pictures.dim() == 3:
        pictures = pictures.unsqueeze(1)
    if pictures.dim() != 4 or tuple(pictures.shape[1:]) != (1, _SIDE, _SIDE):
        raise InputError(
            f"Pictures must have shape (n, {_SIDE}, {_SIDE}), got {tuple(pictures.shape)}; resize them, and leave one "
            "channel."
        )
    if not (pictures.is_floating_point() or pictures.dtype in (torch.uint8, torch.bool)):
        raise InputTypeError(
            f"Pictures must hold bytes or floating-point numbers, got {pictures.dtype}; convert them with .float()."
        )
    return pictures.to(dtype, memory_format=torch.channels_last)


def _group(convolution: nn.Module, pooling: nn.Module, dropout: float) -> list[nn.Module]:
    # Pooling before ReLU gives the same as after it, on fewer numbers.
    return [convolution, pooling, nn.ReLU(), nn.Dropout(dropout)]


def _start(part: nn.Module) -> None:
    if isinstance(part, nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        if part.bias is not None:
            nn.init.zeros_(part.bias)
