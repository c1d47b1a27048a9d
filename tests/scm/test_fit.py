import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge

import ciplearn.scm.fit
from ciplearn import fit_scm
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm import AdditiveNoise, EstimatedModel, Multinomial, VariationalLatent
from tests.scm import models


@pytest.fixture(scope="module")
def rows():
    return models.chain().sample(1500, random_state=0)


@pytest.fixture(scope="module")
def fitted(rows):
    return fit_scm(models.CHAIN, rows)


@pytest.fixture(scope="module")
def mixed_rows():
    return models.labels().sample(800, random_state=0)


@pytest.fixture(scope="module")
def mixed(mixed_rows):
    return fit_scm(models.labels().graph, mixed_rows)


def test_an_estimated_model_says_that_it_is_one(fitted, rows):
    assert isinstance(fitted, EstimatedModel)
    assert fitted.model_based
    assert "model-based" in repr(fitted)
    assert fitted.do({"A": 1.0}).model_based
    assert fitted.counterfactual(rows.head(2), {"A": 0.0}).attrs["model_based"] is True


def test_consistency_holds_for_additive_noise(fitted, rows):
    again = fitted.counterfactual(rows, {"A": rows["A"]})
    np.testing.assert_allclose(again, rows, atol=1e-10)


def test_consistency_holds_for_labels_and_vectors(mixed, mixed_rows):
    again = mixed.counterfactual(mixed_rows, {"A": mixed_rows["A"]})
    assert (again["job"].astype(str) == mixed_rows["job"].astype(str)).all()
    numbers = ["A", "V[0]", "V[1]", "Y"]
    np.testing.assert_allclose(again[numbers], mixed_rows[numbers], atol=1e-10)


def test_class_probabilities_are_those_of_the_right_labels(mixed, mixed_rows):
    score = {fit.node: fit.score for fit in mixed.report.nodes}
    assert score["job"] > 0.1
    moved = mixed.counterfactual(mixed_rows, {"A": 4.0})
    assert (moved["job"] == "cook").mean() > 0.9  # p ∝ (exp A, 1, exp −A)


def test_estimated_counterfactuals_come_close_to_the_true_ones(fitted):
    truth = models.chain()
    fresh = truth.sample(500, random_state=1)
    fresh = fresh[fresh["S"].abs() < 1.5]
    expected, found = (scm.counterfactual(fresh, {"A": 0.5}) for scm in (truth, fitted))
    unchanged = fresh["L"] - expected["L"]
    assert (found["L"] - expected["L"]).abs().median() < 0.1
    assert (found["L"] - expected["L"]).std() < 0.2 * unchanged.std()
    assert (found["Y"] - expected["Y"]).abs().median() < 0.25


def test_labels_change_more_often_the_farther_the_action(mixed, mixed_rows):
    shares = []
    for shift in (0.0, 0.5, 2.0):
        found = mixed.counterfactual(mixed_rows, {"A": mixed_rows["A"] + shift})
        shares.append((found["job"].astype(str) != mixed_rows["job"].astype(str)).mean())
    assert shares[0] == 0
    assert shares[0] < shares[1] < shares[2]


def test_any_regressor_or_classifier_will_do(rows, mixed_rows):
    linear = fit_scm(models.CHAIN, rows, {"A": LinearRegression(), "L": AdditiveNoise(Ridge())})
    assert "LinearRegression" in str(linear.report)
    np.testing.assert_allclose(linear.counterfactual(rows, {"A": rows["A"]}), rows, atol=1e-10)
    forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    other = fit_scm(models.labels().graph, mixed_rows, {"job": forest})
    again = other.counterfactual(mixed_rows, {"A": mixed_rows["A"]})
    assert (again["job"].astype(str) == mixed_rows["job"].astype(str)).all()


def test_the_regressor_given_is_not_changed(rows):
    regressor = LinearRegression()
    fit_scm(models.CHAIN, rows, {"L": regressor})
    assert not hasattr(regressor, "coef_")


def test_the_same_seed_gives_the_same_model(rows):
    first, second = (fit_scm(models.CHAIN, rows.head(200), random_state=5) for _ in range(2))
    pd.testing.assert_frame_equal(first.sample(20, random_state=0), second.sample(20, random_state=0))


def test_the_report_is_a_small_table_with_honest_scores(fitted):
    text = str(fitted.report)
    assert text.startswith("Model-based: estimated from 1500 rows.")
    assert [line.split()[0] for line in text.splitlines()[1:6]] == ["node", "A", "L", "S", "Y"]
    assert "Tried for L: additive noise" in text
    by_node = {fit.node: fit for fit in fitted.report.nodes}
    # CRPS grows with the spread: A = sin(S) + noise has a variance of 1.43 and a noise of 1, L 4 and 0.25.
    assert 0.1 < by_node["A"].score < 0.25
    assert 0.65 < by_node["L"].score < 0.8
    assert np.isnan(by_node["S"].score)
    assert all(0 <= fit.distance < 0.1 for fit in fitted.report.nodes)
    assert json.dumps(fitted.report.to_dict(), allow_nan=False)


