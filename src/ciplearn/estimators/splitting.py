"""Rows that train and rows that judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _num_samples

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import positive
from ciplearn.estimators.complaints import one_sentence
from ciplearn.learning import Rows


def split_rows(
    X: Any, y: Any, share: float, random_state: Any, labels: Any = None
) -> tuple[np.ndarray, np.ndarray]:  # positions
    """Return the rows to train on and a share of the rows to judge on, in equal parts of each label."""
    with one_sentence("X and y cannot be split", "pass tables or arrays with rows"):
        n, n_targets = _num_samples(X), _num_samples(y)
    if n != n_targets:
        raise InputError(f"X has {n} rows and y has {n_targets}; pass the same rows to both.")
    if positive(share, "The share of rows that judge") >= 1:
        raise InputError(f"The share of rows that judge must be below 1, got {share!r}; pass for example 0.2.")
    with one_sentence(f"{n} training rows cannot be split", "pass more rows"):
        train, judge = train_test_split(np.arange(n), test_size=share, random_state=random_state, stratify=labels)
    return train, judge


def held_out_rows(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Return encoded rows to train on, and those that say when to stop."""
    if positive(share, "validation_fraction") >= 1:
        raise InputError(f"validation_fraction must be below 1, got {share!r}; pass for example 0.1.")
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    held = max(2, round(share * len(rows)))
    return rows.take(order[held:]), rows.take(order[:held])
