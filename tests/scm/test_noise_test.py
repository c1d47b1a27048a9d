import numpy as np
import pytest

from ciplearn.scm import AdditiveNoise, GumbelMax, Multinomial
from ciplearn.scm.estimate import split
from ciplearn.scm.kinds import Categories
from ciplearn.scm.report import independence_of_noise
from tests.scm.models import sample


def judged(recipe, given, generator):
    train, held_out = split(given, generator)
    return independence_of_noise(recipe.fit(train, generator), train, held_out, generator)


def test_rows_that_choose_are_apart_and_no_more_than_needed(generator):
    train, held_out = split(sample(np.arange(100.0), np.arange(100.0)), generator)
    assert sorted([*train.target, *held_out.target]) == list(range(100))
    assert held_out.n == 20
    train, held_out = split(sample(np.arange(60_000.0), np.arange(60_000.0)), generator)
    assert (train.n, held_out.n) == (20_000, 10_000)
    assert not set(train.target) & set(held_out.target)


def test_right_fits_pass_and_wrong_ones_fail():
    passed, failed = 0, 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        a, u = generator.normal(size=(2, 600))
        passed += judged(AdditiveNoise(), sample(a, np.sin(a) + u), generator).p_value >= 0.05
        failed += judged(AdditiveNoise(), sample(a, np.exp(a) * u), generator).p_value < 0.05
    assert passed >= 18
    assert failed == 20


def test_labels_are_tested_by_what_their_probabilities_leave_over():
    generator = np.random.default_rng(0)
    a = generator.normal(size=2000)
    kind = Categories(["no", "yes"])
    right = sample(a, kind.labels[(generator.uniform(size=2000) < 1 / (1 + np.exp(-a))).astype(int)], kind)
    assert judged(Multinomial(), right, generator).p_value > 0.05
    bent = sample(a, kind.labels[(generator.uniform(size=2000) < 1 / (1 + np.exp(1 - a**2))).astype(int)], kind)
    constant = GumbelMax(kind.levels, [0.5, 0.5], "V")
    train, held_out = split(bent, generator)
    assert independence_of_noise(constant, train, held_out, generator).p_value < 0.05


def test_a_few_rows_say_nothing():
    generator = np.random.default_rng(0)
    a = generator.normal(size=60)
    assert np.isnan(judged(AdditiveNoise(), sample(a, a**2), generator).p_value)


@pytest.mark.slow
def test_at_most_one_right_node_in_twenty_fails():
    failed = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        a = generator.normal(size=1000)
        noise = generator.normal(size=1000) if seed % 2 else generator.standard_t(4, size=1000)
        failed += judged(AdditiveNoise(), sample(a, a * np.abs(a) / 2 + noise), generator).p_value < 0.05
    assert failed <= 15


@pytest.mark.parametrize("shift", [-0.3, 0.3])
def test_one_label_is_looked_at_whichever_is_the_commoner_among_the_held_out_rows(shift):
    generator, kind = np.random.default_rng(0), Categories(["no", "yes"])

    def bent(n, mean):
        a = generator.normal(mean, size=n)
        chance = 1 / (1 + np.exp(1 - 1.5 * a - 3 * np.cos(2 * a)))
        return sample(a, kind.labels[(generator.uniform(size=n) < chance).astype(int)], kind)

    train = bent(2000, 0.0)
    line = Multinomial().fit(train, generator)
    assert independence_of_noise(line, train, bent(1000, shift), generator).p_value < 0.05
