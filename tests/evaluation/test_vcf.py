import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from ciplearn import StructuralCausalModel, fit_scm, variance_of_counterfactuals
from ciplearn._core.errors import CiplearnError, InputError, InputTypeError
from ciplearn.baselines import NaivePredictor
from ciplearn.causal import CausalGraph
from ciplearn.estimators import CIPRegressor
from ciplearn.evaluation import counterfactual_effect, counterfactual_rows
from ciplearn.scm import Additive
from tests.evaluation.linear_model import linear, predictor
from tests.scm import models


def test_vcf_of_a_linear_predictor_is_its_formula_on_a_grid(rows):
    grid = [-1.0, 0.0, 0.5, 4.0]
    found = variance_of_counterfactuals(predictor, linear(), rows, "A", 50, interventions=grid)
    assert found.value == pytest.approx((2 + 0.5 * 3) ** 2 * np.var(grid), rel=1e-12)
    np.testing.assert_allclose(found.per_row["vcf"], found.value, rtol=1e-10)
    assert found.n_interventions == 4


def test_vcf_of_a_linear_predictor_is_its_formula_under_the_marginal_law(rows):
    found = variance_of_counterfactuals(predictor, linear(), rows, ["A"], 1000, 200)
    truth = 3.5**2 * rows["A"].var(ddof=0)
    assert found.interval[0] <= truth <= found.interval[1]
    assert found.value == pytest.approx(truth, rel=0.01)


def test_a_law_of_ones_own_is_used(rows):
    law = lambda n, generator: pd.DataFrame({"A": generator.normal(7, 2, size=n)})  # noqa: E731
    found = variance_of_counterfactuals(predictor, linear(), rows, ["A"], 500, 200, interventions=law)
    assert found.value == pytest.approx(3.5**2 * 4, rel=0.03)


def test_vcf_is_exactly_zero_for_a_predictor_that_ignores_descendants(rows):
    found = variance_of_counterfactuals(lambda frame: np.sin(frame["S"]) / 3, linear(), rows, ["A"], 200, 50)
    assert found.value == 0
    assert found.interval == (0, 0)
    assert (found.per_row["vcf"] == 0).all()


def test_several_protected_variables_are_drawn_jointly():
    # B is a copy of A: a joint draw keeps them equal, separate draws would not.
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> B"),
        {"A": Additive(), "B": Additive(lambda p: p["A"])},
        {"A": norm(), "B": 0.0},
    )
    rows = scm.sample(300, random_state=0)
    found = variance_of_counterfactuals(lambda f: f["A"] - f["B"], scm, rows, ["A", "B"], 100, 50)
    assert found.value == pytest.approx(0, abs=1e-20)
    total = variance_of_counterfactuals(lambda f: f["A"] + f["B"], scm, rows, ["A", "B"], 300, 100)
    assert total.value == pytest.approx(4 * rows["A"].var(ddof=0), rel=0.03)


def test_three_names_are_written_as_a_list():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("{A, B, C} -> L"),
        {node: Additive() for node in "ABCL"},
        {node: norm() for node in "ABCL"},
    )
    found = variance_of_counterfactuals(lambda f: f["L"], scm, scm.sample(30, random_state=0), list("ABC"), 20, 5)
    assert "had A, B and C been different" in str(found)
    assert "5 values of A, B and C each" in str(found)


def test_outputs_add_up_to_the_trace(rows):
    both = lambda f: np.column_stack([f["A"], 2 * f["L"]])  # noqa: E731
    found = variance_of_counterfactuals(both, linear(), rows, ["A"], 300, 100)
    assert found.value == pytest.approx(sum(found.per_output.values()))
    assert found.per_output["output 0"] == pytest.approx(rows["A"].var(ddof=0), rel=0.05)
    assert {"vcf[output 0]", "vcf[output 1]"} <= set(found.per_row)
    assert "By output" in str(found)


def test_models_are_asked_for_probabilities_and_shown_the_columns_they_know(rows):
    label = np.where(rows["L"] > 0, "yes", "no")
    model = LogisticRegression().fit(rows[["L", "A"]], label)
    found = variance_of_counterfactuals(model, linear(), rows, ["A"], 100, 50)
    assert list(found.per_output) == ["yes"]
    by_hand = variance_of_counterfactuals(
        lambda f: model.predict_proba(f[["L", "A"]])[:, 1], linear(), rows, ["A"], 100, 50
    )
    assert found.value == pytest.approx(by_hand.value, rel=1e-12)
    three = LogisticRegression().fit(rows[["L"]], np.digitize(rows["L"], [-1, 1]))
    found = variance_of_counterfactuals(three, linear(), rows, ["A"], 100, 50)
    assert list(found.per_output) == ["0", "1", "2"]
    regression = LinearRegression().fit(rows[["A", "S"]], rows["L"])
    found = variance_of_counterfactuals(regression, linear(), rows, ["A"], 300, 100)
    assert found.value == pytest.approx(regression.coef_[0] ** 2 * rows["A"].var(ddof=0), rel=0.05)


