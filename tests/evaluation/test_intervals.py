"""Intervals of means, whatever the number of rows."""

import numpy as np
import pytest

from ciplearn.evaluation.predictors import threshold_at
from ciplearn.evaluation.scores import bootstrap_interval


@pytest.mark.parametrize("n", [9_999, 15_000, 19_999, 20_001, 25_000])
def test_an_interval_of_many_numbers_is_as_wide_as_their_error_and_around_their_mean(n):
    values = np.random.default_rng(n).normal(size=n)
    low, high = bootstrap_interval(values, np.random.default_rng(0))
    assert high - low == pytest.approx(2 * 1.96 / n**0.5, rel=0.06)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.1 / n**0.5)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.55, 0.7, 0.9])
def test_a_threshold_decides_for_as_many_as_it_may(rate):
    scores = np.repeat(np.arange(10) / 10, 7)
    threshold = threshold_at(scores, rate)
    assert (scores > threshold).mean() <= rate + 1e-12
    lower = scores[scores < threshold]
    assert not len(lower) or (scores > lower.max()).mean() > rate + 1e-9
