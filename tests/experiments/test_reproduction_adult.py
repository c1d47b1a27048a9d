import dataclasses
import json

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ciplearn import CausalGraph, CIPClassifier, StructuralCausalModel, fit_scm, variance_of_counterfactuals
from ciplearn._core.errors import MissingDataError
from ciplearn.baselines import CF1
from ciplearn.cli.app import _run
from ciplearn.experiments.reproduction import adult
from ciplearn.experiments.reproduction.adult_claims import claims
from ciplearn.experiments.reproduction.adult_counterfactuals import Imagining, Panel, vcf_of_each
from ciplearn.experiments.reproduction.adult_models import RIVALS
from ciplearn.experiments.reproduction.methods import DEFAULT, METHODS, PAPER
from ciplearn.experiments.reproduction.runner import reproduce
from tests.datasets.adult_sample import write_files


class Squash:
    """A classifier by a formula."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, formula):
        self.formula = formula

    def predict_proba(self, frame):
        yes = 1 / (1 + np.exp(-np.asarray(self.formula(frame), dtype=float)))
        return np.column_stack([1 - yes, yes])


class TestVarianceOfMany:
    @pytest.fixture
    def known(self):
        graph = CausalGraph.from_edges("S -> L, A -> L")
        scm = StructuralCausalModel(
            graph,
            equations={"S": lambda p, u: u, "A": lambda p, u: u, "L": lambda p, u: p["A"] + p["S"] + u},
            noise=dict.fromkeys("SAL", norm()),
        )
        return scm, scm.sample(300, random_state=0)

    def test_agrees_with_the_measure_that_asks_one_model_at_a_time(self, known):
        scm, rows = known
        models = [Squash(lambda frame: frame["L"]), Squash(lambda frame: frame["A"] * frame["S"])]
        found = vcf_of_each(models, scm, rows, ["A"], Imagining(300, 400, 1), seed=0)
        assert found.shape == (2, 300)
        for model, values in zip(models, found, strict=True):
            expected = variance_of_counterfactuals(model, scm, rows, ["A"], 300, 400)
            assert values.mean() == pytest.approx(expected.value, rel=0.02)

    def test_what_does_not_read_the_protected_side_has_variance_zero(self, known):
        scm, rows = known
        assert (vcf_of_each([Squash(lambda f: f["S"])], scm, rows, ["A"], Imagining(50, 10, 1), 0) == 0).all()

    def test_predictions_are_averaged_over_draws_of_what_a_row_leaves_open(self):
        rng = np.random.default_rng(0)
        a = rng.normal(size=400)
        table = pd.DataFrame({"A": a, "V": np.where(a + rng.logistic(size=400) > 0, "up", "down")})
        scm = fit_scm(CausalGraph.from_edges("A -> V"), table)
        model = Squash(lambda frame: (frame["V"] == "up").astype(float))
        few, many = (vcf_of_each([model], scm, table, ["A"], Imagining(400, 60, m), 0).mean() for m in (1, 100))
        expected = variance_of_counterfactuals(model, scm, table, ["A"], 400, 60, n_draws=100)
        assert many == pytest.approx(expected.value, rel=0.05)
        assert few > 1.5 * many

    def test_workers_share_the_points_and_change_nothing(self, known, monkeypatch):
        scm, rows = known
        monkeypatch.setattr("ciplearn.evaluation.counterfactual_rows.CHUNK_ROWS", 200)
        asked = ([CF1(graph=CausalGraph.from_edges("S -> L, A -> L, L -> Y"), outcome="Y", protected=["A"], epochs=1)],)
        asked[0][0].fit(rows, np.where(rows["L"] > 0, "yes", "no"))
        with joblib.parallel_config(backend="threading"):
            one, two = (vcf_of_each(*asked, scm, rows, ["A"], Imagining(40, 10, 1), 0, jobs=jobs) for jobs in (1, 2))
        assert one.shape == (1, 40)
        np.testing.assert_array_equal(one, two)

    def test_a_network_answers_as_predict_proba_does(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"a": rng.normal(size=60), "b": pd.Categorical(rng.choice(["x", "y", "z"], 60))})
        model = CIPClassifier(protected=["a"], epochs=2, random_state=0).fit(table, rng.choice(["no", "yes"], 60))
        new = table.assign(b=pd.Categorical(rng.choice(["x", "w"], 60)))
        np.testing.assert_allclose(Panel(new).answers(model), model.predict_proba(new)[:, 1], atol=1e-6)


def outcomes(ours, rivals):
    """Which claims hold, for one method with (gamma, accuracy, vcf) and rivals with (accuracy, vcf)."""
    rows = [{"method": DEFAULT, "gamma": g, "accuracy": a, "vcf": v} for g, a, v in ours]
    rows += [{"method": name, "gamma": 0.0, "accuracy": a, "vcf": v} for name, (a, v) in rivals.items()]
    judged = claims(pd.DataFrame(rows), [DEFAULT])
    names = ("zero", "kept", "naive", "CF2", "PSCF", "CF1")
    return {name: claim.holds for name, claim in zip(names, judged, strict=True)}


OTHERS = dict(zip(RIVALS, [(0.83, 0.020), (0.75, 0.0), (0.80, 0.006), (0.74, 0.0001)], strict=True))


class TestClaims:
    def test_all_hold_on_the_papers_story(self):
        ours = [(0, 0.83, 0.025), (1, 0.82, 0.005), (10, 0.76, 0.0002), (100, 0.755, 0.0001)]
        assert all(outcomes(ours, OTHERS).values())

    def test_each_can_fail(self):
        ours = [(0, 0.83, 0.025), (1, 0.79, 0.021)]
        assert not any(outcomes(ours, OTHERS).values())

    def test_a_gamma_below_cf2s_vcf_has_to_be_as_accurate(self):
        ours = [(0, 0.83, 0.025), (1, 0.79, 0.005), (10, 0.70, 0.0002), (100, 0.755, 0.0001)]
        found = outcomes(ours, OTHERS)
        assert not found["CF2"]
        assert not found["kept"]
        assert found["naive"]


TINY = adult.AdultSettings(
    rows=250,
    seeds=1,
    paper_gammas=(0.0, 5.0),
    default_gammas=(0.0, 500.0),
    epochs=1,
    default_epochs=1,
    latent_epochs=1,
    points=10,
    interventions=4,
    draws=3,
    slow_draws=2,
)


@pytest.fixture
def study():
    return dataclasses.replace(adult.STUDY, presets={"quick": TINY})


def test_a_study_on_made_up_rows_compares_all_predictors_and_is_kept(study, tmp_path, monkeypatch):
    options = {"data": str(write_files(tmp_path / "data", n_train=300, n_test=80))}
    first = reproduce(study, "quick", tmp_path / "out", device="cpu", options=options)
    table = pd.read_csv(tmp_path / "out" / "adult" / "predictors.csv")
    assert set(table["method"]) == {*RIVALS, *METHODS}
    assert len(table) == 4 + 4
    assert table[["accuracy", "balanced_accuracy", "auc"]].stack().between(0, 1).all()
    assert (table["vcf"] >= 0).all()
    assert table.loc[table["method"] == "CF1", "vcf"].tolist() == [0.0]
    assert len(first["claims"]) == 12
    assert {claim["method"] for claim in first["claims"]} == {PAPER, DEFAULT}
    nodes = {row["node"] for row in first["comparisons"][1]["rows"]}
    assert {"age", "occupation", "income"} <= nodes
    assert (tmp_path / "out" / "adult" / "figure.png").stat().st_size > 10_000

    def forbidden(*args):
        raise AssertionError("nothing is estimated twice")

    monkeypatch.setattr(adult, "estimated_model", forbidden)
    (tmp_path / "out" / "adult" / "result.json").unlink()
    again = reproduce(study, "quick", tmp_path / "out", device="cpu", options=options)
    assert again["comparisons"] == first["comparisons"]


def test_without_data_the_command_says_how_to_provide_it(tmp_path, monkeypatch, capsys):
    def offline(folder):
        raise MissingDataError("The Adult data could not be downloaded; name the folder in CIPLEARN_DATA.")

    monkeypatch.delenv("CIPLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("ciplearn.datasets.adult.download", offline)
    assert _run(["reproduce", "adult", "--out", str(tmp_path / "out"), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "CIPLEARN_DATA" in said
    assert not list((tmp_path / "out").rglob("result.*"))


def test_settings_are_plain_values_and_the_paper_preset_has_the_papers_numbers():
    paper = adult.PRESETS["paper"]
    assert json.dumps(dataclasses.asdict(paper))
    assert (paper.rows, paper.seeds, paper.epochs, paper.batch_size) == (None, 4, 100, 128)
    assert (paper.points, paper.interventions, paper.draws) == (1000, 100, 500)
