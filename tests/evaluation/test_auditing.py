import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ciplearn import audit, datasets, fit_scm
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.baselines import NaivePredictor
from ciplearn.causal import CausalGraph
from ciplearn.estimators import CIPRegressor
from ciplearn.evaluation import Limits, auditing, counterfactual_rows
from ciplearn.evaluation.regression import Variable
from ciplearn.scm import AdditiveNoise
from tests.scm import models


@pytest.fixture(scope="module")
def rows():
    return models.chain().sample(400, random_state=0)


def settled(model, scm, rows, **settings):
    return audit(model, scm, rows, "Y", ["A"], n_points=100, n_interventions=50, **settings)


def test_a_predictor_that_follows_a_is_found_out(rows):
    model = LinearRegression().fit(rows[["A", "L", "S"]], rows["Y"])
    found = settled(model, models.chain(), rows)
    assert found.vcf.value > 0.1
    assert found.test.rejects
    assert found.hscic > 0
    assert found.scores["r2"] == pytest.approx(model.score(rows[["A", "L", "S"]], rows["Y"]))
    assert not found.model_based
    text = str(found)
    assert text.startswith("On 400 rows the predictor has mean squared error")
    assert "The graph certifies that Ŷ ⊥ {A, L} | {S} makes predictions counterfactually invariant in A." in text
    assert "VCF =" in text


def test_a_predictor_that_follows_s_alone_passes(rows):
    found = settled(lambda frame: frame["S"] ** 2, models.chain(), rows)
    assert found.vcf.value == 0
    assert not found.test.rejects


def test_a_graph_alone_is_enough_and_the_answer_is_model_based(rows):
    found = settled(lambda frame: frame["L"], models.CHAIN, rows)
    exact = settled(lambda frame: frame["L"], models.chain(), rows)
    assert found.model_based
    assert "Model-based" in str(found)
    assert found.vcf.value == pytest.approx(exact.vcf.value, rel=0.3)


@pytest.mark.parametrize(
    "mechanisms",
    [
        pytest.param(None, id="chosen"),
        pytest.param({"L": AdditiveNoise(), "A": AdditiveNoise()}, id="wrong", marks=pytest.mark.slow),
    ],
)
def test_a_model_that_is_in_doubt_is_never_told_with_confidence(mechanisms):
    """Scenario 1, where data cannot tell which side imagined values lie on: the truth is about 1.3."""
    world = datasets.scenario_1()
    table = world.sample(1000, random_state=3)
    model = fit_scm(world.graph, table, mechanisms, random_state=0)
    settings = {"inputs": ["L"], "n_points": 200, "n_interventions": 100}
    found = audit(lambda frame: frame["L"], model, table, "Y", ["A"], **settings)
    truth = audit(lambda frame: frame["L"], world, table, "Y", ["A"], **settings)
    assert found.vcf.interval[1] < truth.vcf.value, "the interval of the estimated model misses the truth"
    assert found.bounds.interval[0] <= truth.vcf.value <= found.bounds.interval[1]
    assert "if the causal model were right" in str(found)
    assert f"The causal model is in doubt: {found.vcf.doubts[0].sentence}" in str(found)
    assert "is in doubt. It agrees with the rows alone, which put it between" in str(found)
    assert {doubt["node"] for doubt in found.to_dict()["vcf"]["doubts"]} == {"L"}
    # What is known is not in doubt, nor is a model that the answer does not pass through.
    assert truth.vcf.doubts == ()
    aside = audit(lambda frame: frame["Z"], model, table, "Y", ["A"], **{**settings, "inputs": ["Z"]})
    assert aside.vcf.doubts == ()


def test_a_classifier_is_scored_as_one(rows):
    labelled = rows.assign(Y=np.where(rows["Y"] > 1, "high", "low"))
    model = LogisticRegression().fit(labelled[["S", "L"]], labelled["Y"])
    found = settled(model, models.CHAIN, labelled)
    assert found.scores["accuracy"] == pytest.approx(model.score(labelled[["S", "L"]], labelled["Y"]))
    assert found.scores["log_loss"] > 0
    assert list(found.vcf.per_output) == ["low"]
    chance, low = model.predict_proba(labelled[["S", "L"]])[:, 1], (labelled["Y"] == "low").to_numpy()
    wins = np.sign(chance[low][:, None] - chance[~low])
    assert found.scores["auc"] == pytest.approx((1 + wins.mean()) / 2)


def test_of_use_names_the_rate_of_a_constant_and_no_share_of_a_log_loss_alone(rows):
    labelled = rows.assign(Y=np.where(rows["Y"] > 1, "high", "low"))
    model = LogisticRegression().fit(labelled[["S", "L"]], labelled["Y"])
    use = settled(model, models.CHAIN, labelled).conclusion.checks[0]
    constant = labelled["Y"].value_counts(normalize=True).max()
    assert f"a constant {100 * constant:.1f} %; its log loss is {100 * use.value:.1f} % below" in use.sentence
    assert use.sentence.endswith("at least 1 % is required.")