def test_the_report_sees_a_bad_fit(rows):
    poor = fit_scm(models.CHAIN, rows, {"L": LinearRegression()})
    good = fit_scm(models.CHAIN, rows)
    score = {name: {fit.node: fit.score for fit in scm.report.nodes} for name, scm in (("poor", poor), ("good", good))}
    assert score["poor"]["L"] < score["good"]["L"] - 0.1


def test_the_model_samples_what_it_saw(fitted, rows):
    sampled = fitted.sample(3000, random_state=0)
    np.testing.assert_allclose(sampled.mean(), rows.mean(), atol=0.25)
    np.testing.assert_allclose(sampled["L"].std(), rows["L"].std(), rtol=0.15)


def test_a_latent_root_with_one_child_is_that_childs_noise():
    graph = CausalGraph.from_edges("A -> M, H -> M", latent=["H"])
    generator = np.random.default_rng(0)
    a = generator.normal(size=100)
    fitted = fit_scm(graph, pd.DataFrame({"A": a, "M": a + generator.normal(size=100)}))
    assert fitted.graph.nodes == ("A", "M")
    assert "H is part of the noise of M" in str(fitted.report)


def test_text_and_bool_columns_are_labels():
    generator = np.random.default_rng(0)
    a = generator.normal(size=200)
    rows = pd.DataFrame({"A": a, "B": a + generator.normal(size=200) > 0, "T": np.where(a > 0, "x", "y")})
    fitted = fit_scm(CausalGraph.from_edges("A -> B, A -> T"), rows)
    again = fitted.counterfactual(rows, {"A": rows["A"]})
    assert (again["B"].astype(bool) == rows["B"]).all()
    assert (again["T"].astype(str) == rows["T"]).all()


def small(**columns):
    generator = np.random.default_rng(0)
    return pd.DataFrame({"A": generator.normal(size=60), "Y": generator.normal(size=60), **columns})


@pytest.mark.parametrize(
    ("graph", "df", "mechanisms", "message"),
    [
        ("A -> Y", small()[["A"]], None, "lacks the column 'Y'"),
        ("A -> Y", small().rename(columns={"A": "a"}), None, "lacks the column 'A', on which Y depends; add it"),
        ("A -> Y", pd.concat([small(), small()], axis=1), None, "two columns named 'A'"),
        ("A -> Y", small(Y=np.nan), None, "'Y' holds NaN"),
        ("A -> Y", small().head(5), None, "table has 5 rows"),
        ("A -> Y", small(Y="same"), None, "'Y' holds the one label 'same' in all"),
        ("A -> Y", small(), {"B": AdditiveNoise()}, "'B', which is not in the graph"),
        ("A -> Y", small(), {"Y": Multinomial()}, "Y holds numbers"),
        ("A -> Y", small(), {"Y": "linear"}, "mechanism of Y must be"),
        ("A -> Y", small(), {"A": AdditiveNoise()}, "A has no parents"),
        ("A -> Y", small(), {"Y": VariationalLatent()}, "Y is observed"),
        ("A -> Y", small(), {"Y": AdditiveNoise("no")}, "regressor must have fit"),
        ("A -> Y", small().to_numpy(), None, "table must be a pandas DataFrame"),
    ],
)
def test_a_model_that_cannot_be_fitted_says_why(graph, df, mechanisms, message):
    with pytest.raises(CiplearnError, match=message):
        fit_scm(CausalGraph.from_edges(graph), df, mechanisms)


def test_columns_that_the_graph_does_not_know_are_ignored():
    odd = small(zip="x", U=np.nan, when=pd.Timestamp("2020"))
    twice = pd.concat([odd, odd[["zip"]]], axis=1)
    graph = CausalGraph.from_edges("U -> A, U -> Y, A -> Y", latent=["U"])
    for given in (CausalGraph.from_edges("A -> Y"), graph):
        plain, wide = (fit_scm(given, table).sample(5, random_state=0) for table in (small(), twice))
        pd.testing.assert_frame_equal(plain, wide)


