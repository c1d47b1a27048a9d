"""The unit that gamma is counted in: how far the outcome itself is from the independence, or how much it would vary.

What a penalty's values are depends on kernels, columns and rows: the outcome's own penalty is 1e-2 in the paper's first
synthetic case and 3e-4 on Adult. Relative to it, and to the loss of a constant prediction, a gamma means the same
everywhere: loss / loss of a constant + gamma · penalty / penalty of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.arguments import positive
from ciplearn._core.errors import InputError
from ciplearn.estimators.tables import statement_rows
from ciplearn.learning import Rows
from ciplearn.learning.invariance import CounterfactualVariance, Dependence, Invariance, StreamedVariance

OUTCOME, AUTO = "outcome", "auto"

# Enough to know a scale, few enough to cost nothing.
_ROWS, _SHUFFLES, _COLUMNS = 4096, 8, 16

# Below this, what is found may be noise. In 2000 rows of the processes in benchmarks/processes.py outcomes have 0.4 to
# 1, but 0.04 and 0.05 in two of them.
_LEAST_SHARE = 0.1

# Relative to the penalty of shuffled outcomes, a difference this small is rounding.
_NOTHING = 1e-4


def is_relative(estimator: Any) -> bool:
    """Whether gamma is counted in a unit of the table: by default for all but a penalty that was passed."""
    scale = estimator.gamma_scale
    if not isinstance(scale, str):
        return False
    if scale not in (OUTCOME, AUTO):
        raise InputError(f"gamma_scale must be 'auto', 'outcome' or a number, got {scale!r}; pass one of these.")
    own = estimator.penalty is not None and estimator.counterfactuals is None
    return scale == OUTCOME or (scale == AUTO and not own)


def fixed_scale(scale: Any) -> float:
    """The number that was passed, or 1 where gamma is the penalty's plain weight."""
    return 1.0 if isinstance(scale, str) else positive(scale, "gamma_scale")


def gamma_units(
    estimator: Any, rows: Rows, table: pd.DataFrame, each: Sequence[Invariance]
) -> tuple[float, tuple[float, ...]]:
    """What a gamma of 1 weighs, and the units in which several penalties are compared."""
    return compared(estimator, [_scale(estimator, one, rows, table, place) for place, one in enumerate(each)])


def compared(estimator: Any, scales: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """The same from what a gamma of 1 weighs for each penalty alone; without any, for none."""
    if not scales:
        return 1.0 if is_relative(estimator) else fixed_scale(estimator.gamma_scale), ()
    return scales[0] if len(scales) == 1 else 1.0, tuple(1 / one for one in scales)


def _scale(estimator: Any, penalty: Invariance, rows: Rows, table: pd.DataFrame, place: int) -> float:
    """What a gamma of 1 weighs, for the penalty on one statement or causal model."""
    if not is_relative(estimator):
        return fixed_scale(estimator.gamma_scale)
    outcome, constant_loss = estimator._outcome(rows.target)
    if isinstance(penalty, CounterfactualVariance):
        return counterfactual_scale(penalty, rows, outcome, constant_loss)
    encodings = estimator.statement_encodings_[place]
    prepared = penalty.operator if isinstance(penalty, Dependence) else None
    operator = prepared or estimator.operator_of(encodings, table, rows.device)
    return outcome_scale(operator, outcome, statement_rows(encodings, table)[0].to(rows.device), constant_loss)


def outcome_scale(operator: Callable[..., Tensor], outcome: Tensor, right: Tensor, constant_loss: float) -> float:
    """Return the loss of the best constant prediction over the penalty of the outcome.

    An outcome that keeps the independence has a penalty near zero, above or below, and a unit that small would punish
    every prediction for what is noise. So the unit is at least a share of what the outcome would have if it followed
    one of the right-hand columns: the same values, in the order of that column.

    ``operator``: of predictions and ``rows=``. ``outcome``: (n, d), a prediction that is always right. ``right``:
    (n, columns), what the prediction is to be independent of.
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
    reached = float(operator(known, rows=rows) - noise)
    if max(reached, most) <= _NOTHING * abs(float(noise)):
        # The penalty sees nothing: a constant column, or a category of its own in each row.
        return constant_loss
    return constant_loss / max(reached, _LEAST_SHARE * most)


def counterfactual_scale(
    invariance: CounterfactualVariance | StreamedVariance, rows: Rows, outcome: Tensor, constant_loss: float
) -> float:
    """Return the loss of the best constant prediction over the counterfactual variance of an unconstrained predictor.

    The predictor is a quick one, boosted trees on some of the rows. Where the protected variables hardly move it, the
    unit is at least a share of the variance of its predictions. ``outcome``: (n, d), a prediction that is always right.
    """
    # Only here: trees take memory, and most trainings have no use for them.
    from sklearn.ensemble import HistGradientBoostingRegressor

    generator = torch.Generator().manual_seed(0)
    some = torch.randperm(len(outcome), generator=generator)[:_ROWS]
    table = rows.inputs[0][some.to(rows.inputs[0].device)].cpu().numpy()
    batch = rows.take(some) if isinstance(invariance, StreamedVariance) else None
    imagined = invariance.imagined_inputs(some, batch)[0].cpu().numpy()
    found = spread = 0.0
    for column in outcome[some.to(outcome.device)].cpu().numpy().T:
        quick = HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0).fit(table, column)
        own, other = (torch.from_numpy(quick.predict(part))[:, None] for part in (table, imagined))
        found += float(invariance.penalty(own, other, some, rows))
        spread += float(own.var())
    if not spread > 0:
        return constant_loss
    return constant_loss / max(found, _LEAST_SHARE * spread)
