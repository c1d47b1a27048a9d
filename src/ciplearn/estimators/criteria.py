"""How well a model predicts, what a tolerance allows to be lost of it, and the rows that judge.

A tolerance is a share of what a predictor explains: with a tolerance of 0.1, at most a tenth of the difference between
the unconstrained predictor and a constant may be lost. Not the estimate of what is lost but an upper bound keeps to it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import torch
from pandas.api.extensions import ExtensionArray
from sklearn.utils import _safe_indexing as take
from sklearn.utils.validation import _num_samples

from ciplearn._core.arguments import one_of, positive, whole
from ciplearn._core.columns import as_frame, log_losses, refuse_lazy
from ciplearn._core.errors import CopiesWarning, InputError
from ciplearn._core.rows import copy_groups
from ciplearn._core.wording import in_one_sentence

_CONFIDENCE = 0.9  # one-sided: nine tables in ten keep to the tolerance on fresh rows
_SURE = 1.64  # below so many standard errors, being better than a constant is chance
_RESAMPLES = 200  # draws of the rows that judge, for criteria that are no means over rows

Array = np.ndarray[Any, Any]

_FOR_CLASSES = ("auc", "balanced_accuracy")
_ROWS_FOR_ONE_SPLIT = 4000  # as many are judged well enough by a share of them

# What is wrong with text, say, and what to do.
_NO_ROWS = ("X and y cannot be split", "pass tables or arrays with rows")


@dataclass(frozen=True)
class Judged:
    """A model's answers on rows that it was not trained on."""

    truth: Array  # (n,) or (n, k): the outcome; of labels places among the classes, -1 for one that training never saw
    answers: Array  # (n,) or (n, k): predictions, or probabilities of the classes
    constant: Array  # (k,): what a constant predictor answers, the mean of these rows or the shares of the classes
    classes: int = 0  # how many there are; 0 where the outcome holds numbers
    ends: tuple[int, ...] = ()  # where the rows of a fold end, where each fold is answered by a training of its own
    weights: Array | None = None  # (n,): how much each row counts; all alike by default

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, weights: Array | None = None) -> Judged:
        """Ask a fitted model."""
        if getattr(model, "classes_", None) is not None:
            return cls.of_labels(np.asarray(y), model.predict_proba(X), model.classes_, weights)
        return cls.of_numbers(np.asarray(y, dtype=float), np.asarray(model.predict(X), dtype=float), weights)

    @classmethod
    def of_numbers(cls, truth: Array, answers: Array, weights: Array | None = None) -> Judged:
        """Take what a model says about numbers."""
        return cls(truth, answers.reshape(truth.shape), np.average(truth, axis=0, weights=weights), weights=weights)

    @classmethod
    def of_labels(cls, labels: Array, answers: Array, classes: Array, weights: Array | None = None) -> Judged:
        """Take the probabilities of classes, beside the labels."""
        # Classes in any order; one that training has not seen has no probability.
        places = pd.Index(classes).get_indexer(pd.Index(labels))
        seen = places >= 0
        counts = np.bincount(places[seen], None if weights is None else weights[seen], minlength=len(classes))
        return cls(places, answers, counts / (counts.sum() or 1.0), len(classes), weights=weights)

    def joined(self, other: Judged) -> Judged:
        """Put the rows of another fold below."""
        both = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("truth", "answers")]
        n = len(self.truth)
        ends = (*(self.ends or (n,)), *(n + end for end in other.ends or (len(other.truth),)))
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        share = self.total / (self.total + other.total)
        constant = share * self.constant + (1 - share) * other.constant
        return Judged(both[0], both[1], constant, self.classes, ends, weights)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(len(self.truth) if self.weights is None else self.weights.sum())

    def mean(self, values: Array) -> Any:  # (n,) or (n, k) -> () or (k,)
        """Mean over rows by their weight."""
        return np.average(values, axis=0, weights=self.weights)

    def standard_error(self, values: Array) -> float:  # (n,)
        """Of that mean."""
        n = len(values)
        if n < 2:
            return np.inf
        shares = np.full(n, 1 / n) if self.weights is None else self.weights / self.total
        return float(np.sqrt(np.square(shares * (values - self.mean(values))).sum() * n / (n - 1)))

    def by_training(self) -> list[Judged]:
        """Return the rows of each fold."""
        return [self.resampled(rows) for rows in np.split(np.arange(len(self.truth)), self.ends[:-1])]

    def of_constant(self) -> Judged:
        """Return the answers of a constant predictor to the same rows."""
        return replace(self, answers=np.broadcast_to(self.constant, self.answers.shape), ends=())

    def resampled(self, rows: Array) -> Judged:
        """Return some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Judged(self.truth[rows], self.answers[rows], self.constant, self.classes, weights=weights)

    def losses(self) -> Array:  # (n,)
        """Squared error, mean over outputs, or −log of the right class's probability."""
        if not self.classes:
            return np.square(self.answers - self.truth).reshape(len(self.truth), -1).mean(axis=1)
        return log_losses(self.answers, self.truth)