def test_additive_noise_refuses_labels(mixed_rows):
    with pytest.raises(InputError, match="job holds labels"):
        fit_scm(models.labels().graph, mixed_rows, {"job": AdditiveNoise()})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda column: column + 1j, "holds complex numbers"),
        (lambda column: pd.to_timedelta(column, unit="D"), "holds dates or times"),
        (lambda column: pd.Timestamp("2020") + pd.to_timedelta(column, unit="D"), "holds dates or times"),
        (lambda column: [[value] for value in column], "lists or the like"),
        (lambda column: column * 1e300, "whose square overflows"),
    ],
)
def test_column_that_is_neither_numbers_nor_labels_is_refused(change, words):
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"A": draw.normal(size=40), "Y": draw.normal(size=40)})
    with pytest.raises(InputError, match=words):
        fit_scm(CausalGraph.from_edges(directed=[("A", "Y")]), table.assign(A=change(table["A"])))


def test_numbers_as_objects_are_numbers():
    table = small()
    plain, objects = (fit_scm(CausalGraph.from_edges("A -> Y"), t) for t in (table, table.astype({"A": object})))
    pd.testing.assert_frame_equal(plain.sample(5, random_state=0), objects.sample(5, random_state=0))


def test_a_row_counts_for_the_nodes_that_have_all_their_values_in_it(rows):
    holes = rows.copy()
    holes.loc[::10, "L"] = np.nan
    fitted = fit_scm(models.CHAIN, holes)
    assert "L is missing in 150 of 1500 rows" in str(fitted.report)
    whole = fit_scm(models.CHAIN, rows)
    again = fitted.counterfactual(rows, {"A": rows["A"]})
    np.testing.assert_allclose(again, rows, atol=1e-10)
    # A and S have no gaps, so nothing about A has changed.
    np.testing.assert_array_equal(fitted.mechanisms["A"].residuals, whole.mechanisms["A"].residuals)
    labels = pd.DataFrame({"A": rows["A"], "T": pd.Series(np.where(rows["A"] > 0, "x", "y")).where(rows["S"] > -1)})
    assert "T is missing" in str(fit_scm(CausalGraph.from_edges("A -> T"), labels).report)


def test_only_nodes_whose_parents_changed_are_fitted_again(rows, fitted, monkeypatch):
    calls = []
    plain = ciplearn.scm.fit.estimate_node
    monkeypatch.setattr(
        ciplearn.scm.fit, "estimate_node", lambda sample, *rest: calls.append(sample.node) or plain(sample, *rest)
    )
    variant = CausalGraph.from_edges("S -> A, A -> L, S -> Y, A -> Y, L -> Y")
    second = fit_scm(variant, rows, like=fitted)
    assert calls == ["L"]
    alone = fit_scm(variant, rows)
    pd.testing.assert_frame_equal(second.sample(50, random_state=0), alone.sample(50, random_state=0))
    assert str(second.report) == str(alone.report)
    calls.clear()
    fit_scm(models.CHAIN, rows, like=second)
    assert calls == []
    drawn = fit_scm(models.CHAIN, rows, random_state=3)
    calls.clear()
    fit_scm(models.CHAIN, rows, random_state=None, like=drawn)
    assert calls == []
    fit_scm(models.CHAIN, rows, {"Y": AdditiveNoise()}, like=second)
    fit_scm(models.CHAIN, rows, random_state=1, like=second)
    fit_scm(models.CHAIN, rows.assign(Y=rows["Y"] + 1), like=second)
    assert calls == ["Y", "A", "L", "Y", "Y"]
    with pytest.raises(CiplearnError, match="like must be a model of fit_scm"):
        fit_scm(models.CHAIN, rows, like=models.chain())


def test_roots_that_share_hidden_causes_are_drawn_together():
    generator = np.random.default_rng(0)
    age = generator.normal(size=2000)
    race = np.where(age + generator.normal(size=2000) > 0, "a", "b")
    sex = np.where((race == "a") ^ (generator.uniform(size=2000) < 0.2), "f", "m")
    pay = age + (race == "a") + generator.normal(size=2000)
    table = pd.DataFrame({"age": age, "race": race, "sex": sex, "pay": pay})
    graph = CausalGraph.from_edges("race -> pay, age -> pay, sex -> pay", bidirected=[("race", "age"), ("race", "sex")])
    fitted = fit_scm(graph, table)
    sampled = fitted.sample(4000, random_state=0)
    for left, right in (("race", "sex"), ("race", "age")):
        shares = [
            (t.groupby(left, observed=True)[right].apply(lambda c: c.eq("f").mean() if c.dtype != float else c.mean()))
            for t in (table, sampled)
        ]
        np.testing.assert_allclose(shares[0], shares[1], atol=0.08)
    other = fitted.counterfactual(table, {"race": "a"})
    pd.testing.assert_series_equal(other["age"], table["age"])
    assert (other["sex"].astype(str) == table["sex"]).all()
    assert "drawn together as observed" in str(fitted.report)
