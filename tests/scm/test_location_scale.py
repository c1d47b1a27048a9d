import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ciplearn._core.errors import InputError
from ciplearn.scm import AdditiveNoise, LocationScale, Log, Logit
from ciplearn.scm.kinds import Vector
from ciplearn.scm.location_scale import Identity
from tests.scm.models import sample


@pytest.mark.parametrize("link", [Identity(), Log(), Log(-2.0), Logit(), Logit(-1.0, 3.0)])
def test_a_link_is_increasing_and_undone_by_its_inverse(link):
    values = np.linspace(0.01, 0.99, 50)
    line = link.forward(values)
    assert (np.diff(line) > 0).all()
    np.testing.assert_allclose(link.back(line), values, atol=1e-12)
    assert link.allows(values)


def test_a_link_refuses_values_beyond_its_bounds(generator):
    assert not Log().allows(np.array([0.0, 1.0]))
    assert not Logit().allows(np.array([0.5, 1.0]))
    with pytest.raises(InputError, match="V holds -1 to 2, beyond what Log"):
        AdditiveNoise(link=Log()).fit(sample(np.arange(30.0), np.linspace(-1, 2, 30)), generator)
    given = sample(np.arange(30.0), np.linspace(1, 2, 30))
    for recipe in (AdditiveNoise(link=Log()), AdditiveNoise(LinearRegression(), Log()), LocationScale(Log())):
        with pytest.raises(InputError, match="V holds 0 to 5, beyond what Log"):
            recipe.fit(given, generator).recover({"A": np.zeros(2)}, np.array([0.0, 5.0]))


@pytest.mark.parametrize("recipe", [AdditiveNoise(), LocationScale(), AdditiveNoise(link=Log()), LocationScale(Log())])
def test_noise_and_value_determine_each_other(recipe, generator):
    a = generator.normal(size=300)
    given = sample(a, np.exp(a + generator.normal(size=300)))
    mechanism = recipe.fit(given, generator)
    noise = mechanism.recover(given.values, given.target)
    np.testing.assert_allclose(mechanism.evaluate(given.values, noise), given.target, rtol=1e-10)
    assert mechanism.evaluate({"A": np.zeros(0)}, mechanism.draw(0, generator)).shape == (0,)


def test_a_scale_that_depends_on_the_parents_is_found(generator):
    a = generator.uniform(-1, 1, size=4000)
    mechanism = LocationScale().fit(sample(a, a + np.exp(a) * generator.normal(size=4000)), generator)
    grid = {"A": np.linspace(-0.9, 0.9, 7)}
    mean, scale = mechanism.moments(grid)
    np.testing.assert_allclose(mean, grid["A"], atol=0.15)
    np.testing.assert_allclose(scale / scale[3], np.exp(grid["A"]), rtol=0.12)


def test_each_number_of_a_vector_has_a_scale_of_its_own_and_residuals_stay_together(generator):
    a = generator.uniform(-1, 1, size=3000)
    u = generator.normal(size=3000)
    given = sample(a, np.column_stack([np.exp(a) * u, 3 * u]), Vector(2))
    mechanism = LocationScale().fit(given, generator)
    scale = mechanism.moments({"A": np.array([-0.8, 0.8])})[1]
    assert scale[1, 0] / scale[0, 0] == pytest.approx(np.exp(1.6), rel=0.2)
    assert scale[1, 1] / scale[0, 1] == pytest.approx(1, rel=0.1)
    noise = mechanism.draw(500, generator)
    assert np.corrcoef(noise.T)[0, 1] > 0.95
    np.testing.assert_allclose(
        mechanism.evaluate(given.values, mechanism.recover(given.values, given.target)), given.target
    )


def test_quantiles_are_those_of_many_draws_and_ranks_are_uniform(generator):
    a = generator.uniform(-1, 1, size=2000)
    given = sample(a, a + np.exp(a) * generator.exponential(size=2000))
    mechanism = LocationScale().fit(given, generator)
    levels = np.array([0.1, 0.5, 0.9])
    at = {"A": np.full(20_000, 0.5)}
    draws = mechanism.evaluate(at, mechanism.draw(20_000, generator))
    quantiles = mechanism.quantiles({"A": np.array([0.5])}, levels)[0]
    np.testing.assert_allclose(quantiles, np.quantile(draws, levels), atol=0.06)
    ranks = np.sort(mechanism.ranks(given.values, given.target, generator))
    assert np.abs(ranks - (np.arange(2000) + 0.5) / 2000).max() < 0.04


def test_far_from_the_data_the_scale_stays_within_what_was_seen(generator):
    a = generator.uniform(-1, 1, size=500)
    mechanism = LocationScale().fit(sample(a, np.exp(2 * a) * generator.normal(size=500)), generator)
    inside = mechanism.moments({"A": a})[1]
    far = mechanism.moments({"A": np.array([-50.0, 50.0])})[1]
    assert inside.min() <= far.min()
    assert far.max() <= inside.max()
