"""A confidence interval for a mean of skewed numbers."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ciplearn.scm.kinds import Array

# Resamples times points held at a time.
_CHUNK = 4_000_000


# Resamples of a bootstrap: the ends of a 95 % interval rest on 50 each.
RESAMPLES = 2000

LEVEL = 0.95


def bootstrap_interval(
    values: Array, generator: Generator, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[float, float]:  # (n,)
    """Return the studentised 95 % bootstrap interval of the mean of ``values``, cut off at ``bounds``.

    With m and s the mean and its standard error and m*, s* those of a resample, the interval is
    (m − t_hi s, m − t_lo s), t the quantiles of (m* − m) / s*. It follows the skewness of variances, which a percentile
    interval lags behind.
    """
    n = values.size
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(n) if n > 1 else 0.0
    if error == 0:
        return mean, mean
    statistics = []
    size = max(1, _CHUNK // n)
    for start in range(0, RESAMPLES, size):
        picked = values[generator.integers(n, size=(min(size, RESAMPLES - start), n))]
        own = picked.std(axis=1, ddof=1) / np.sqrt(n)
        good = own > 0
        statistics.append((picked.mean(axis=1)[good] - mean) / own[good])
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(statistics), [tail, 1 - tail])
    return max(bounds[0], float(mean - high * error)), min(bounds[1], float(mean - low * error))
