"""How well a model predicts, and what a tolerance allows to be lost of it.

A tolerance is a share of what a predictor explains: with a tolerance of 0.1, at most a tenth of the difference between
the unconstrained predictor and a constant may be lost. What is lost is known from the rows that judge up to chance, so
a one-sided bound on it has to keep to the tolerance, not the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from pandas.api.extensions import ExtensionArray
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing as take

from ciplearn._core.choices import one_of
from ciplearn._core.errors import InputError

# One-sided: nine tables in ten keep to the tolerance on fresh rows.
_CONFIDENCE = 0.9

# Below so many standard errors, being better than a constant is chance.
_SURE = 1.64

# Draws of the rows that judge, for criteria that are no means over rows.
_RESAMPLES = 200

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Judged:
    """A model's answers on rows that it was not trained on.

    Attributes
    ----------
    truth : array, shape (n,) or (n, k)
        The outcome; places among the classes for a classifier, -1 for a class that training has not seen.
    answers : array, shape (n,) or (n, k)
        Predictions, or probabilities of the classes.
    constant : array, shape (k,)
        What a constant predictor answers: the mean of these rows, or the shares of the classes.
    classes : int
        How many there are; 0 where the outcome holds numbers.
    ends : tuple of int
        Where the rows of a fold end, where each fold is answered by a training of its own.
    """

    truth: Array
    answers: Array
    constant: Array
    classes: int = 0
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, model: Any, X: Any, y: Any) -> Judged:
        """Ask a fitted model about rows."""
        if not is_classifier(model):
            truth = np.asarray(y, dtype=float)
            answers = np.asarray(model.predict(X), dtype=float).reshape(truth.shape)
            return cls(truth, answers, np.mean(truth, axis=0))
        labels, known = np.asarray(y), model.classes_
        places = np.searchsorted(known, labels).clip(max=len(known) - 1)
        # A class that training has not seen has no probability.
        places = np.where(known[places] == labels, places, -1)
        shares = np.bincount(places[places >= 0], minlength=len(known)) / max(1, (places >= 0).sum())
        return cls(places, model.predict_proba(X), shares, len(known))

    def joined(self, other: Judged) -> Judged:
        """Put the rows of another fold below."""
        both = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("truth", "answers")]
        n, weight = len(self.truth), len(self.truth) / (len(self.truth) + len(other.truth))
        ends = (*(self.ends or (n,)), *(n + end for end in other.ends or (len(other.truth),)))
        return Judged(both[0], both[1], weight * self.constant + (1 - weight) * other.constant, self.classes, ends)

    def by_training(self) -> list[Judged]:
        """Return the rows of each fold."""
        return [self.resampled(rows) for rows in np.split(np.arange(len(self.truth)), self.ends[:-1])]

    def of_constant(self) -> Judged:
        """Return the answers of a constant predictor to the same rows."""
        return Judged(self.truth, np.broadcast_to(self.constant, self.answers.shape), self.constant, self.classes)

    def resampled(self, rows: Array) -> Judged:
        """Return some rows."""
        return Judged(self.truth[rows], self.answers[rows], self.constant, self.classes)

    def losses(self) -> Array:  # (n,)
        """Squared error, mean over outputs, or −log of the right class's probability."""
        if not self.classes:
            return np.square(self.answers - self.truth).reshape(len(self.truth), -1).mean(axis=1)
        right = np.where(self.truth >= 0, self.answers[np.arange(len(self.truth)), self.truth], 0.0)
        return -np.log(np.clip(right, 1e-12, None))


def loss(judged: Judged) -> float:
    """Mean squared error, or log loss."""
    return float(judged.losses().mean())


def score(judged: Judged) -> float:
    """R² of a regression, mean over outputs; accuracy of a classifier."""
    if judged.classes:
        return float((judged.answers.argmax(axis=1) == judged.truth).mean())
    truth, answers = (part.reshape(len(judged.truth), -1) for part in (judged.truth, judged.answers))
    spread = np.square(truth - truth.mean(axis=0)).mean(axis=0)
    wrong = np.square(truth - answers).mean(axis=0)
    return float(np.mean(1 - wrong / np.where(spread > 0, spread, 1.0)))