def loss(judged: Judged) -> float:
    """Mean squared error, or log loss."""
    return float(judged.mean(judged.losses()))


def score(judged: Judged) -> float:
    """R² of a regression, mean over outputs; accuracy of a classifier."""
    if judged.classes:
        return float(judged.mean(judged.answers.argmax(axis=1) == judged.truth))
    truth, answers = (part.reshape(len(judged.truth), -1) for part in (judged.truth, judged.answers))
    spread = judged.mean(np.square(truth - judged.mean(truth)))
    return float(np.mean(1 - judged.mean(np.square(truth - answers)) / np.where(spread > 0, spread, 1.0)))


def balanced_accuracy(judged: Judged) -> float:
    """Accuracy within each class, mean over the classes that occur."""
    rows = (judged.resampled(np.flatnonzero(judged.truth == label)) for label in np.unique(judged.truth))
    return float(np.mean([each.mean(each.answers.argmax(axis=1) == each.truth) for each in rows if each.total > 0]))


def auc(judged: Judged) -> float:
    """Chance that a row of a class is ranked above one of another class, mean over the classes that occur."""
    areas = []
    for label in range(1, judged.classes) if judged.classes == 2 else range(judged.classes):
        of_class = judged.truth == label
        if 0 < judged.mean(of_class) < 1:
            areas.append(_area(of_class, judged.answers[:, label], judged.weights))
    return float(np.mean(areas)) if areas else 0.5


