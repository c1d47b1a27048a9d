"""Calls of a network: in pieces for prediction, with a word on its inputs where they fail."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ciplearn._core.columns import TableEncoding
from ciplearn._core.errors import CiplearnError
from ciplearn.estimators.further_inputs import FurtherInputs
from ciplearn.estimators.networks import Perceptron

# Rows predicted at a time.
_ROWS_AT_ONCE, _ROWS_WITH_TENSORS_AT_ONCE = 65_536, 2048


def outputs(module: nn.Module, features: Tensor, further: FurtherInputs) -> Tensor:  # (n, width) -> (n, k)
    """Return what a network says of rows, a piece at a time."""
    device = next(module.parameters()).device
    at_once = _ROWS_AT_ONCE if further.is_empty else _ROWS_WITH_TENSORS_AT_ONCE
    if isinstance(module, Perceptron):
        # In single precision a row's prediction depends, in the last digit, on the rows it is predicted with.
        module, features = copy.deepcopy(module).double(), features.double()
    pieces = []
    with torch.no_grad():
        for part in torch.arange(len(features)).split(at_once):
            inputs = (features[part], *further.read(part))
            pieces.append(module(*(one.to(device) for one in inputs)))
    return torch.cat(pieces)


@contextmanager
def naming_inputs(encoding: TableEncoding, n_further: int) -> Iterator[None]:
    """Add to an error from inside a network what the network was called with."""
    try:
        yield
    except CiplearnError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        columns = ", ".join(f"{column.name} ({column.width})" for column in encoding.columns)
        error.add_note(
            f"The network was called with the encoded table, {encoding.width} columns wide: {columns}; and with "
            f"{n_further} further inputs from tensors=."
        )
        raise
