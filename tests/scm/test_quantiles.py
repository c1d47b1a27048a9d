import numpy as np
import pytest
from scipy import stats

from ciplearn._core.errors import InputError
from ciplearn.scm import LocationScale, SimultaneousQuantiles
from ciplearn.scm.kinds import Vector
from ciplearn.scm.quantiles import ObservedLaw
from tests.scm.models import sample

LAWS = {
    "counts": lambda g: g.poisson(2.0, size=500).astype(float),
    "continuous": lambda g: g.normal(size=500),
    "zeros and numbers": lambda g: np.where(g.uniform(size=500) < 0.4, 0.0, g.lognormal(size=500)),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_table_of_ranks_gives_back_every_value(name, generator):
    values = LAWS[name](generator)
    law = ObservedLaw.of(values)
    below, upto = law.interval(values)
    assert (below <= upto).all()
    for share in (0.01, 0.5, 1.0):
        np.testing.assert_allclose(law.quantile(below + share * (upto - below)), values)
    np.testing.assert_allclose(upto, [np.mean(values <= v) for v in values], atol=1 / 500)


def test_a_table_of_ranks_runs_straight_between_single_values():
    law = ObservedLaw.of(np.array([0.5, 1.5]))
    assert law.quantile(np.array([0.25, 0.5, 0.75])).tolist() == [0.5, 1.0, 1.5]
    assert law.interval(np.array([1.0]))[0].tolist() == [0.5]


def test_counts_stay_counts_and_follow_the_law_of_their_parents(generator):
    a = generator.normal(size=6000)
    rate = np.exp(0.3 + 0.6 * a)
    given = sample(a, generator.poisson(rate).astype(float))
    mechanism = SimultaneousQuantiles().fit(given, generator)
    for value in (-1.0, 0.0, 1.0):
        at = {"A": np.full(4000, value)}
        made = mechanism.evaluate(at, mechanism.draw(4000, generator))
        assert set(made) <= set(given.target)
        truth = stats.poisson(np.exp(0.3 + 0.6 * value))
        assert max(abs(np.mean(made <= k) - truth.cdf(k)) for k in range(8)) < 0.05


@pytest.mark.parametrize("base", [None, LocationScale()])
@pytest.mark.parametrize("name", LAWS)
def test_noise_that_was_read_back_makes_the_value_again(name, base, generator):
    given = sample(generator.normal(size=500), LAWS[name](generator))
    mechanism = SimultaneousQuantiles(base).fit(given, generator)
    # Values that the fit never met are no exception.
    values = np.append(given.target[:-2], [-7.0, 50.0])
    noise = mechanism.posterior(given.values, values, generator)
    assert ((noise[:, 0] >= 0) & (noise[:, 0] <= 1)).all()
    np.testing.assert_allclose(mechanism.evaluate(given.values, noise), values, atol=1e-9)
    assert mechanism.evaluate({"A": np.zeros(0)}, mechanism.draw(0, generator)).shape == (0,)


def test_a_value_increases_with_its_noise(generator):
    a = generator.normal(size=2000)
    mechanism = SimultaneousQuantiles(LocationScale()).fit(
        sample(a, np.exp(a) * generator.gamma(2, size=2000)), generator
    )
    levels = np.linspace(0.001, 0.999, 300)
    assert (np.diff(mechanism.quantiles({"A": a[:200]}, levels), axis=1) >= -1e-12).all()


def test_a_shape_that_depends_on_the_parents_is_found(generator):
    # The mean and the spread are the same everywhere, the skewness changes its sign with A.
    a = generator.uniform(-1, 1, size=8000)
    u = generator.exponential(size=8000) - 1
    given = sample(a, np.where(a > 0, u, -u))
    mechanism = SimultaneousQuantiles(LocationScale()).fit(given, generator)
    left, right = mechanism.quantiles({"A": np.array([-0.7, 0.7])}, np.array([0.05, 0.95]))
    truth = stats.expon.ppf([0.05, 0.95]) - 1
    np.testing.assert_allclose(right, truth, atol=0.4)
    np.testing.assert_allclose(left, -truth[::-1], atol=0.4)


def test_only_single_numbers_have_quantiles(generator):
    with pytest.raises(InputError, match="V is not one number"):
        SimultaneousQuantiles().fit(sample(np.zeros(30), np.zeros((30, 2)), Vector(2)), generator)


def test_no_threshold_lies_inside_a_value_that_many_rows_share(generator):
    amounts = np.where(generator.uniform(size=2000) < 0.55, 0.0, generator.lognormal(size=2000))
    law = ObservedLaw.of(amounts)
    assert law.knots().min() == pytest.approx(np.mean(amounts == 0))
    a = generator.normal(size=6000)
    zero = generator.uniform(size=6000) < 1 / (1 + np.exp(a))
    given = sample(a, np.where(zero, 0.0, np.exp(0.5 * a + 0.5 * generator.normal(size=6000))))
    mechanism = SimultaneousQuantiles().fit(given, generator)
    for value in (-1.0, 1.0):
        at = {"A": np.full(4000, value)}
        made = mechanism.evaluate(at, mechanism.draw(4000, generator))
        assert np.mean(made == 0) == pytest.approx(1 / (1 + np.exp(value)), abs=0.04)
        assert np.median(made[made > 0]) == pytest.approx(np.exp(0.5 * value), rel=0.1)


@pytest.mark.parametrize("seed", [2, 6])
def test_counts_of_few_rows_stay_among_those_that_were_seen(seed):
    """Where ranks of neighbouring knots fall together a row comes back by what is left over, in its own world only."""
    draw = np.random.default_rng(seed)
    a = draw.uniform(18, 70, size=150)
    counts = draw.poisson(np.maximum(0.05, (a - 20) / 3)).astype(float)
    given = sample(a, counts)
    mechanism = SimultaneousQuantiles().fit(given, np.random.default_rng(seed))
    noise = mechanism.posterior(given.values, counts, np.random.default_rng(seed))
    assert (noise[:, 1] != 0).any()
    assert (mechanism.evaluate(given.values, noise) == counts).all()
    for age in (18.0, 25.0, 70.0):
        imagined = mechanism.evaluate({**given.values, given.parents[0]: np.full(150, age)}, noise)
        assert imagined.min() >= counts.min()
        assert imagined.max() <= counts.max()
