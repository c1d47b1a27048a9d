"""Many estimators that differ in gamma and seed, fitted as one stacked network."""

from __future__ import annotations

from collections.abc import Sequence

from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.prepared import Prepared
from ciplearn.learning.ensemble import train_stacked
from ciplearn.learning.settings import chosen_device


def can_stack(model: CIPEstimator) -> bool:
    """Whether stacking pays and serves: on a CUDA device, in single precision, one operator, nothing but training."""
    on_device = chosen_device(model.device).type == "cuda"
    alone = not model.early_stopping and model.checkpoint is None
    return on_device and alone and model.prepare_once and not model.mixed_precision


def fit_stacked(
    prepared: Prepared, pairs: Sequence[tuple[float, int]], *, progress: bool = False
) -> list[CIPEstimator]:
    """Return one fitted estimator for each pair of gamma and seed.

    Networks start from their own seeds and share the order of batches.
    """
    rows, roles, operator = prepared.rows, prepared.roles, prepared.operator
    fitted = [prepared.untrained(gamma, random_state=seed) for gamma, seed in pairs]
    settings = [one._settings(roles) for one in fitted]
    shared = fitted[0]._scaled(settings[0], rows, operator)
    trained = train_stacked(
        [one._fresh_module(rows, own.seed) for one, own in zip(fitted, settings, strict=True)],
        [own.gamma for own in settings],
        rows,
        fitted[0]._objective(),
        shared,
        operator,
        progress=progress,
    )
    for one, own, module, loss in zip(fitted, settings, trained.modules, trained.losses, strict=True):
        one.module_, one.n_iter_ = module, one.epochs
        one.gamma_, one.gamma_scale_ = own.gamma, shared.gamma_scale
        one.history_ = ({"loss": loss},)
    return fitted
