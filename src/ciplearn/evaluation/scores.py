"""Predictive scores, confidence intervals of means, shares and ranks, and how numbers stand in sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.stats import norm, rankdata

from ciplearn._core.columns import as_numbers, holds_numbers, log_losses
from ciplearn._core.errors import InputError
from ciplearn.evaluation.predictors import Predictor
from ciplearn.scm.kinds import Array

UNKNOWN = "–"
MODEL, FREE = "this model", "unconstrained"  # names of the models that are compared
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TINY, _HUGE = 1e-4, 1e7  # beyond these, the unit of an outcome is written with a power of ten


def short(value: float) -> str:
    """Write a number with three digits, without noise."""
    if math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else _grouped(value, 0)
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def tied(words: str) -> str:
    """Keep a name, its sign of equality and the value on one line, and so a number and its sign."""
    return words.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}").replace(" %", "\N{NO-BREAK SPACE}%")


def percent(share: float | None) -> str:
    """Write a share; a share that is not zero is never written as zero, and one below a whole never as a whole."""
    if share is None or math.isnan(share):
        return UNKNOWN
    if 0 < share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1:
        return ">99.9 %"
    return "0 %" if share == 0 else "100 %" if share == 1 else f"{100 * share:.1f} %"


def decimal(value: float | None, digits: int = 3) -> str:
    """Write a score or a ratio with so many digits behind the point; what is not zero is never written as zero."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0"
    step = 10.0**-digits
    if abs(value) < step / 2:
        return f"{'>−' if value < 0 else '<'}{step:.{digits}f}"
    return _grouped(value, digits)


@dataclass(frozen=True)
class Unit:
    """How amounts of a prediction are written.

    Probabilities change by points, one point being 0.01. Other predictions are in the unit of the outcome, to a
    thousandth of the decade of its standard deviation.
    """

    probability: bool
    scale: float = 1.0  # the standard deviation of the outcome; not used for probabilities

    def amount(self, value: float | None, *, signed: bool = False) -> str:
        """Write how much a prediction changes."""
        if value is None or math.isnan(value):
            return UNKNOWN
        text = f"{decimal(100 * value, 1)} points" if self.probability else self._in_units(value)
        return f"+{text}" if signed and value > 0 and not text.startswith("<") else text

    def allowed(self, limit: float) -> str:
        """Say how much is allowed."""
        return f"{self.amount(limit)} {'are' if self.probability else 'is'} allowed"

    @property
    def name(self) -> str:
        """What stands behind amounts, for the head of a column."""
        return " (points)" if self.probability else ""

    @property
    def factor(self) -> float:
        """How many units one is: a probability of one is a hundred points."""
        return 100.0 if self.probability else 1.0

    def bare(self, value: float | None) -> str:
        """Write how much a prediction changes, with its sign and without its unit."""
        return self.amount(value, signed=True).removesuffix(" points")

    def root(self, value: float | None) -> str:
        """Write the root of a mean square of changes."""
        return self.amount(None if value is None else math.sqrt(max(value, 0.0)))

    def between(self, low: float | None, high: float | None) -> str:
        """Write an interval of changes."""
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return UNKNOWN
        return " to ".join(self.amount(end).removesuffix(" points") for end in (low, high))

    def level(self, value: float | None) -> str:
        """Write a prediction itself."""
        return percent(value) if self.probability else self.amount(value)

    def _in_units(self, value: float) -> str:
        decade = math.floor(math.log10(self.scale)) if self.scale > 0 and math.isfinite(self.scale) else 0
        if not _TINY <= 10.0**decade <= _HUGE:
            power = f" × 10{str(decade).translate(_SUPERSCRIPTS)}"
            return f"{decimal(value / 10.0**decade)}{power if value else ''}"
        return decimal(value, max(0, 3 - decade))


def _grouped(value: float, digits: int) -> str:
    """A narrow space between thousands, and a minus sign that is as wide as a plus."""
    return f"{value:,.{digits}f}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "−")


Interval = tuple[float, float, float]  # value, low, high
UNKNOWN_INTERVAL: Interval = (math.nan, math.nan, math.nan)
SCORE_NAMES = {"mse": "mean squared error", "r2": "R²", "accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC"}
_CHUNK = 250_000  # resamples times numbers held at a time
RESAMPLES = 2000  # resamples of a bootstrap: the ends of a 95 % interval rest on 50 each
LEVEL = 0.95
NORMAL_ERRORS = float(norm.ppf((1 + LEVEL) / 2))  # standard errors on either side of a normal interval

# More numbers than this are first averaged in groups: their means are as independent, and nearer to normal.
_MOST_NUMBERS = 10_000


def predictive_scores(predictor: Predictor, answer: Array, truth: pd.Series) -> dict[str, float]:  # (n,) or (n, q)
    """Return mean squared error and R² of numbers; accuracy, log loss and AUC, where they are known, of labels."""
    if truth.isna().any():
        why = f"The outcome {truth.name!r} is missing in {int(truth.isna().sum())} of {len(truth)} rows"
        raise InputError(f"{why}; drop those rows.")
    if predictor.method == "predict_proba":
        table = np.asarray(answer, dtype=np.float64)
        classes = getattr(predictor.model, "classes_", None)
        labels = pd.Index(np.asarray(np.arange(table.shape[1]) if classes is None else classes, dtype=object))
        codes = labels.get_indexer(pd.Index(truth.to_numpy(dtype=object)))
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
    writers: dict[str, tuple[str, Callable[[float], str]]] = {
        "accuracy": ("right decisions", percent),
        "r2": ("variance explained", lambda share: percent(share) if share >= 0 else "none"),
        "auc": ("AUC", lambda area: decimal(area, 2)),
        "log_loss": ("log loss", decimal),
        "mse": ("root mean squared error", lambda error: unit.amount(math.sqrt(error))),
    }
    known = {name: score for name, score in scores.items() if not (name == "r2" and math.isnan(score))}
    return {words: write(known[name]) for name, (words, write) in writers.items() if name in known}


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
        error_of_each = np.sqrt(np.maximum(np.einsum("rn,rn->r", picked, picked) / n - off**2, 0) / (n - 1))
        # A resample of one value has no error but that of rounding.
        good = error_of_each > 1e-9 * error
        statistics.append(off[good] / error_of_each[good])
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
