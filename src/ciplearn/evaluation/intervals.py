"""Confidence intervals for means of skewed numbers, and for shares."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from scipy.stats import norm

from ciplearn.scm.kinds import Array

# Resamples times numbers held at a time.
_CHUNK = 250_000

# Resamples of a bootstrap: the ends of a 95 % interval rest on 50 each.
RESAMPLES = 2000

LEVEL = 0.95

# More numbers than this are first averaged in groups: their means are as independent, and nearer to normal.
_MOST_NUMBERS = 10_000


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


# Standard errors on either side of a normal interval.
NORMAL_ERRORS = float(norm.ppf((1 + LEVEL) / 2))


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
