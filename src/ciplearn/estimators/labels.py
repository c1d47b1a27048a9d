"""Labels of classes as people keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError

_OF_SEVERAL_KINDS = ("mixed", "mixed-integer")


def plain_labels(y: Any) -> Any:
    """Return labels in a type that numpy compares: nullable and object columns of one kind as that kind."""
    if not isinstance(y, list | tuple | pd.Series | pd.api.extensions.ExtensionArray):
        y = np.asarray(y)
    if np.ndim(y) != 1:
        return y
    labels = y if isinstance(y, pd.Series) else pd.Series(y)
    if labels.isna().any():
        raise InputError(
            f"The target contains NaN, {int(labels.isna().sum())} of {len(labels)} labels are missing; drop those rows."
        )
    if labels.dtype == object:
        if pd.api.types.infer_dtype(labels) in _OF_SEVERAL_KINDS:
            kinds = sorted({type(label).__name__ for label in labels})
            raise InputError(f"The target mixes labels of the kinds {', '.join(kinds)}; convert them to text.")
        return labels.infer_objects()
    if pd.api.types.is_extension_array_dtype(labels.dtype) and hasattr(labels.dtype, "numpy_dtype"):
        return labels.to_numpy(dtype=labels.dtype.numpy_dtype)
    return y
