"""Decisions: what a score becomes at a threshold, and the threshold at which a given share of rows is decided for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import finite, share
from ciplearn._core.plain_data import fields_as_data
from ciplearn.evaluation.predictors import Predictor
from ciplearn.scm.kinds import Array

PROBABILITY_THRESHOLD = 0.5


@dataclass(frozen=True)
class Flips:
    """How often two values of the protected variables lead to two decisions about the same row.

        P(1{Ŷ*_{a′} > t} ≠ 1{Ŷ*_{a″} > t}),   a′, a″ ~ P(A) independently

    Attributes
    ----------
    value : float
    interval : pair of float
        95 %; the threshold counts as given.
    threshold : float
        t.
    rate : float
        The share of rows that are decided for as they are.

    Examples
    --------
    >>> from ciplearn.evaluation import Flips
    >>> print(Flips(0.2, (0.15, 0.26), threshold=0.5, rate=0.4))
    20 % of decisions flip where 40 % are positive (95 % interval 15 % to 26 %)
    """

    value: float
    interval: tuple[float, float]
    threshold: float
    rate: float

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{100 * self.value:.3g} % of decisions flip where {100 * self.rate:.3g} % are positive (95 % interval "
            f"{100 * low:.3g} % to {100 * high:.3g} %)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        return fields_as_data(self)


@dataclass(frozen=True)
class Thresholds:
    """The two thresholds at which one model's decisions are compared: the one given, and the one of an equal rate."""

    given: float
    equal_rate: float


def thresholds_of(
    predictors: Mapping[str, Predictor], answers: Mapping[str, Array], threshold: float | None, rate: float | None
) -> dict[str, Thresholds]:  # (n, q) each
    """Settle the thresholds of every model that decides; answers are those for rows as they are.

    A model decides if it gives the probability of the second of two classes, or one number where a threshold was named.
    The equal rate is the same for all models: by default the mean probability that the first of them gives, or for
    other numbers its share above the threshold.
    """
    if threshold is not None:
        threshold = finite(threshold, "threshold")
    if rate is not None:
        rate = share(rate, "rate")
    found: dict[str, Thresholds] = {}
    for name, predictor in predictors.items():
        scores = answers[name]
        probability = predictor.method == "predict_proba" and scores.shape[1] == 1
        if scores.shape[1] != 1 and threshold is not None:
            raise InputError(
                f"A threshold decides on one number per row, but the predictor gives {scores.shape[1]}; pass "
                "threshold=None, or a function that returns one of them."
            )
        if not probability and threshold is None:
            continue
        given = PROBABILITY_THRESHOLD if threshold is None else threshold
        if rate is None:
            rate = float(scores.mean()) if probability else float((scores > given).mean())
        found[name] = Thresholds(given, threshold_at(scores[:, 0], rate))
    return found


def threshold_at(scores: Array, rate: float) -> float:  # (n,)
    """Return the smallest score that at most a share ``rate`` of the scores exceed."""
    # 0.7 of ten is seven, though 10 · (1 − 0.7) is above 3.
    above = math.floor(rate * len(scores) + 1e-9)
    return float(np.sort(scores)[max(0, len(scores) - above - 1)])