def test_a_bound_on_vcf_is_said_as_a_typical_difference(rows):
    found = settled(lambda frame: frame["L"], models.chain(), rows, limits=Limits(max_vcf=2.0))
    check = found.conclusion.checks[-1]
    assert (check.asks, check.value, check.limit) == ("vcf", found.vcf.value, 2.0)
    assert check.sentence.startswith(found.unit.amount(found.vcf.typical))
    assert f"at most {found.unit.amount(2.0)} is allowed" in check.sentence


def test_the_result_is_frozen_and_json_takes_it(rows):
    found = settled(lambda frame: frame["L"], models.chain(), rows)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.hscic = 0.0
    parsed = json.loads(found.to_json())
    assert parsed["vcf"]["value"] == found.vcf.value
    assert parsed["independence"]["right"] == ["A", "L"]
    assert parsed["test"]["p_value"] == found.test.p_value


def test_the_predictor_never_sees_the_outcome(rows):
    seen = set()

    def nosy(frame):
        seen.update(frame.columns)
        return frame["S"]

    settled(nosy, models.chain(), rows)
    assert seen == {"A", "L", "S"}


def test_without_a_conditioning_set_the_independence_is_plain(rows):
    found = settled(lambda frame: frame["S"], models.chain(), rows, context=["A", "L", "S"], adjustment=[])
    assert "HSIC is" in str(found)


def test_columns_that_the_graph_does_not_know_are_ignored(rows):
    rows = rows.head(100)
    more = rows.assign(id=[f"person {place}" for place in range(len(rows))])
    model = LinearRegression().fit(rows[["A", "L", "S"]], rows["Y"])
    for scm in (models.chain(), models.CHAIN):
        plain, wide = settled(model, scm, rows), settled(model, scm, more)
        assert wide.to_dict() == plain.to_dict()
    seen = set()
    settled(lambda frame: seen.update(frame.columns) or frame["S"], models.chain(), more)
    assert seen == {"A", "L", "S"}
    with pytest.raises(InputError, match="reads 'id', which the causal model does not know"):
        settled(LinearRegression().fit(rows.assign(id=1.0), rows["Y"]), models.chain(), rows.assign(id=1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scm": "graph"}, "scm must be a StructuralCausalModel or a CausalGraph"),
        ({"rows": [1, 2]}, "table must be a pandas DataFrame"),
        ({"model": 3}, "must have predict"),
    ],
)
def test_mistakes_are_named(rows, change, message):
    arguments = {"model": lambda frame: frame["S"], "scm": models.chain(), "rows": rows, **change}
    with pytest.raises(CiplearnError, match=message):
        settled(**arguments)


def test_a_missing_outcome_is_named(rows):
    with pytest.raises(InputError, match="lacks the outcome 'Y'"):
        settled(lambda frame: frame["S"], models.chain(), rows.drop(columns="Y"))


def test_every_side_is_encoded_once(rows, monkeypatch):
    of, seen = Variable.of, []
    monkeypatch.setattr(Variable, "of", lambda value, name: seen.append(name) or of(value, name))
    settled(lambda frame: frame["L"], models.chain(), rows)
    assert sorted(seen) == ["given", "right", "y_hat"]


ROLES = {"outcome": "Y", "protected": ["A"], "context": ["A", "L", "S"]}


@pytest.mark.parametrize(
    "roles",
    [
        {**ROLES, "graph": models.CHAIN},
        {**ROLES, "graph": models.CHAIN, "protected": "A", "inputs": ["S", "L"]},
        {**ROLES, "protected": [0]},
    ],
)
def test_roles_of_a_baseline_are_the_defaults(rows, roles):
    baseline = NaivePredictor(**roles, epochs=1, random_state=0).fit(rows[["A", "L", "S"]], rows["Y"])
    found = audit(baseline, models.chain(), rows, n_points=20, n_interventions=10)
    assert found.verdict == models.CHAIN.criterion(**ROLES, inputs=roles.get("inputs"))
    assert found.vcf.value > 0


def test_roles_of_a_baseline_that_the_graph_does_not_know_are_no_defaults(rows):
    baseline = NaivePredictor(outcome="Q", protected=["A"], epochs=1, random_state=0).fit(rows[["A", "L"]], rows["Y"])
    with pytest.raises(CiplearnError, match="needs one outcome"):
        audit(baseline, models.chain(), rows, n_points=20, n_interventions=10)


def test_roles_of_a_baseline_may_be_vectors():
    scm = models.labels()
    rows = scm.sample(60, random_state=0)
    columns = ["A", "V[0]", "V[1]"]
    baseline = NaivePredictor(outcome="Y", protected=["A"], inputs=columns, epochs=1, random_state=0)
    found = audit(baseline.fit(rows[columns], rows["Y"]), scm, rows, n_points=20, n_interventions=10)
    assert found.verdict.inputs == ("A", "V")


