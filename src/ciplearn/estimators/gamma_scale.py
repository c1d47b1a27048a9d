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
_ROWS, _SHUFFLES, _COLUMNS = 4096, 8, 16

# Below this, what is found may be noise. In 2000 rows of the processes in benchmarks/processes.py outcomes have 0.4 to
# 1, but 0.04 and 0.05 in two of them.
_LEAST_SHARE = 0.1

# Relative to the penalty of shuffled outcomes, a difference this small is rounding.
_NOTHING = 1e-4


def is_relative(scale: Any, penalty_is_default: bool) -> bool:
    """Whether gamma is counted in the outcome's own penalty."""
    if isinstance(scale, str) and scale not in (OUTCOME, AUTO):
        raise InputError(f"gamma_scale must be 'auto', 'outcome' or a number, got {scale!r}; pass one of these.")
    return scale == OUTCOME or (scale == AUTO and penalty_is_default)


def fixed_scale(scale: Any) -> float:
    """The number that was passed, or 1 where gamma is the penalty's plain weight."""
    return 1.0 if scale == AUTO else positive(scale, "gamma_scale")


def outcome_scale(operator: Operator, outcome: Tensor, right: Tensor, constant_loss: float) -> float:
    """Return the loss of the best constant prediction over the penalty of the outcome.

    An outcome that keeps the independence has a penalty near zero, above or below, and a unit that small would punish
    every prediction for what is noise. So the unit is at least a share of what the outcome would have if it followed
    one of the right-hand columns: the same values, in the order of that column.

    Parameters
    ----------
    operator : Operator
        Prepared on the training rows.
    outcome : Tensor, shape (n, d)
        The target as a prediction that is always right.
    right : Tensor, shape (n, columns)
        What the prediction is to be independent of.
    constant_loss : float
        Of the best constant prediction.
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randperm(len(outcome), generator=generator)[:_ROWS]
    known, followed = outcome[rows.to(outcome.device)], right[rows.to(right.device)]
    noise = torch.stack(
        [
            operator(known[torch.randperm(len(rows), generator=generator).to(known.device)], rows=rows)
            for _ in range(_SHUFFLES)
        ]
    ).mean()
    ordered = known[known[:, 0].argsort()]
    most = max(
        float(operator(ordered[followed[:, place].argsort().argsort()], rows=rows) - noise)
        for place in range(min(followed.shape[1], _COLUMNS))
    )
    found = float(operator(known, rows=rows) - noise)
    if max(found, most) <= _NOTHING * abs(float(noise)):
        # The penalty sees nothing: a constant column, or a category of its own in each row.
        return constant_loss
    return constant_loss / max(found, _LEAST_SHARE * most)
