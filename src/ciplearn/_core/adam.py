"""Adam, as torch has it, without torch's compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method that torch has wrapped, for its compiler's sake."""
    return getattr(method, "__wrapped__", method)


class Adam(torch.optim.Adam):
    """Adam, step by step the numbers of ``torch.optim.Adam``.

    An optimiser of torch's loads torch's compiler to tell it to look away: 70 MB and two seconds, for nothing.
    """

    add_param_group = _plain(torch.optim.Adam.add_param_group)
    zero_grad = _plain(torch.optim.Adam.zero_grad)
    state_dict = _plain(torch.optim.Adam.state_dict)
    load_state_dict = _plain(torch.optim.Adam.load_state_dict)

    def step(self, closure: Any = None) -> Any:
        """Take a step along the gradients."""
        with torch.no_grad():
            return _STEP(self, closure)


# Looked up before torch wraps the class's own once more, for its profiler.
_STEP = _plain(torch.optim.Adam.step)
