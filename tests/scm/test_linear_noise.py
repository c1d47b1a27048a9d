import numpy as np
import pytest

from ciplearn.scm.equation import linear_noise


def draw(n, generator):
    return generator.normal(size=n)


@pytest.mark.parametrize("function", [lambda p, u: p["A"] + u, lambda p, u: np.exp(p["A"]) * u - 3, lambda p, u: -u])
def test_noise_that_enters_linearly_is_solved_for(function):
    generator = np.random.default_rng(0)
    parents, noise = {"A": generator.normal(size=200)}, generator.normal(size=200)
    value = function(parents, noise)
    solved = linear_noise(function, draw, parents, value)
    assert solved is not None
    np.testing.assert_allclose(solved[0], noise, atol=1e-11)


@pytest.mark.parametrize(
    "function",
    [lambda p, u: u**2, lambda p, u: np.abs(u), lambda p, u: np.where(u > 2.5, 5 * u, u), lambda p, u: p["A"] + 0 * u],
)
def test_what_is_not_linear_is_not_solved_for(function):
    generator = np.random.default_rng(0)
    parents, noise = {"A": generator.normal(size=2000)}, generator.normal(size=2000)
    assert linear_noise(function, draw, parents, function(parents, noise)) is None


def test_draws_that_lie_close_together_cost_no_accuracy():
    generator = np.random.default_rng(0)
    parents, noise = {"A": generator.normal(size=200_000)}, generator.normal(size=200_000)
    value = parents["A"] + noise
    found, _ = linear_noise(lambda p, u: p["A"] + u, draw, parents, value)
    assert np.abs(found - noise).max() < 1e-13


def test_the_jacobian_is_one_over_the_slope():
    parents = {"A": np.ones(4)}
    _, slope = linear_noise(lambda p, u: p["A"] + 4 * u, draw, parents, np.arange(4.0))
    np.testing.assert_allclose(-np.log(np.abs(slope)), -np.log(4), atol=1e-6)
