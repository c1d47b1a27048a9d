import dataclasses
import json

import pandas as pd
import pytest

from ciplearn._core.errors import MissingDataError
from ciplearn.cli.app import _run
from ciplearn.experiments.reproduction import adult
from ciplearn.experiments.reproduction.adult_claims import claims
from ciplearn.experiments.reproduction.adult_models import BASELINES
from ciplearn.experiments.reproduction.methods import DEFAULT, METHODS, PAPER
from ciplearn.experiments.reproduction.runner import reproduce
from tests.datasets.adult_sample import write_files


def outcomes(ours, baselines):
    """Which claims hold, for one method with (gamma, accuracy, vcf) and baselines with (accuracy, vcf)."""
    rows = [{"method": DEFAULT, "gamma": g, "accuracy": a, "vcf": v} for g, a, v in ours]
    rows += [{"method": name, "gamma": 0.0, "accuracy": a, "vcf": v} for name, (a, v) in baselines.items()]
    judged = claims(pd.DataFrame(rows), [DEFAULT])
    names = ("zero", "kept", "naive", "CF2", "PSCF", "CF1")
    return {name: claim.holds for name, claim in zip(names, judged, strict=True)}


OTHERS = dict(zip(BASELINES, [(0.83, 0.020), (0.75, 0.0), (0.80, 0.006), (0.74, 0.0001)], strict=True))


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
    assert set(table["method"]) == {*BASELINES, *METHODS}
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
