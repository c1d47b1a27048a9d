"""Rows that train and rows that judge: one split or folds, copies of a row together, and rows that say when to stop."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import _num_samples

from ciplearn._core.errors import CopiesWarning, InputError, in_one_sentence
from ciplearn._core.numbers import positive, whole
from ciplearn._core.row_digests import copy_groups
from ciplearn._core.tables import as_frame, refuse_lazy

# As many are judged well enough by a share of them.
_ROWS_FOR_ONE_SPLIT = 4000

# What is wrong with text, say, and what to do.
_NO_ROWS = ("X and y cannot be split", "pass tables or arrays with rows")


def split_rows(
    X: Any, y: Any, share: float, random_state: Any, labels: Any = None
) -> tuple[np.ndarray, np.ndarray]:  # positions
    """Return the rows to train on and a share of the rows to judge on, in equal parts of each label.

    Copies of a row stay together.
    """
    return _split(_copies(X, y), share, random_state, labels)


def _split(copies: np.ndarray, share: float, random_state: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split

    if positive(share, "The share of rows that judge") >= 1:
        raise InputError(f"The share of rows that judge must be below 1, got {share!r}; pass for example 0.2.")
    alone, labels = _without_copies(copies, labels)
    with in_one_sentence(f"{len(copies)} training rows cannot be split", "pass more rows"):
        train, judge = train_test_split(
            np.arange(len(alone)), test_size=share, random_state=random_state, stratify=labels
        )
    return _with_copies(copies, alone, train), _with_copies(copies, alone, judge)


def _copies(X: Any, y: Any) -> np.ndarray:  # (n,)
    """Return for each row the first that it is a copy of, and warn where there are any."""
    n, table, target = refuse_other_rows(X, y), as_frame(X), as_frame(y)
    if table is None:
        table = pd.DataFrame(X if np.ndim(X) == 2 else np.zeros((n, 0)))
    if target is None:
        with in_one_sentence(*_NO_ROWS):
            target = pd.DataFrame(np.asarray(y, dtype=None if hasattr(y, "dtype") else object))
    both = [
        part.set_axis([f"{side}{place}" for place in range(part.shape[1])], axis=1).reset_index(drop=True)
        for side, part in (("x", table), ("y", target))
    ]
    groups = copy_groups(pd.concat(both, axis=1))
    copied = int((groups != np.arange(len(groups))).sum())
    if copied:
        warnings.warn(
            f"{copied} of {len(groups)} rows are copies of others; copies stay on one side of every split.",
            CopiesWarning,
            stacklevel=4,
        )
    return groups


def _without_copies(copies: np.ndarray, labels: Any) -> tuple[np.ndarray, Any]:
    """Return a row of each group of copies, with the labels of these rows."""
    alone = np.unique(copies)
    return alone, labels if labels is None or len(alone) == len(copies) else np.asarray(labels)[alone]


def _with_copies(copies: np.ndarray, alone: np.ndarray, picked: np.ndarray) -> np.ndarray:  # positions
    return picked if len(alone) == len(copies) else np.flatnonzero(np.isin(copies, alone[picked]))


def refuse_other_rows(X: Any, y: Any) -> int:
    """Return how many rows two tables have, or refuse them where one has more."""
    refuse_lazy(X)
    refuse_lazy(y)
    with in_one_sentence(*_NO_ROWS):
        n, n_targets = _num_samples(X), _num_samples(y)
    if n != n_targets:
        raise InputError(f"X has {n} rows and y has {n_targets}; pass the same rows to both.")
    return int(n)


def judging_splits(
    X: Any, y: Any, share: float, random_state: Any, labels: Any, folds: int | None, usual: int
) -> list[tuple[np.ndarray, np.ndarray]]:  # positions
    """Return rows to train on and rows to judge on: one split with a share of the rows, or one per fold.

    Where the number of folds is left open, many rows are split once; of few, every row judges in its turn. Copies of
    a row stay together.
    """
    copies = _copies(X, y)
    split = _split(copies, share, random_state, labels)
    if folds is None:
        folds = usual if len(copies) < _ROWS_FOR_ONE_SPLIT else 1
    if whole(folds, "cv", minimum=1) == 1:
        return [split]
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if labels is None else StratifiedKFold
    with in_one_sentence(f"{len(copies)} training rows cannot be split", "pass more rows, or cv=1"):
        alone, labels = _without_copies(copies, labels)
        cut = list(kind(folds, shuffle=True, random_state=random_state).split(np.zeros(len(alone)), labels))
    return [(_with_copies(copies, alone, train), _with_copies(copies, alone, judge)) for train, judge in cut]


def held_out(n: int, share: float, seed: int, turn: int = 0) -> tuple[torch.Tensor, torch.Tensor]:  # positions
    """Return the rows to train on, and those that say when to stop; in another turn others do, as far as they go."""
    count = stopping_count(n, share)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    order = order.roll(-turn * count)
    return order[count:], order[:count]


def stopping_count(n: int, share: float, most: int | None = None, left_out: int = 0) -> int:
    """Return how many of n rows, at most ``most``, say when to stop; refuse a share that leaves none to train on.

    ``left_out`` of the rows are not trained on anyway.
    """
    if positive(share, "validation_fraction") >= 1:
        raise InputError(f"validation_fraction must be below 1, got {share!r}; pass for example 0.1.")
    count = min(max(2, round(share * n)), n if most is None else most)
    if n - left_out - count < 2:
        raise InputError(
            f"Early stopping holds out {count} of {n - left_out} rows, which leaves {max(0, n - left_out - count)} to "
            f"train on, and training needs 2; pass more rows, or early_stopping=False."
        )
    return count
