"""Many estimators that differ in gamma and seed, fitted as one stacked network."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from ciplearn.estimators.base import CIPEstimator
from ciplearn.learning.ensemble import train_stacked
from ciplearn.learning.settings import chosen_device


def can_stack(model: CIPEstimator) -> bool:
    """Whether stacking pays and serves: on a CUDA device, in single precision, one operator, nothing but training."""
    on_device = chosen_device(model.device).type == "cuda"
    alone = not model.early_stopping and model.checkpoint is None
    return on_device and alone and model.prepare_once and not model.mixed_precision


def fit_stacked(
    model: CIPEstimator, X: Any, y: Any, pairs: Sequence[tuple[float, int]], *, progress: bool = False
) -> list[CIPEstimator]:
    """Return one fitted estimator for each pair of gamma and seed.

    Networks start from their own seeds and share the order of batches.
    """
    prototype = clone(model)
    rows, roles = prototype._read_rows(X, y, None, ())
    prototype.roles_ = roles
    device = chosen_device(model.device)
    rows = rows.to(device)
    operator = prototype._bound_penalty().prepare(rows.right, rows.given) if roles.independence is not None else None
    fitted, modules = [], []
    for gamma, seed in pairs:
        one = copy.copy(prototype).set_params(gamma=gamma, random_state=seed)
        one.gamma_ = one._effective_gamma(roles)
        modules.append(one._fresh_module(rows, one._settings(roles).seed))
        fitted.append(one)
    trained = train_stacked(
        modules,
        [one.gamma_ for one in fitted],
        rows,
        prototype._objective(),
        prototype._scaled(fitted[0]._settings(roles), rows, operator),
        operator,
        progress=progress,
    )
    for one, module, loss in zip(fitted, trained.modules, trained.losses, strict=True):
        one.module_, one.n_iter_, one.gamma_scale_ = module, one.epochs, prototype.gamma_scale_
        one.history_ = ({"loss": loss},)
    return fitted