def _area(of_class: Array, answers: Array, weights: Array | None) -> float:
    """The weight of pairs that are ranked rightly, of all pairs of one row with the class and one without; ties half.

    scikit-learn says the same, and checks so much that hundreds of draws of the rows would take seconds.
    """
    order = np.argsort(answers)
    ranked, weight = answers[order], np.ones(len(answers)) if weights is None else weights[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    within = np.add.reduceat(np.where(of_class[order], weight, 0.0), starts)
    without = np.add.reduceat(np.where(of_class[order], 0.0, weight), starts)
    return float(within @ (np.cumsum(without) - without / 2) / (within.sum() * without.sum()))


CRITERIA: dict[str, Callable[[Judged], float]] = {one.__name__: one for one in (loss, auc, score, balanced_accuracy)}


def checked_criterion(name: Any, *, classifier: bool, further: tuple[str, ...] = ()) -> str:
    """Return the name of a criterion; the loss where none was named."""
    if name is None:
        return "loss"
    name = one_of(name, "scoring", (*CRITERIA, *further))
    if name in _FOR_CLASSES and not classifier:
        raise InputError(f"{name} is for classes, but the outcome is a number; use scoring='loss' or 'score'.")
    return name


@dataclass(frozen=True)
class Allowance:
    """What a tolerance allows to be lost, relative to the unconstrained predictor on the same rows."""

    criterion: str
    tolerance: float  # a share of what the unconstrained predictor explains
    free: Judged  # the unconstrained predictor's answers
    # Routes among which one is taken: each may seem to keep to the tolerance by chance, so that the bound is wider the
    # more there are.
    choices: int = 1

    @property
    def explained(self) -> float:
        """How much better than a constant the unconstrained predictor is."""
        return self._cost(self.free.of_constant()) - self._cost(self.free)

    @property
    def explains_something(self) -> bool:
        """Whether it is better than a constant by more than chance."""
        gained = self.free.of_constant().losses() - self.free.losses()
        return self.explained > 0 and float(self.free.mean(gained)) > _SURE * self.free.standard_error(gained)

    def excess(self, judged: Judged) -> float:
        """What a model loses beyond the tolerance: lost − tolerance · explained; below zero where it keeps to it."""
        free = self._cost(self.free)
        explained = self._cost(self.free.of_constant()) - free
        return self._cost(judged) - free - self.tolerance * max(explained, 0.0)

    def bound(self, judged: Judged) -> float:
        """Upper bound of `excess`: both what is lost and what is explained are known up to chance."""
        errors = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / self.choices)
        return self.excess(judged) + errors * self._error(judged)

    def allows(self, judged: Judged) -> bool:
        """Whether a model keeps to the tolerance, beyond chance."""
        return self.bound(judged) <= 0

    def needed(self, judged: Judged) -> float | None:
        """The smallest tolerance, in hundredths, that allows a model; None where one below 1 does not."""
        low, high = math.floor(100 * self.tolerance), 100
        if not replace(self, tolerance=1.0).allows(judged):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if replace(self, tolerance=middle / 100).allows(judged) else (middle, high)
        return high / 100

    def _cost(self, judged: Judged) -> float:
        value = CRITERIA[self.criterion](judged)
        return value if self.criterion == "loss" else -value

    def _error(self, judged: Judged) -> float:
        """Standard error of `excess` for one training: chance in the rows that judge, and in training.

        The latter is what folds differ by beyond what their rows explain.
        """
        of_rows = self._error_of_rows(judged)
        if len(judged.ends) < 2:
            return of_rows
        parts = zip(self.free.by_training(), judged.by_training(), strict=True)
        between = float(np.var([replace(self, free=free).excess(fold) for free, fold in parts], ddof=1))
        return float(np.sqrt(of_rows**2 + max(0.0, between - len(judged.ends) * of_rows**2)))

    def _error_of_rows(self, judged: Judged) -> float:
        n = len(judged.truth)
        if n < 2:
            return np.inf
        if self.criterion == "loss":
            # All three predictors answer the same rows.
            losses, free, constant = (each.losses() for each in (judged, self.free, self.free.of_constant()))
            return judged.standard_error(losses - free - self.tolerance * (constant - free))
        generator = np.random.default_rng(0)
        draws = (generator.integers(n, size=n) for _ in range(_RESAMPLES))
        return float(np.std([replace(self, free=self.free.resampled(d)).excess(judged.resampled(d)) for d in draws]))


def rows_of(X: Any, y: Any, rows: Array) -> tuple[Any, Any]:
    """Return some rows of a table and its outcome."""
    # Not every array of pandas takes the indices of numpy.
    return take(X, rows), y.take(rows) if isinstance(y, ExtensionArray) else take(y, rows)


def _copies(X: Any, y: Any) -> np.ndarray:  # (n,)
    """Return for each row the first that it is a copy of, and warn where there are any."""
    n, table, target = refuse_other_rows(X, y), as_frame(X), as_frame(y)
    if table is None:
        table = pd.DataFrame(X if np.ndim(X) == 2 else np.zeros((n, 0)))
    if target is None:
        with in_one_sentence(*_NO_ROWS):
            target = pd.DataFrame(np.asarray(y, dtype=None if hasattr(y, "dtype") else object))
    both = [
        part.set_axis([f"{side}{number}" for number in range(part.shape[1])], axis=1).reset_index(drop=True)
        for side, part in (("x", table), ("y", target))
    ]
    groups = copy_groups(pd.concat(both, axis=1))
    if copied := int((groups != np.arange(len(groups))).sum()):
        sentence = f"{copied} of {len(groups)} rows are copies of others; copies stay on one side of every split."
        warnings.warn(sentence, CopiesWarning, stacklevel=4)
    return groups