def test_chunks_do_not_change_the_result(rows, monkeypatch):
    grid = np.linspace(-1, 1, 7)
    whole = variance_of_counterfactuals(predictor, linear(), rows, ["A"], 60, interventions=grid)
    monkeypatch.setattr(counterfactual_rows, "CHUNK_ROWS", 15)
    seen = []

    def watched(frame):
        seen.append(len(frame))
        return predictor(frame)

    pieces = variance_of_counterfactuals(watched, linear(), rows, ["A"], 60, interventions=grid)
    assert max(seen) <= 15
    assert sum(seen) == 60 + 60 * 7
    np.testing.assert_allclose(pieces.per_row["vcf"], whole.per_row["vcf"], rtol=1e-12)


def test_per_row_results_stand_under_the_rows_own_labels(rows):
    named = rows.head(30).set_index(pd.Index([f"person {place}" for place in range(30)]))
    found = variance_of_counterfactuals(lambda f: f["A"] * f["S"], linear(), named, ["A"], 30, interventions=[0.0, 2.0])
    assert found.per_row.index.equals(named.index)
    np.testing.assert_allclose(found.per_row["vcf"], named["S"] ** 2, rtol=1e-9)
    np.testing.assert_allclose(found.per_row["highest"], np.maximum(0, 2 * named["S"]), atol=1e-12)


def test_the_inner_expectation_is_over_the_noises_that_fit():
    # Ŷ = X: had A been no, X would have been yes with the probability that U_X was 1 given the row.
    scm = models.coins()
    rows = pd.DataFrame({"A": ["yes"] * 200, "X": ["yes"] * 200, "Y": ["no"] * 200})
    found = variance_of_counterfactuals(
        lambda f: (f["X"] == "yes").astype(float), scm, rows, ["A"], 200, interventions=["no", "yes"], n_draws=400
    )
    # E[Ŷ*_no] = 0.3 and E[Ŷ*_yes] = 1: variance over the two values 0.35².
    assert found.value == pytest.approx(0.35**2, abs=0.002)
    assert found.n_draws == 400
    assert "400 draws" in str(found)


def test_vcf_vanishes_for_an_invariant_predictor_whatever_the_draws():
    scm = models.coins()
    rows = scm.sample(100, random_state=0)
    found = variance_of_counterfactuals(lambda f: np.ones(len(f)), scm, rows, ["A"], 50, 20, n_draws=5)
    assert found.value == 0


def test_an_estimated_model_is_said_to_be_one(rows):
    fitted = fit_scm(linear().graph, rows)
    found = variance_of_counterfactuals(predictor, fitted, rows, ["A"], 200, 50)
    assert found.model_based
    assert str(found).startswith("Model-based")
    assert found.value == pytest.approx(3.5**2 * rows["A"].var(ddof=0), rel=0.1)


def test_units_bring_their_noise_along():
    scm = linear()
    units = scm.sample_units(100, random_state=0)
    found = variance_of_counterfactuals(predictor, scm, units, ["A"], 40, interventions=[0.0, 1.0])
    assert found.value == pytest.approx(3.5**2 / 4, rel=1e-9)


def test_the_same_seed_gives_the_same_answer_and_json_takes_it(rows):
    first, again, other = (
        variance_of_counterfactuals(predictor, linear(), rows, ["A"], 50, 20, random_state=seed) for seed in (1, 1, 2)
    )
    assert first.value == again.value != other.value
    assert first.interval == again.interval
    assert json.loads(json.dumps(first.to_dict(), allow_nan=False))["n_points"] == 50


def test_the_interval_covers_the_truth_as_often_as_it_says():
    # Ŷ = A S with A' ~ N(0, 1): the variance at a point is S², its mean 1, and S² is skewed.
    scm = StructuralCausalModel(
        CausalGraph.from_edges("", nodes=["A", "S"]), {"A": Additive(), "S": Additive()}, {"A": norm(), "S": norm()}
    )
    law = lambda n, generator: pd.DataFrame({"A": generator.normal(size=n)})  # noqa: E731
    covered = []
    for seed in range(200):
        rows = scm.sample(150, random_state=seed)
        found = variance_of_counterfactuals(
            lambda f: f["A"] * f["S"], scm, rows, ["A"], 150, 30, seed, interventions=law
        )
        covered.append(found.interval[0] <= 1 <= found.interval[1])
    assert 0.90 <= np.mean(covered) <= 0.99


