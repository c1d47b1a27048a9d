"""Predictive scores: how good the predictor is at its own task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.log_loss import log_losses
from ciplearn.evaluation.predictors import Predictor
from ciplearn.scm.kinds import Array


def predictive_scores(predictor: Predictor, answer: Array, truth: pd.Series) -> dict[str, float]:  # (n,) or (n, q)
    """Return mean squared error and R² for numbers; accuracy, and log loss where it is known, for labels."""
    if truth.isna().any():
        raise InputError(
            f"The outcome {truth.name!r} is missing in {int(truth.isna().sum())} of {len(truth)} rows; drop those rows."
        )
    if predictor.method == "predict_proba":
        return _of_probabilities(predictor, answer, truth)
    first = answer.reshape(len(truth), -1)[:, 0]
    if holds_numbers(truth) and np.issubdtype(answer.dtype, np.number):
        numbers = as_numbers(truth)
        error = np.square(first - numbers.to_numpy())
        spread = float(numbers.var(ddof=0))
        return {"mse": float(error.mean()), "r2": 1 - float(error.mean()) / spread if spread > 0 else float("nan")}
    return {"accuracy": float((first.astype(object) == truth.to_numpy(dtype=object)).mean())}


def _of_probabilities(predictor: Predictor, answer: Array, truth: pd.Series) -> dict[str, float]:
    table = np.asarray(answer, dtype=np.float64)
    classes: Any = getattr(predictor.model, "classes_", None)
    if classes is None:
        classes = np.arange(table.shape[1])
    codes = _places(np.asarray(classes, dtype=object), truth)
    return {
        "accuracy": float((table.argmax(axis=1) == codes).mean()),
        "log_loss": float(log_losses(table, codes).mean()),
    }


def _places(classes: Array, truth: pd.Series) -> Array:  # (n,)
    return pd.Index(classes).get_indexer(pd.Index(truth.to_numpy(dtype=object)))
