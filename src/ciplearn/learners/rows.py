"""The rows of a training as arrays, for learners that are not trained batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from ciplearn._core.errors import InputError
from ciplearn.estimators.learner import Training
from ciplearn.learning.dataset_rows import Rows
from ciplearn.learning.rows import TrainingRows

Array = np.ndarray[Any, Any]


def table_rows(training: Training, name: str) -> tuple[Array, Array | None]:  # (n, width), (n,)
    """Return the encoded table and the rows' weights, or refuse what only a network takes."""
    rows, estimator = training.split.rows, training.estimator
    if not isinstance(rows, TrainingRows) or len(rows.inputs) > 1:
        raise InputError(
            f"The learner {name!r} takes a table in memory, got tensors or a table that streams; pass "
            f"learner=Network()."
        )
    for keyword in ("module", "warm_start"):
        if getattr(estimator, keyword):
            raise InputError(f"{keyword} is for networks, got it with the learner {name!r}; drop one of the two.")
    return rows.inputs[0].numpy(), row_weights(rows)


def row_weights(rows: Rows) -> Array | None:  # (n,)
    """Return the weights of rows, where they have any."""
    return None if rows.weights is None else rows.weights.double().numpy()


def loss_of(training: Training, module: nn.Module) -> float:
    """Return the loss of a fitted module on the rows that it was trained on."""
    rows = training.split.rows
    with torch.no_grad():
        return float(training.estimator._objective().loss(module(rows.inputs[0]).float(), rows.target, rows.weights))
