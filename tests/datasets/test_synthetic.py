import numpy as np
import pytest

from ciplearn import datasets, variance_of_counterfactuals
from ciplearn._core.errors import InputError
from ciplearn.datasets import MinMaxScaling

MODELS = {
    "first": datasets.first_synthetic,
    "scenario 1": datasets.scenario_1,
    "scenario 1, plus": lambda: datasets.scenario_1("+"),
    "scenario 2": datasets.scenario_2,
    "Veitch, causal": datasets.veitch_causal,
    "Veitch, anti-causal": datasets.veitch_anticausal,
    "multi-dimensional": lambda: datasets.multidimensional(3),
}


@pytest.mark.parametrize("name", MODELS)
def test_counterfactuals_at_the_observed_value_are_the_observed_rows(name):
    scm = MODELS[name]()
    rows = scm.sample(200, random_state=0)
    observed = rows[scm.columns("A")]
    np.testing.assert_allclose(scm.counterfactual(rows, {"A": observed}), rows, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_counterfactuals_from_rows_equal_those_from_kept_noise(name):
    scm = MODELS[name]()
    units = scm.sample_units(200, random_state=0)
    rows = scm.frame(units)
    acted = {"A": np.full(3, 0.7)} if "A" not in rows else {"A": 0.7}
    from_rows, from_noise = scm.counterfactual(rows, acted), scm.counterfactual(units, acted)
    # Where Z is hidden, the outcome's counterfactual is a draw; all that does not descend from Z past A is exact.
    exact = [column for column in rows if column != "Y"] if scm.graph.latent else list(rows)
    np.testing.assert_allclose(from_rows[exact], from_noise[exact], rtol=1e-7, atol=1e-9)


def test_the_first_case_follows_its_equations():
    scm = datasets.first_synthetic()
    units = scm.sample_units(1000, random_state=0)
    z, a, m, y = (units.values[node] for node in "ZALY")
    u = units.noise
    np.testing.assert_allclose(a, z**2 + u["A"])
    np.testing.assert_allclose(m, np.exp(-(a**2) / 2) * np.sin(2 * a) + 2 * z + u["L"] / 5)
    np.testing.assert_allclose(y, 0.5 * np.exp(-m * z) * np.sin(2 * m * z) + 5 * a + u["Y"] / 5)
    assert abs(u["L"].std() - 0.1) < 0.01
    assert abs(u["A"].std() - 1) < 0.1


def test_the_scenarios_follow_their_equations():
    one = datasets.scenario_1().sample_units(500, random_state=0)
    z, a, m, y = (one.values[node] for node in "ZALY")
    np.testing.assert_allclose(a, np.exp(-(z**2) / 2) * np.sin(2 * z) + one.noise["A"])
    np.testing.assert_allclose(m, (a + 0.1 * z) * one.noise["L"])
    np.testing.assert_allclose(y, a + m + 0.1 * np.sin(z))
    two = datasets.scenario_2("+").sample_units(500, random_state=0)
    z, a, m, y = (two.values[node] for node in "ZALY")
    np.testing.assert_allclose(a, np.exp(z**2 / 2) * np.sin(2 * z) + two.noise["A"])
    np.testing.assert_allclose(m, np.exp(-(a**2) / 2) * two.noise["L"] + 2 * z)
    np.testing.assert_allclose(y, 0.5 * np.sin(z * m) * np.exp(-z * m) + two.noise["Y"] / 5)


def test_the_printed_sign_has_outliers_that_flatten_the_data():
    spread = {}
    for sign in "-+":
        a = datasets.scenario_1(sign).sample(10_000, random_state=0)["A"]
        spread[sign] = a.std() / (a.max() - a.min())
    assert spread["+"] < spread["-"] / 3


def test_noise_that_rounding_has_swallowed_is_an_error_unless_it_was_kept():
    scm = datasets.scenario_2("+")
    units = scm.sample_units(500, random_state=0)
    with pytest.raises(InputError, match="inverse of L is not finite in"):
        scm.counterfactual(scm.frame(units), {"A": 0.7})
    found = scm.counterfactual(units, {"A": 0.7})
    np.testing.assert_allclose(found["L"], np.exp(-0.245) * units.noise["L"] + 2 * units.values["Z"])


def test_the_veitch_models_follow_their_equations_and_hide_z():
    causal = datasets.veitch_causal()
    units = causal.sample_units(500, random_state=0)
    z, a, x, y = (units.values[node] for node in "ZAXY")
    np.testing.assert_allclose(a, np.sin(0.1 * z) + units.noise["A"])
    np.testing.assert_allclose(x, np.exp(-a / 2) * np.sin(a) + units.noise["X"] / 10)
    np.testing.assert_allclose(y, 0.1 * np.exp(-x) * np.sin(2 * x * z) + a**2 + units.noise["Y"] / 10)
    anti = datasets.veitch_anticausal()
    units = anti.sample_units(500, random_state=0)
    np.testing.assert_allclose(units.values["X"], units.values["A"] + units.values["Y"] + units.noise["X"] / 10)
    assert causal.graph.latent == anti.graph.latent == {"Z"}
    assert "Z" not in causal.sample(3, random_state=0)


@pytest.mark.parametrize("size", [2, 10, 50])
def test_the_multi_dimensional_case_takes_any_dimension(size):
    scm = datasets.multidimensional(size)
    units = scm.sample_units(100, random_state=0)
    a, z, m, y = (units.values[node] for node in "AZLY")
    assert a.shape == (100, size)
    np.testing.assert_allclose(m, np.exp(-a[:, 0] / 2) + a.sum(1) * np.sin(z) + 0.1 * units.noise["L"])
    np.testing.assert_allclose(y, np.exp(-a[:, 1] / 2) * a.sum(1) + m * z + 0.1 * units.noise["Y"])
    assert len(np.unique(units.noise["A"][0])) == size


@pytest.mark.parametrize("mistake", [lambda: datasets.scenario_1("*"), lambda: datasets.multidimensional(1)])
def test_impossible_settings_are_refused(mistake):
    with pytest.raises(InputError):
        mistake()


def test_the_papers_numbers_come_out_on_scaled_data():
    scm = datasets.first_synthetic()
    raw = scm.sample(10_000, random_state=0)
    scaling = MinMaxScaling.fit(raw)
    rows = scaling.transform(raw)
    perfect = scaling.predictor(
        lambda r: 0.5 * np.exp(-r["L"] * r["Z"]) * np.sin(2 * r["L"] * r["Z"]) + 5 * r["A"], "Y"
    )
    found = variance_of_counterfactuals(perfect, scaling.model(scm), rows, ["A"], n_interventions=200)
    assert 6e-3 < found.value < 8e-3
    # A given Z has variance 1 and enters the outcome times 5: what is left for a predictor that sees Z alone.
    ideal = scaling.predictor(lambda r: 5 * r["Z"] ** 2, "Y")
    error = np.square(ideal.predict(rows) - rows["Y"]).mean()
    assert 2e-3 < error < 4e-3