def test_what_vcf_can_be_told_audit_can_be_told(rows):
    def bare(frame):
        return frame.to_numpy() @ [2.0, 1.0]

    bare.predict = bare
    grid, training = [0.0, 1.0, 3.0], rows + 100
    found = settled(
        bare, models.chain(), rows, inputs=["A", "S"], interventions=grid, reference=training, method="predict"
    )
    assert found.vcf.value == pytest.approx(4 * np.var(grid))
    assert found.vcf.n_interventions == 3
    assert found.vcf.overlap.share_outside == 1
    assert found.scores["mse"] == pytest.approx(np.square(rows["Y"] - 2 * rows["A"] - rows["S"]).mean())
    assert (found.inputs, found.method) == (("A", "S"), "predict")
    with pytest.raises(InputError, match="reads 'Y', which is not among"):
        settled(bare, models.chain(), rows, inputs=["A", "Y"])


def test_labels_can_be_judged_instead_of_probabilities(rows):
    labelled = rows.assign(Y=(rows["Y"] > 1).astype(int))
    model = LogisticRegression().fit(labelled[["S", "L"]], labelled["Y"])
    assert settled(model, models.CHAIN, labelled).method == "predict_proba"
    found = settled(model, models.CHAIN, labelled, method="predict")
    assert found.method == "predict"
    assert list(found.vcf.per_output) == ["prediction"]


def test_roles_that_a_model_was_trained_with_are_the_defaults():
    scm = datasets.first_synthetic()
    table = scm.sample(300, random_state=0)
    roles = {"outcome": "Y", "protected": ["A"], "context": ["A", "L", "Z"]}

    class Trained:
        verdict_ = scm.graph.criterion(**roles)

        def predict(self, rows):
            return rows["A"] + rows["Z"]

    found = audit(Trained(), scm, table, n_points=20, n_interventions=10)
    told = audit(Trained(), scm, table, **roles, n_points=20, n_interventions=10)
    assert found.verdict == told.verdict
    assert found.vcf.value == told.vcf.value > 0


def counted(monkeypatch):
    """Count the runs of the criterion."""
    runs, criterion = [], CausalGraph.criterion
    monkeypatch.setattr(CausalGraph, "criterion", lambda graph, *a, **b: runs.append(1) or criterion(graph, *a, **b))
    return runs


def test_the_verdict_that_a_model_carries_is_taken_without_asking_again(rows, monkeypatch):
    model = CIPRegressor(graph=models.CHAIN, **ROLES, epochs=1, random_state=0).fit(rows[["A", "L", "S"]], rows["Y"])
    runs = counted(monkeypatch)
    for scm in (models.chain(), models.CHAIN):
        assert audit(model, scm, rows, n_points=20, n_interventions=10).verdict is model.verdict_
    assert runs == []
    found = audit(model, models.chain(), rows, "Y", ["A"], context=["A", "S"], n_points=20, n_interventions=10)
    assert found.verdict.context == ("A", "S")
    assert len(runs) == 1


def test_a_verdict_on_another_graph_is_not_taken(rows, monkeypatch):
    other = CausalGraph.from_edges("S -> A, S -> L, A -> L, {S, A, L} -> Y, A <-> Y")
    model = CIPRegressor(graph=other, **ROLES, epochs=1, random_state=0).fit(rows[["A", "L", "S"]], rows["Y"])
    runs = counted(monkeypatch)
    found = audit(model, models.chain(), rows, n_points=20, n_interventions=10)
    assert len(runs) == 1
    assert found.verdict == models.CHAIN.criterion(**ROLES)
    told = audit(model, models.chain(), rows, verdict=model.verdict_, n_points=20, n_interventions=10)
    assert told.verdict is model.verdict_
    with pytest.raises(InputError, match="Both a verdict and roles were given"):
        audit(model, models.chain(), rows, "Y", verdict=model.verdict_)


def test_a_large_table_is_audited_in_blocks_and_samples(rows, monkeypatch):
    monkeypatch.setattr(counterfactual_rows, "CHUNK_ROWS", 150)
    monkeypatch.setattr(auditing, "MAX_ROWS", 100)
    monkeypatch.setattr(auditing, "_MODEL_ROWS", 120)
    most = []

    def watched(frame):
        most.append(len(frame))
        return frame["L"]

    found = settled(watched, models.CHAIN, rows)
    assert max(most) <= 150
    assert found.test.n_rows == 100
    assert found.n_rows == 400
    assert found.scores["mse"] == pytest.approx(np.square(rows["L"] - rows["Y"]).mean())


def test_a_sample_holds_every_label():
    rows = pd.DataFrame({"x": np.arange(500.0), "t": ["rare"] + ["common"] * 498 + [None]})
    sample = counterfactual_rows.sample_with_every_label(rows, 20, np.random.default_rng(0))
    assert set(sample["t"].dropna()) == {"rare", "common"}
    assert len(sample) <= 22
    assert sample["t"].isna().any()


def test_the_models_that_are_compared_and_the_deviation_of_the_outcome_can_be_asked_for(rows):
    model, other = (lambda frame: frame["L"]), (lambda frame: frame["S"])
    found = settled(model, models.chain(), rows, beside={"other": other, "third": model})
    assert found.models == {"this model": model, "other": other}
    assert found.deviation == pytest.approx(rows["Y"].std(ddof=0))
    assert found.limit == pytest.approx(0.1 * found.deviation)
