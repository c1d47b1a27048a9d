import math

import pytest

from ciplearn._core.errors import InputError
from ciplearn.learning.gamma import largest_allowed_gamma


def test_bisection_closes_in_on_the_largest_allowed_gamma():
    choice = largest_allowed_gamma(lambda g: g, lambda value: value <= 3.7, 1e-4, 1e4, max_trials=20)
    assert choice.gamma <= 3.7 < choice.gamma * 1.001
    assert choice.remark == ""
    assert [trial.gamma for trial in choice.trials[:3]] == [1e4, 1e-4, pytest.approx(1.0)]


def test_noise_never_yields_a_gamma_that_was_not_allowed():
    def noisy(gamma):
        return gamma + 0.5 * math.sin(100 * gamma)

    choice = largest_allowed_gamma(noisy, lambda value: value <= 1.0, 1e-3, 1e3, max_trials=14)
    tried = {trial.gamma: trial for trial in choice.trials}
    assert tried[choice.gamma].allowed
    assert choice.gamma == max(trial.gamma for trial in choice.trials if trial.allowed)


def test_ends_stop_the_search_early():
    everything = largest_allowed_gamma(lambda g: g, lambda value: True, 1.0, 10.0, max_trials=9)
    assert (everything.gamma, len(everything.trials)) == (10.0, 1)
    nothing = largest_allowed_gamma(lambda g: g, lambda value: False, 1.0, 10.0, max_trials=9)
    assert (nothing.gamma, len(nothing.trials)) == (0.0, 2)


def test_empty_interval_is_refused():
    with pytest.raises(InputError, match="low must be below high"):
        largest_allowed_gamma(lambda g: g, lambda value: True, 1.0, 1.0, max_trials=9)
