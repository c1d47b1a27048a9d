"""From what people pass as X and weights to a pandas table with named columns, and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from ciplearn._core.errors import InputError
from ciplearn.estimators.complaints import one_sentence
from ciplearn.estimators.missing import without_missing

_NUMBERS_AS_OBJECTS = ("integer", "floating", "mixed-integer-float", "decimal")


def read_table(estimator: Any, X: Any, *, reset: bool) -> pd.DataFrame:
    """Return X as a frame: under its own names, or under x0, x1, ... for an array.

    Parameters
    ----------
    estimator : BaseEstimator
        Where the number and names of features are kept, or compared with; its ``missing`` says whether gaps may be.
    X : pandas or polars frame, or array
    reset : bool
        Whether this is a fit, which sets the expectations, or a prediction, which meets them.
    """
    frame = as_frame(X)
    if frame is None:
        array = _read_array(estimator, X, reset)
        if not reset and not hasattr(estimator, "array_names_"):
            raise InputError(
                "The model was fitted on a table with column names, got an array without; pass a frame, and keep names "
                'in a pipeline with set_output(transform="pandas").'
            )
        names = [f"x{position}" for position in range(array.shape[1])]
        if reset:
            estimator.array_names_ = names
        table = pd.DataFrame(array, columns=names)
        if estimator.missing == "error":
            # Columns without names are not told apart: none of them may have gaps.
            without_missing(table, tuple(names), "error")
        return table
    if reset:
        if len(frame) < 2:
            raise InputError(f"Found a table with {len(frame)} sample, but training needs at least 2; pass more rows.")
        vars(estimator).pop("array_names_", None)
        estimator.n_features_in_ = frame.shape[1]
        estimator.feature_names_in_ = np.asarray(X.columns, dtype=object)
    elif hasattr(estimator, "array_names_"):
        # A frame for a model of an array: columns are matched by position.
        validate_data(estimator, X, reset=False, skip_check_array=True)
        frame = frame.set_axis(estimator.array_names_, axis=1)
    return frame


def as_frame(X: Any) -> pd.DataFrame | None:
    """Return a pandas frame with text labels for a pandas or polars frame, None for anything else."""
    if isinstance(X, pd.DataFrame):
        frame = X.set_axis([str(label) for label in X.columns], axis=1)
    elif hasattr(X, "get_column") and hasattr(X, "columns"):  # polars, without importing it
        frame = pd.DataFrame({str(name): X.get_column(name).to_list() for name in X.columns})
    else:
        return None
    repeated = frame.columns[frame.columns.duplicated()].tolist()
    if repeated:
        raise InputError(f"X has several columns of the same name, got {repeated} more than once; rename them.")
    return frame.assign(**{name: _as_numbers(column) for name, column in frame.items() if column.dtype == object})


def _as_numbers(column: pd.Series) -> pd.Series:
    """Return numbers that came as objects, as from a database or an array of objects, in a type of their own."""
    if pd.api.types.infer_dtype(column, skipna=True) not in _NUMBERS_AS_OBJECTS:
        return column
    return column.where(column.notna(), np.nan).astype(float)


def _read_array(estimator: BaseEstimator, X: Any, reset: bool) -> np.ndarray:
    with one_sentence("X cannot be used", "pass a frame, or an array of numbers, rows by columns"):
        if np.ma.isMaskedArray(X):
            X = np.ma.filled(X.astype(float), np.nan)
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )


def read_weights(weights: Any, table: pd.DataFrame) -> np.ndarray:  # (n,)
    """Check one weight a row; the largest becomes 1."""
    with one_sentence("sample_weight cannot be used", "pass one number a row, none negative, not all zero"):
        checked = _check_sample_weight(weights, table, ensure_non_negative=True)
        # Only ratios count; what single precision cannot hold would not be one.
        return checked / checked.max()
