"""A training step recorded once as a CUDA graph: replaying it launches everything at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

_WARM_UP = 3


def recorded(
    step: Callable[[], None], tensors: Iterable[Tensor], optimiser: torch.optim.Optimizer
) -> Callable[[], None]:
    """Return a function that does what ``step`` does, from tensors that stay where they are.

    ``step``: reads and writes the same tensors in every call, and never waits for the device. ``tensors``: weights and
    buffers that a step changes. ``optimiser``: made with ``capturable=True``. Raises `RuntimeError` if the step cannot
    be recorded. Weights, buffers and optimiser are then as they were before, as they are after a recording.
    """
    kept = [(tensor, tensor.detach().clone()) for tensor in tensors]
    moments = {
        parameter: {name: entry.clone() for name, entry in state.items()}
        for parameter, state in optimiser.state.items()
    }
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
    finally:
        # Warming up has moved the weights, and Adam remembers it.
        with torch.no_grad():
            for tensor, value in kept:
                tensor.copy_(value)
            for parameter, state in optimiser.state.items():
                for name, entry in state.items():
                    entry.copy_(moments[parameter][name]) if parameter in moments else entry.zero_()
    return graph.replay
