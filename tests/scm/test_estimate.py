import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor

from ciplearn import CausalGraph, fit_scm
from ciplearn.scm import AdditiveNoise, LocationScale

GRAPH = CausalGraph.from_edges("A -> L")
SPREADS = {
    "additive noise": lambda a, u: np.sin(a) + 0.5 * u,
    "location-scale noise": lambda a, u: a + np.exp(0.7 * a) * u,
    "log scale, additive noise": lambda a, u: np.exp(0.7 * a + 0.5 * u),
    "logit scale, additive noise": lambda a, u: 1 / (1 + np.exp(-2 * a - u)),
    "quantiles": lambda a, u: np.floor(np.exp(0.5 * a + 0.8 * u)),
}


def rows(equation, n=3000, seed=0):
    a, u = np.random.default_rng(seed).normal(size=(2, n))
    return pd.DataFrame({"A": a, "L": equation(a, u)})


@pytest.mark.parametrize("label", SPREADS)
def test_each_process_gets_its_mechanism_and_no_warning(label):
    fitted = fit_scm(GRAPH, rows(SPREADS[label]))
    line = fitted.report.nodes[1]
    assert line.mechanism == label
    assert line.mechanism in [other.mechanism for other in line.alternatives]
    assert max(other.score for other in line.alternatives) - line.score < 0.02
    assert fitted.trustworthy, str(fitted.report)


@pytest.mark.parametrize("label", list(SPREADS)[1:])
def test_additive_noise_that_does_not_fit_is_named(label):
    fitted = fit_scm(GRAPH, rows(SPREADS[label]), {"L": AdditiveNoise()})
    assert [finding.node for finding in fitted.misfits] == ["L"]
    assert "depends on its parents" in fitted.misfits[0].sentence
    assert not fitted.trustworthy
    assert f"Warning: {fitted.misfits[0]}" in str(fitted.report)
    assert fitted.report.to_dict()["misfits"][0]["node"] == "L"


def test_the_simpler_mechanism_wins_a_tie():
    table = rows(SPREADS["additive noise"], 600)
    for order in ([AdditiveNoise(), LocationScale()], [LocationScale(), AdditiveNoise()]):
        assert fit_scm(GRAPH, table, {"L": order}).report.nodes[1].mechanism == order[0].label


def test_a_sign_that_no_data_tell_is_said():
    def crossing(a, u):
        return a * u

    fitted = fit_scm(GRAPH, rows(crossing))
    assert [finding.node for finding in fitted.ambiguities] == ["L"]
    assert "cannot tell U from −U" in fitted.ambiguities[0].sentence
    assert not fitted.trustworthy
    # A noise that vanishes at the edge of the data alone has one side.
    assert fit_scm(GRAPH, rows(lambda a, u: np.exp(1.5 * a) * u)).ambiguities == ()


def test_other_mechanisms_of_about_equal_score_can_be_looked_at():
    table = rows(SPREADS["additive noise"], 800)
    fitted = fit_scm(GRAPH, table)
    variants = fitted.variants("L")
    assert "location-scale noise" in variants
    assert "additive noise" not in variants
    for other in variants.values():
        np.testing.assert_allclose(other.counterfactual(table, {"A": table["A"]}), table, atol=1e-8)
    assert fitted.variants("A") == {}


def test_labels_bend_where_lines_do_not_do():
    generator = np.random.default_rng(0)
    a = generator.normal(size=3000)
    table = pd.DataFrame(
        {"A": a, "L": np.where(generator.uniform(size=3000) < 1 / (1 + np.exp(2 - 2 * a**2)), "x", "y")}
    )
    fitted = fit_scm(GRAPH, table)
    assert fitted.report.nodes[1].mechanism == "multinomial, smooth logistic"
    assert fitted.trustworthy
    for value in (-1.5, 0.0, 1.5):
        share = (fitted.do({"A": value}).sample(3000, random_state=0)["L"] == "x").mean()
        assert share == pytest.approx(1 / (1 + np.exp(2 - 2 * value**2)), abs=0.08)


def test_a_node_that_its_parents_determine_has_no_noise_to_test():
    fitted = fit_scm(GRAPH, rows(lambda a, u: np.sin(a) + a))
    assert np.isnan(fitted.report.nodes[1].p_value)
    assert fitted.trustworthy


def test_alternatives_of_one_name_are_told_apart():
    draw = np.random.default_rng(0)
    a = draw.normal(size=600)
    table = pd.DataFrame({"A": a, "B": a + draw.normal(size=600)})
    recipes = [AdditiveNoise(KNeighborsRegressor(k)) for k in (30, 40, 60)]
    model = fit_scm(CausalGraph.from_edges("A -> B"), table, {"B": recipes}, random_state=0)
    names = [other.label for other in model.choices["B"].equals]
    assert len(names) == len(set(names)) == len(model.variants("B")) == 2


def test_rows_that_score_are_no_copies_of_rows_that_were_fitted():
    # A neighbour that is looked up knows copies by heart.
    choice = [AdditiveNoise(), AdditiveNoise(KNeighborsRegressor(1))]
    table = rows(SPREADS["additive noise"], 400)
    once, often = (fit_scm(GRAPH, each, {"L": choice}) for each in (table, pd.concat([table] * 5)))
    alternatives = [other.mechanism for other in once.report.nodes[1].alternatives]
    assert once.report.nodes[1].mechanism == often.report.nodes[1].mechanism == alternatives[0]
