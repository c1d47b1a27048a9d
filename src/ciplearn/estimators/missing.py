"""What happens to missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError

POLICIES = ("error", "drop", "impute")


def without_missing(table: pd.DataFrame, used: tuple[str, ...], policy: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Apply the policy to the used columns; return the table and which rows are kept.

    Parameters
    ----------
    table : DataFrame
    used : tuple of str
        Columns that are read.
    policy : str
        ``"error"`` refuses missing values; ``"drop"`` leaves out rows that have any; ``"impute"`` puts the training
        rows' median in place of a missing number and makes "missing" a category of its own.
    """
    if policy not in POLICIES:
        raise InputError(f"missing must be one of {', '.join(POLICIES)}, got {policy!r}; pass one of these.")
    if policy == "error":
        refuse_missing(table, used, 'pass missing="impute", or missing="drop" to leave out such rows in training')
    kept = np.ones(len(table), dtype=bool)
    if policy != "drop":
        return table, kept
    kept = ~table[list(used)].isna().any(axis=1).to_numpy()
    if kept.sum() < 2:
        raise InputError(
            f"Only {int(kept.sum())} of {len(table)} rows have all values; fill some, or use fewer columns."
        )
    return table[kept], kept


def refuse_unpredictable(table: pd.DataFrame, used: tuple[str, ...], policy: str) -> None:
    """Raise where a row to predict misses a value that the policy in training gives no place to."""
    if policy != "impute":
        refuse_missing(table, used, 'train with missing="impute" to predict such rows')


def refuse_missing(table: pd.DataFrame, used: tuple[str, ...], otherwise: str) -> None:
    """Raise where a used column misses a value; ``otherwise`` is the advice beside dropping and filling."""
    gaps = table[list(used)].isna()
    if gaps.to_numpy().any():
        columns = gaps.columns[gaps.any()].tolist()
        raise InputError(
            f"Input contains NaN: {int(gaps.any(axis=1).sum())} of {len(table)} rows miss a value in {columns}; "
            f"drop or fill them, or {otherwise}."
        )