# ---------------------------------------------------------------- only what the predictor needs


LABELLED = CausalGraph.from_edges("S -> A, S -> L, A -> L, L -> job, {L, S} -> Y")


@pytest.fixture(scope="module")
def labelled(rows):
    """L is determined by its row; job and Y, which descend from A as well, are labels that leave their noise open."""
    noise = np.random.default_rng(0).normal(size=(2, len(rows)))
    return rows.assign(
        job=np.where(rows["L"] + noise[0] > 0, "cook", "smith"), Y=np.where(rows["L"] + noise[1] > 0, "hi", "lo")
    )


def test_noise_that_no_input_depends_on_is_not_drawn(labelled):
    scm = fit_scm(LABELLED, labelled)
    model = LogisticRegression().fit(labelled[["S", "A", "L"]], labelled["Y"])
    assert variance_of_counterfactuals(model, scm, labelled, "A", 60, 20).n_draws == 1
    assert variance_of_counterfactuals(lambda f: f["L"], scm, labelled, "A", 60, 20, inputs=["L"]).n_draws == 1


@pytest.mark.parametrize("kind", [CIPRegressor, NaivePredictor])
def test_networks_are_shown_the_columns_they_read_not_all_they_were_fitted_on(kind, rows, labelled):
    table = labelled.drop(columns="Y")
    model = kind(protected=["A"], inputs=["S", "L"], epochs=1, random_state=0).fit(table, rows["L"])
    found = variance_of_counterfactuals(model, fit_scm(LABELLED, labelled), labelled, "A", 60, 20)
    assert found.n_draws == 1
    search = SimpleNamespace(best_estimator_=model, predict=model.predict)
    assert variance_of_counterfactuals(search, fit_scm(LABELLED, labelled), labelled, "A", 60, 20).n_draws == 1


def test_labels_beside_the_inputs_do_not_change_the_value(labelled):
    """The same model with the labels and without them gives the same number to the last bit."""
    full = fit_scm(LABELLED, labelled)
    graph = CausalGraph.from_edges("S -> A, S -> L, A -> L")
    part = StructuralCausalModel(graph, {node: full.mechanisms[node] for node in "SAL"})
    values = [
        variance_of_counterfactuals(predictor, scm, table, "A", 60, 20, inputs=["S", "A", "L"])
        for scm, table in ((full, labelled), (part, labelled[["S", "A", "L"]]))
    ]
    assert values[0].value == values[1].value
    assert values[0].interval == values[1].interval
    pd.testing.assert_frame_equal(values[0].per_row, values[1].per_row)


def test_a_label_on_the_way_to_an_input_is_drawn():
    scm = models.coins()
    rows = scm.sample(40, random_state=0)
    score = lambda f: (f["Y"] == "yes").astype(float)  # noqa: E731
    assert variance_of_counterfactuals(score, scm, rows, "A", 20, 5, inputs=["Y"], n_draws=7).n_draws == 7
    # Nothing that is left open stands between A and itself.
    own = lambda f: (f["A"] == "yes").astype(float)  # noqa: E731
    assert variance_of_counterfactuals(own, scm, rows, "A", 20, 5, inputs=["A"], n_draws=7).n_draws == 1


def test_a_latent_cause_of_the_outcome_alone_is_not_inferred():
    scm = models.hidden()
    rows = scm.sample(50, random_state=0)
    assert variance_of_counterfactuals(lambda f: f["A"], scm, rows, "A", 20, 5, inputs=["A"]).n_draws == 1
    assert variance_of_counterfactuals(lambda f: f["Y"], scm, rows, "A", 20, 5, inputs=["Y"]).n_draws == 100


def test_units_that_were_drawn_are_taken_as_they_are():
    scm = models.coins()
    units = scm.abduct(scm.sample(30, random_state=0), n_draws=3)
    found = variance_of_counterfactuals(lambda f: (f["Y"] == "yes").astype(float), scm, units, "A", 20, 5)
    assert (found.n_points, found.n_draws) == (20, 3)


