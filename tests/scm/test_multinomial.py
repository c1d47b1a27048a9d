import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ciplearn import CausalGraph, fit_scm
from ciplearn._core.errors import InputError
from ciplearn.scm import AdditiveNoise, GumbelMax, LocationScale, Multinomial, SimultaneousQuantiles

LEVELS = ["a", "b", "c"]


def test_labels_come_with_their_probabilities():
    mechanism = GumbelMax(LEVELS, [0.5, 0.3, 0.2])
    drawn = mechanism.evaluate({}, mechanism.draw(40_000, np.random.default_rng(0)))
    shares = [(drawn == level).mean() for level in LEVELS]
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.01)


def test_posterior_noise_always_gives_the_label_back():
    generator = np.random.default_rng(0)
    table = generator.dirichlet(np.ones(3) / 3, size=5000)
    mechanism = GumbelMax(LEVELS, lambda p: table)
    value = np.array(LEVELS, dtype=object)[generator.integers(3, size=5000)]
    noise = mechanism.posterior({}, value, generator)
    assert (mechanism.evaluate({}, noise) == value).all()


def test_posterior_noise_averaged_over_labels_is_gumbel_again():
    # Drawing a label and then its noise must be drawing the noise: P(G) = Σ_v P(v) P(G | v).
    generator = np.random.default_rng(1)
    mechanism = GumbelMax(LEVELS, [0.5, 0.3, 0.2])
    value = mechanism.evaluate({}, mechanism.draw(60_000, generator))
    noise = mechanism.posterior({}, value, generator)
    np.testing.assert_allclose(noise.mean(axis=0), np.euler_gamma, atol=0.02)
    np.testing.assert_allclose(noise.var(axis=0), np.pi**2 / 6, atol=0.05)
    np.testing.assert_allclose(np.corrcoef(noise.T), np.eye(3), atol=0.02)


def test_a_label_that_became_relatively_likelier_is_kept():
    generator = np.random.default_rng(2)
    before, after = [0.5, 0.3, 0.2], [0.7, 0.2, 0.1]
    value = np.array(["a"] * 2000, dtype=object)
    noise = GumbelMax(LEVELS, before).posterior({}, value, generator)
    assert (GumbelMax(LEVELS, after).evaluate({}, noise) == "a").all()


@pytest.mark.parametrize("table", [[0.5, 0.6, 0.2], [0.5, 0.5], [-0.1, 0.6, 0.5]])
def test_bad_probabilities_are_refused(table):
    with pytest.raises(InputError, match="probabilities of"):
        GumbelMax(LEVELS, table).evaluate({}, np.zeros((3, 3)))


def test_a_level_that_the_regression_has_not_met_leaves_the_others_their_say():
    # A smooth regression reads 8 000 rows; columns of levels that these lack are constant but for rounding.
    draw = np.random.default_rng(0)
    sex, place = draw.choice(["f", "m"], 9000), draw.choice(list("abc"), 9000).astype("<U3")
    place[:40] = [f"r{number}" for number in range(40)]
    job = np.where(draw.random(9000) < np.where(sex == "f", 0.9, 0.1), "nurse", "cook")
    table = pd.DataFrame({"sex": sex, "place": place, "job": job})
    graph = CausalGraph.from_edges([("sex", "job"), ("place", "job")])
    scm = fit_scm(graph, table, mechanisms={"job": Multinomial(smooth=True)}, random_state=0)
    nurses = scm.do({"sex": "f"}).sample(2000, random_state=0)["job"].eq("nurse").mean()
    assert 0.85 < nurses < 0.95


RECIPES = {
    "labels": Multinomial(smooth=True),
    "labels by a classifier": Multinomial(LogisticRegression()),
    "moved": AdditiveNoise(),
    "moved by a regressor": AdditiveNoise(LinearRegression()),
    "stretched": LocationScale(),
    "quantiles": SimultaneousQuantiles(),
}


@pytest.mark.parametrize("name", RECIPES)
def test_rows_whose_parents_repeat_get_what_each_gets_by_itself(name, monkeypatch):
    draw = np.random.default_rng(0)
    a, z = draw.choice(["f", "m"], 400), draw.integers(5, size=400).astype(float)
    number = z + (a == "f") + draw.normal(size=400)
    table = pd.DataFrame({"A": a, "Z": z, "V": number.round() if name == "quantiles" else number})
    if name.startswith("labels"):
        table["V"] = np.where(table["V"] > 2, "high", "low")
    scm = fit_scm(CausalGraph.from_edges("A -> V, Z -> V"), table, {"V": RECIPES[name]}, 0)
    mechanism, noise = scm.mechanisms["V"], scm.mechanisms["V"].draw(400, draw)
    parents = {node: table[node].to_numpy() for node in ("A", "Z")}
    asked = mechanism.evaluate(parents, noise)

    monkeypatch.setattr("ciplearn.scm.mechanism.alike", lambda _, n: (np.arange(n), np.arange(n)))
    alone = mechanism.evaluate(parents, noise)
    if name.startswith("labels"):
        assert (asked == alone).all()
    else:
        assert np.abs(asked - alone).max() < 1e-12
