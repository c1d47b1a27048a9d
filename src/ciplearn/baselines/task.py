"""Regression or classification: what a target asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError

REGRESSION, CLASSIFICATION = "regression", "classification"
TASKS = ("auto", REGRESSION, CLASSIFICATION)

_KINDS_OF_NUMBERS = ("floating", "integer", "mixed-integer-float", "decimal")


def settled_task(task: Any, y: Any) -> str:
    """Return the task; ``"auto"`` classifies text, categories, booleans and exactly two distinct values."""
    if not isinstance(task, str) or task not in TASKS:
        raise InputError(f"task must be one of {', '.join(TASKS)}, got {task!r}; pass one of these.")
    if task != "auto":
        return task
    values = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y).ravel())
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        return REGRESSION
    if isinstance(values.dtype, pd.CategoricalDtype):
        return CLASSIFICATION
    if pd.api.types.infer_dtype(values, skipna=True) not in _KINDS_OF_NUMBERS:
        return CLASSIFICATION
    return CLASSIFICATION if values.nunique() == 2 else REGRESSION
