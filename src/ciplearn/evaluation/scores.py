"""Predictive scores in numbers and in words, and confidence intervals of means, shares and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.stats import norm, rankdata

from ciplearn._core.columns import as_numbers, holds_numbers, log_losses
from ciplearn._core.errors import InputError
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.wording import Unit, decimal, percent
from ciplearn.scm.kinds import Array

Interval = tuple[float, float, float]  # value, low, high
UNKNOWN_INTERVAL: Interval = (math.nan, math.nan, math.nan)

SCORE_NAMES = {"mse": "mean squared error", "r2": "R²", "accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC"}

# Resamples times numbers held at a time.
_CHUNK = 250_000

# Resamples of a bootstrap: the ends of a 95 % interval rest on 50 each.
RESAMPLES = 2000

LEVEL = 0.95

# Standard errors on either side of a normal interval.
NORMAL_ERRORS = float(norm.ppf((1 + LEVEL) / 2))

# More numbers than this are first averaged in groups: their means are as independent, and nearer to normal.
_MOST_NUMBERS = 10_000


def predictive_scores(predictor: Predictor, answer: Array, truth: pd.Series) -> dict[str, float]:  # (n,) or (n, q)
    """Return mean squared error and R² of numbers; accuracy, log loss and AUC, where they are known, of labels."""
    if truth.isna().any():
        raise InputError(
            f"The outcome {truth.name!r} is missing in {int(truth.isna().sum())} of {len(truth)} rows; drop those rows."
        )
    if predictor.method == "predict_proba":
        table = np.asarray(answer, dtype=np.float64)
        classes = getattr(predictor.model, "classes_", None)
        known = pd.Index(np.asarray(np.arange(table.shape[1]) if classes is None else classes, dtype=object))
        codes = known.get_indexer(pd.Index(truth.to_numpy(dtype=object)))
        scores = {"accuracy": (table.argmax(axis=1) == codes).mean(), "log_loss": log_losses(table, codes).mean()}
        # Only two labels can be ranked, and only where both occur.
        if table.shape[1] == 2 and set(codes) == {0, 1}:
            scores["auc"] = auc(table[:, 1], codes == 1)[0]
        return {name: float(score) for name, score in scores.items()}
    first = answer.reshape(len(truth), -1)[:, 0]
    if holds_numbers(truth) and np.issubdtype(answer.dtype, np.number):
        numbers = as_numbers(truth)
        error = float(np.square(first - numbers.to_numpy()).mean())
        spread = float(numbers.var(ddof=0))
        return {"mse": error, "r2": 1 - error / spread if spread > 0 else float("nan")}
    return {"accuracy": float((first.astype(object) == truth.to_numpy(dtype=object)).mean())}


def auc(scores: Array, positive: Array) -> Interval:  # (n,), (n,)
    """P(score of a positive > score of a negative), ties by half; the error of DeLong et al. on the scale of logits."""
    p, n = int(positive.sum()), int((~positive).sum())
    if p == 0 or n == 0:
        return UNKNOWN_INTERVAL
    ranks = rankdata(scores)
    # How often each positive beats a negative, and each negative loses to a positive.
    wins = (ranks[positive] - rankdata(scores[positive])) / n
    losses = 1 - (ranks[~positive] - rankdata(scores[~positive])) / p
    value = float(wins.mean())
    if p == 1 or n == 1 or not 0 < value < 1:
        return value, 0.0, 1.0
    half = NORMAL_ERRORS * math.sqrt(wins.var(ddof=1) / p + losses.var(ddof=1) / n) / (value * (1 - value))
    logit = math.log(value / (1 - value))
    return value, 1 / (1 + math.exp(half - logit)), 1 / (1 + math.exp(-half - logit))


def explained(scores: Mapping[str, float], outcome: pd.Series) -> float:
    """1 − loss / loss of the best constant on the same rows; for labels alone, of the share of wrong ones."""
    if "r2" in scores:
        return scores["r2"]
    shares = outcome.value_counts(normalize=True).to_numpy()
    shares = shares[shares > 0]
    if "log_loss" in scores:
        constant, loss = float(-(shares * np.log(shares)).sum()), scores["log_loss"]
    else:
        constant, loss = 1 - float(shares.max()), 1 - scores["accuracy"]
    return 1 - loss / constant if constant > 0 else math.nan


def scores_in_words(scores: Mapping[str, float], unit: Unit) -> dict[str, str]:
    """Names and values of predictive scores, the more telling first."""
    words = {}
    if "accuracy" in scores:
        words["right decisions"] = percent(scores["accuracy"])
    if not math.isnan(scores.get("r2", math.nan)):
        words["variance explained"] = percent(scores["r2"]) if scores["r2"] >= 0 else "none"
    if "auc" in scores:
        words["AUC"] = decimal(scores["auc"], 2)
    if "log_loss" in scores:
        words["log loss"] = decimal(scores["log_loss"])
    if "mse" in scores:
        words["root mean squared error"] = unit.amount(math.sqrt(scores["mse"]))
    return words


def bootstrap_interval(
    values: Array, generator: Generator, bounds: tuple[float, float] = (-np.inf, np.inf), value: float | None = None
) -> tuple[float, float]:  # (n,)
    """Return the studentised 95 % bootstrap interval of the mean of ``values``, cut off at ``bounds``.

    With m and s the mean and its standard error, m*, s* those of a resample and κ the kurtosis of the values, the
    interval is (m − t_hi s', m − t_lo s'), t the quantiles of (m* − m) / s* and s'² = s² (1 + (κ − 1) / n). It follows
    the skewness of variances, which a percentile interval lags behind; (κ − 1) / n is the relative variance of s²,
    which resamples of few large numbers understate.

    ``values`` may be the influences of rows on an estimate: then ``value`` is the estimate that the interval surrounds.
    """
    centre = float(values.mean()) if value is None else value
    if values.size > _MOST_NUMBERS:
        size = -(-values.size // _MOST_NUMBERS)
        groups = values.size // size
        values = values[generator.permutation(values.size)[: groups * size]].reshape(groups, size).mean(axis=1)
    n = values.size
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
    # Where all values are one, nothing but rounding is left.
    if error <= 1e-15 * abs(mean):
        return centre, centre
    statistics = []
    centred = values - mean
    size = max(1, _CHUNK // n)
    for start in range(0, RESAMPLES, size):
        picked = centred[generator.integers(n, size=(min(size, RESAMPLES - start), n), dtype=np.int32)]
        off = picked.mean(axis=1)
        own = np.sqrt(np.maximum(np.einsum("rn,rn->r", picked, picked) / n - off**2, 0) / (n - 1))
        # A resample of one value has no error but that of rounding.
        good = own > 1e-9 * error
        statistics.append(off[good] / own[good])
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(statistics), [tail, 1 - tail])
    # In units of the error: fourth powers of large numbers are beyond any number.
    squares = np.square(centred / error)
    wider = error * np.sqrt(1 + (np.square(squares).mean() / squares.mean() ** 2 - 1) / n)
    return max(bounds[0], float(centre - high * wider)), min(bounds[1], float(centre - low * wider))


def share_interval(values: Array) -> tuple[float, float]:  # (n,), each between 0 and 1
    """Return Wilson's 95 % interval for the mean of zeros and ones: it has a width also where all are the same.

    Values between 0 and 1, such as means over draws, are worth more than one trial each: n p (1 − p) / s² of them.
    """
    n, share = values.size, float(values.mean())
    spread = float(values.var())
    return wilson(share, n * share * (1 - share) / spread if spread > 0 else float(n))


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share of so many trials."""
    z2 = NORMAL_ERRORS**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = NORMAL_ERRORS * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    # At the ends Wilson's formula is exact, but for rounding.
    return 0.0 if share == 0 else max(0.0, centre - half), 1.0 if share == 1 else min(1.0, centre + half)