def test_columns_that_the_graph_does_not_know_are_ignored(rows):
    more = rows.assign(id=[f"person {place}" for place in range(len(rows))], gaps=np.nan)
    model = LinearRegression().fit(rows[["S", "A", "L"]], rows["L"])
    for told in (model, predictor):
        plain, wide = (variance_of_counterfactuals(told, linear(), table, "A", 60, 20) for table in (rows, more))
        assert wide.value == plain.value
        assert wide.overlap == plain.overlap
    assert counterfactual_effect(model, linear(), more, {"A": 0.0}, {"A": 1.0}).value
    trained = CIPRegressor(protected=["A"], inputs=["L"], epochs=1, random_state=0).fit(more, rows["L"])
    assert variance_of_counterfactuals(trained, linear(), more, "A", 60, 20).value > 0


def test_a_model_that_reads_what_the_graph_does_not_know_is_refused(rows):
    more = rows.assign(wealth=rows["L"])
    model = LinearRegression().fit(more, rows["L"])
    with pytest.raises(InputError, match="reads 'wealth', which the causal model does not know; add it to the graph"):
        variance_of_counterfactuals(model, linear(), more, "A", 60, 20)


# ---------------------------------------------------------------- users' mistakes


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda f: np.zeros(3), "one prediction per row, but returned shape"),
        (lambda f: np.zeros((2, 3, 4)), "one prediction per row"),
        (lambda f: f["A"] * np.nan, "NaN or infinity in"),
        (lambda f: np.full(len(f), "yes"), "have no variance"),
        (42, "must have predict or predict_proba"),
    ],
)
def test_a_predictor_that_goes_wrong_is_refused(rows, model, message):
    with pytest.raises(InputError, match=message):
        variance_of_counterfactuals(model, linear(), rows, ["A"], 20, 5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protected": []}, "Nothing is protected"),
        ({"protected": ["B"]}, "not in the graph"),
        ({"n_points": 1}, "n_points must be at least 2"),
        ({"n_interventions": 2.5}, "n_interventions must be a whole number"),
        ({"interventions": [1.0]}, "at least 2 values"),
        ({"interventions": pd.DataFrame({"B": [1.0, 2.0]})}, "lacks the protected column 'A'"),
        ({"interventions": lambda n, g: pd.DataFrame({"A": [1.0]})}, "rows when asked for them, got 1"),
        ({"interventions": 3.0}, "interventions must be"),
        ({"interventions": object}, "interventions must be a function"),
        ({"interventions": lambda n: n}, "which does not take these two"),
        ({"inputs": ["Q"]}, "reads 'Q'"),
        ({"inputs": ["A", "L"], "reference": pd.DataFrame({"A": [1.0]})}, "reference lacks the column 'L'"),
        (
            {"reference": pd.DataFrame({name: [1.0, np.nan] for name in "SAL"})},
            "reference holds NaN or infinity in the",
        ),
        ({"reference": pd.DataFrame({name: [] for name in "SAL"})}, "reference has no rows"),
        ({"reference": [[1.0]]}, "reference must be a pandas DataFrame, got list"),
        ({"method": "decision_function"}, "method must be"),
        ({"method": "predict"}, "has no predict"),
        ({"n_draws": 0, "rows": None}, "n_draws must be at least 1"),
    ],
)
def test_bad_settings_are_refused(rows, settings, message):
    scm = linear()
    if "rows" in settings:
        scm, settings = models.rounded(), {**settings, "rows": models.rounded().sample(20, random_state=0)}
    arguments = {"protected": ["A"], "n_points": 20, "n_interventions": 5, "rows": rows, **settings}
    with pytest.raises(CiplearnError, match=message):
        variance_of_counterfactuals(lambda f: f["A"], scm, **arguments)


def test_one_row_is_too_few(rows):
    with pytest.raises(InputError, match="rows has 1 row"):
        variance_of_counterfactuals(predictor, linear(), rows.head(1), ["A"])


def test_rows_with_nan_and_what_is_no_model_are_refused(rows):
    with pytest.raises(InputError, match="'L' holds NaN"):
        variance_of_counterfactuals(predictor, linear(), rows.assign(L=np.nan), ["A"])
    with pytest.raises(InputTypeError, match="scm must be a StructuralCausalModel"):
        variance_of_counterfactuals(predictor, linear().graph, rows, ["A"])
    with pytest.raises(InputTypeError, match="rows must be a pandas DataFrame"):
        variance_of_counterfactuals(predictor, linear(), rows.to_numpy(), ["A"])
    with pytest.raises(InputError, match="A cannot be 'maybe'"):
        variance_of_counterfactuals(
            lambda f: np.ones(len(f)),
            models.coins(),
            models.coins().sample(20, random_state=0),
            ["A"],
            interventions=["no", "maybe"],
        )
