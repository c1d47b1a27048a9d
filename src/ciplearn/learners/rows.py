"""The rows of a training as arrays, for learners that are not trained batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ciplearn._core.errors import InputError
from ciplearn.estimators.learner import Training
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
    weights = None if rows.weights is None else rows.weights.double().cpu().numpy()
    return rows.inputs[0].cpu().numpy(), weights


def labels_of(training: Training) -> Array:  # (n,)
    """Return the place of each row's label among the classes."""
    return training.split.rows.target.cpu().numpy().astype(np.int64)
