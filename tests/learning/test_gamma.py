import math

import pytest

from ciplearn._core.errors import InputError
from ciplearn.learning.frontier import largest_allowed_gamma


class Tried:
    """A value that remembers which gammas it was asked for."""

    def __init__(self, value):
        self.value, self.gammas = value, []

    def __call__(self, gamma):
        self.gammas.append(gamma)
        return self.value(gamma)


def test_bisection_closes_in_on_the_largest_allowed_gamma():
    tried = Tried(lambda gamma: gamma)
    chosen = largest_allowed_gamma(tried, lambda value: value <= 3.7, 1e-4, 1e4, max_trials=20)
    assert chosen.gamma <= 3.7 < chosen.gamma * 1.001
    assert chosen.remark == ""
    assert tried.gammas[:3] == [1e4, 1e-4, pytest.approx(1.0)]
    assert len(tried.gammas) == 20


def test_search_ends_where_no_number_lies_between_the_halves():
    tried = Tried(lambda gamma: gamma)
    chosen = largest_allowed_gamma(tried, lambda value: value <= 3.7, 1.0, 10.0, max_trials=200)
    assert chosen.gamma == pytest.approx(3.7, rel=1e-15)
    assert len(tried.gammas) < 60
    assert len(set(tried.gammas)) == len(tried.gammas)


def test_noise_never_yields_a_gamma_that_was_not_allowed():
    tried = Tried(lambda gamma: gamma + 0.5 * math.sin(100 * gamma))
    chosen = largest_allowed_gamma(tried, lambda value: value <= 1.0, 1e-3, 1e3, max_trials=14)
    assert chosen.gamma == max(gamma for gamma in tried.gammas if tried.value(gamma) <= 1.0)


def test_ends_stop_the_search_early():
    tried = Tried(lambda gamma: gamma)
    assert largest_allowed_gamma(tried, lambda value: True, 1.0, 10.0, max_trials=9).gamma == 10.0
    assert tried.gammas == [10.0]
    tried = Tried(lambda gamma: gamma)
    assert largest_allowed_gamma(tried, lambda value: False, 1.0, 10.0, max_trials=9).gamma == 0.0
    assert tried.gammas == [10.0, 1.0]


def test_empty_interval_is_refused():
    with pytest.raises(InputError, match="low must be below high"):
        largest_allowed_gamma(lambda g: g, lambda value: True, 1.0, 1.0, max_trials=9)