def refuse_other_rows(X: Any, y: Any) -> int:
    """Return how many rows two tables have, or refuse them where one has more."""
    refuse_lazy(X)
    refuse_lazy(y)
    with in_one_sentence(*_NO_ROWS):
        n, n_targets = _num_samples(X), _num_samples(y)
    if n != n_targets:
        raise InputError(f"X has {n} rows and y has {n_targets}; pass the same rows to both.")
    return int(n)


def split_rows(
    X: Any, y: Any, share: float, random_state: Any, labels: Any = None
) -> tuple[np.ndarray, np.ndarray]:  # positions
    """Return the rows to train on and a share of the rows to judge on, in equal parts of each label."""
    return judging_splits(X, y, share, random_state, labels, folds=1)[0]


def judging_splits(
    X: Any, y: Any, share: float, random_state: Any, labels: Any, folds: int | None, usual: int = 1
) -> list[tuple[np.ndarray, np.ndarray]]:  # positions
    """Return rows to train on and rows to judge on: one split with a share of the rows, or one per fold.

    Where the number of folds is left open, many rows are split once; of few, every row judges in its turn. Copies of
    a row stay together.
    """
    # Only here: it takes memory, and most trainings have no use for it.
    from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

    copies = _copies(X, y)
    n = len(copies)
    if positive(share, "The share of rows that judge") >= 1:
        raise InputError(f"The share of rows that judge must be below 1, got {share!r}; pass for example 0.2.")
    # One row of each group of copies is drawn for all of them.
    alone = np.unique(copies)
    labels = labels if labels is None or len(alone) == n else np.asarray(labels)[alone]
    with in_one_sentence(f"{n} training rows cannot be split", "pass more rows"):
        cut = [train_test_split(np.arange(len(alone)), test_size=share, random_state=random_state, stratify=labels)]
    if folds is None:
        folds = usual if n < _ROWS_FOR_ONE_SPLIT else 1
    if whole(folds, "cv", minimum=1) > 1:
        kind = KFold if labels is None else StratifiedKFold
        with in_one_sentence(f"{n} training rows cannot be split", "pass more rows, or cv=1"):
            cut = list(kind(folds, shuffle=True, random_state=random_state).split(np.zeros(len(alone)), labels))

    def with_copies(picked: np.ndarray) -> np.ndarray:
        return picked if len(alone) == n else np.flatnonzero(np.isin(copies, alone[picked]))

    return [(with_copies(train), with_copies(judge)) for train, judge in cut]


def held_out(n: int, share: float, seed: int, turn: int = 0) -> tuple[torch.Tensor, torch.Tensor]:  # positions
    """Return the rows to train on, and those that say when to stop; in another turn others do, as far as they go."""
    count = stopping_count(n, share)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).roll(-turn * count)
    return order[count:], order[:count]


def stopping_count(n: int, share: float, most: int | None = None, left_out: int = 0) -> int:
    """Return how many of n rows, at most ``most``, say when to stop; refuse a share that leaves none to train on.

    ``left_out`` of the rows are not trained on anyway.
    """
    if positive(share, "validation_fraction") >= 1:
        raise InputError(f"validation_fraction must be below 1, got {share!r}; pass for example 0.1.")
    count = min(max(2, round(share * n)), n if most is None else most)
    if n - left_out - count < 2:
        left = f"Early stopping holds out {count} of {n - left_out} rows, which leaves {max(0, n - left_out - count)}"
        raise InputError(f"{left} to train on, and training needs 2; pass more rows, or early_stopping=False.")
    return count
