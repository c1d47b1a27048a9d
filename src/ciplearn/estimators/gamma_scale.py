"""The unit that gamma is counted in: how far the outcome itself is from the independence.

What a penalty's values are depends on kernels, columns and rows: the outcome's own penalty is 1e-2 in the paper's first
synthetic case and 3e-4 on Adult. Relative to it, and to the loss of a constant prediction, a gamma means the same
everywhere: loss / loss of a constant + gamma · penalty / penalty of the outcome.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import positive
from ciplearn.penalties import Operator

OUTCOME, AUTO = "outcome", "auto"

# Enough to know a scale, few enough to cost nothing.
_ROWS, _SHUFFLES = 4096, 8


def is_relative(scale: Any, penalty_is_default: bool) -> bool:
    """Whether gamma is counted in the outcome's own penalty."""
    if isinstance(scale, str) and scale not in (OUTCOME, AUTO):
        raise InputError(f"gamma_scale must be 'auto', 'outcome' or a number, got {scale!r}; pass one of these.")
    return scale == OUTCOME or (scale == AUTO and penalty_is_default)


def fixed_scale(scale: Any) -> float:
    """The number that was passed, or 1 where gamma is the penalty's plain weight."""
    return 1.0 if scale == AUTO else positive(scale, "gamma_scale")


def outcome_scale(operator: Operator, outcome: Tensor, constant_loss: float) -> float:
    """Return the loss of the best constant prediction over the penalty of the outcome.

    An outcome that keeps the independence has a penalty near zero, above or below: there the spread of the penalty over
    shuffled outcomes stands in for it.

    Parameters
    ----------
    operator : Operator
        Prepared on the training rows.
    outcome : Tensor, shape (n, d)
        The target as a prediction that is always right.
    constant_loss : float
        Of the best constant prediction.
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randperm(len(outcome), generator=generator)[:_ROWS]
    known = outcome[rows.to(outcome.device)]
    shuffled = torch.stack(
        [
            operator(known[torch.randperm(len(rows), generator=generator).to(known.device)], rows=rows)
            for _ in range(_SHUFFLES)
        ]
    )
    found = float(operator(known, rows=rows) - shuffled.mean())
    return constant_loss / max(found, 2 * float(shuffled.std()), torch.finfo(torch.float32).tiny)
