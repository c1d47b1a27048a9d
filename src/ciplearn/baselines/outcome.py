"""The outcome as columns beside the inputs, for what conditions on it in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ciplearn.baselines.task import CLASSIFICATION


def outcome_columns(y: Any, task: str) -> pd.DataFrame:
    """Return y under names that no input has; classes as text, so that they are categories."""
    values = np.asarray(y)
    values = values.reshape(len(values), -1)
    parts = {f"the outcome[{place}]": part for place, part in enumerate(values.T)}
    return pd.DataFrame({name: part.astype(str) if task == CLASSIFICATION else part for name, part in parts.items()})