def balanced_accuracy(judged: Judged) -> float:
    """Accuracy within each class, mean over the classes that occur."""
    right = judged.answers.argmax(axis=1) == judged.truth
    return float(np.mean([right[judged.truth == place].mean() for place in np.unique(judged.truth)]))


def auc(judged: Judged) -> float:
    """Chance that a row of a class is ranked above one of another class, mean over the classes that occur."""
    # Here, because most fits never ask, and scipy.stats takes 40 MB.
    from scipy.stats import rankdata

    found = []
    for place in range(1, judged.classes) if judged.classes == 2 else range(judged.classes):
        own = judged.truth == place
        if 0 < own.sum() < len(own):
            ranks = rankdata(judged.answers[:, place])
            found.append((ranks[own].mean() - (own.sum() + 1) / 2) / (~own).sum())
    return float(np.mean(found)) if found else 0.5


CRITERIA: dict[str, Callable[[Judged], float]] = {
    "loss": loss,
    "auc": auc,
    "score": score,
    "balanced_accuracy": balanced_accuracy,
}
_FOR_CLASSES = ("auc", "balanced_accuracy")


def checked_criterion(name: Any, *, classifier: bool, further: tuple[str, ...] = ()) -> str:
    """Return the name of a criterion; the loss where none was named."""
    if name is None:
        return "loss"
    name = one_of(name, "measure", (*CRITERIA, *further))
    if name in _FOR_CLASSES and not classifier:
        raise InputError(f"{name} is for classes, but the outcome is a number; use measure='loss' or 'score'.")
    return name


@dataclass(frozen=True)
class Allowance:
    """What a tolerance allows to be lost, relative to the unconstrained predictor on the same rows.

    Attributes
    ----------
    criterion : str
    tolerance : float
        A share of what the unconstrained predictor explains.
    free : Judged
        The unconstrained predictor's answers.
    choices : int
        Routes among which one is taken. Each may seem to keep to the tolerance by chance, so that the bound is wider
        the more there are.
    """

    criterion: str
    tolerance: float
    free: Judged
    choices: int = 1

    @property
    def explained(self) -> float:
        """How much better than a constant the unconstrained predictor is."""
        return self._cost(self.free.of_constant()) - self._cost(self.free)

    @property
    def explains_something(self) -> bool:
        """Whether it is better than a constant by more than chance."""
        gained = self.free.of_constant().losses() - self.free.losses()
        error = float(gained.std(ddof=1) / np.sqrt(len(gained))) if len(gained) > 1 else np.inf
        return self.explained > 0 and float(gained.mean()) > _SURE * error

    def excess(self, judged: Judged) -> float:
        """What a model loses beyond the tolerance: lost − tolerance · explained; below zero where it keeps to it."""
        return self._cost(judged) - self._cost(self.free) - self.tolerance * max(self.explained, 0.0)

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
        between = float(np.var([replace(self, free=free).excess(own) for free, own in parts], ddof=1))
        return float(np.sqrt(of_rows**2 + max(0.0, between - len(judged.ends) * of_rows**2)))

    def _error_of_rows(self, judged: Judged) -> float:
        """All three predictors answer the same rows."""
        n = len(judged.truth)
        if n < 2:
            return np.inf
        if self.criterion == "loss":
            own, free, constant = (each.losses() for each in (judged, self.free, self.free.of_constant()))
            return float((own - free - self.tolerance * (constant - free)).std(ddof=1) / np.sqrt(n))
        generator = np.random.default_rng(0)
        draws = (generator.integers(n, size=n) for _ in range(_RESAMPLES))
        return float(np.std([replace(self, free=self.free.resampled(d)).excess(judged.resampled(d)) for d in draws]))


def rows_of(X: Any, y: Any, rows: Array) -> tuple[Any, Any]:
    """Return some rows of a table and its outcome."""
    # Not every array of pandas takes the indices of numpy.
    return take(X, rows), y.take(rows) if isinstance(y, ExtensionArray) else take(y, rows)
