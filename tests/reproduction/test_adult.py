import dataclasses
import json

import pandas as pd
import pytest

from ciplearn._core.errors import MissingDataError
from ciplearn.datasets import load_adult
from ciplearn.estimators.preparation import INDEPENDENCE, LINE
from reproduction import adult, adult_models
from reproduction.__main__ import main
from reproduction.adult_claims import claims
from reproduction.adult_models import AUTO, BASELINES, CURVES, PENALISED, estimated_model
from reproduction.runner import reproduce
from tests.datasets.adult_sample import write_files


def rows_of(method, auc, vcf, seeds=4, **more):
    """Predictors that differ by little from seed to seed."""
    balanced = more.pop("balanced_accuracy", 0.5 + 0.4 * (auc - 0.5))
    common = {"method": method, "accuracy": 0.8, "balanced_accuracy": balanced, "relative": vcf / 0.05, "flips": vcf}
    near = [1 + 1e-3 * seed for seed in range(seeds)]
    return [{**common, "auc": auc * one, "vcf": vcf * one, "seed": k, **more} for k, one in enumerate(near)]


def outcomes(ours, baselines):
    """Which claims hold, for methods with (gamma, AUC, VCF), the line's ends and baselines with (AUC, VCF)."""
    rows = []
    for method in PENALISED:
        for gamma, auc, vcf in ours:
            rows += rows_of(method, auc, vcf, gamma=gamma, setting=f"γ = {gamma:g}")
    for share, auc in ((0.8, 0.87), (0.4, 0.85), (0.05, 0.70), (0.01, 0.60), (0.0, 0.55)):
        rows += rows_of(LINE, auc, 0.025 * share, share=share, setting=f"{share:.0%} kept")
    for name, (auc, vcf) in baselines.items():
        rows += rows_of(name, auc, vcf)
    judged = [claim for claim in claims(pd.DataFrame(rows)) if claim.method == INDEPENDENCE]
    names = ("zero", "kept", "naive", "CF2", "PSCF", "CF1", "line", "relative", "by flips", "flips")
    return {name: claim.holds for name, claim in zip(names, judged, strict=True)}


NUMBERS = [(0.86, 0.020), (0.55, 0.0), (0.80, 0.006), (0.82, 0.004), (0.74, 0.0003)]
OTHERS = dict(zip(BASELINES, NUMBERS, strict=True))


class TestClaims:
    def test_all_hold_on_the_papers_story(self):
        ours = [(0, 0.88, 0.025), (1, 0.875, 0.005), (10, 0.80, 0.0002), (100, 0.75, 0.0001)]
        assert all(outcomes(ours, OTHERS).values())

    def test_each_can_fail(self):
        ours = [(0, 0.84, 0.025), (1, 0.83, 0.0249), (10, 0.52, 0.001)]
        found = outcomes(ours, OTHERS)
        assert not any(
            found[name] for name in ("zero", "kept", "naive", "CF2", "PSCF", "CF1", "line", "relative", "by flips")
        )
        assert not outcomes([(0, 0.84, 0.025), (1, 0.835, 0.025)], OTHERS)["flips"]

    def test_a_gamma_below_cf2s_vcf_has_to_be_as_accurate(self):
        ours = [(0, 0.88, 0.025), (1, 0.79, 0.005), (10, 0.70, 0.0002), (100, 0.5, 0.0001)]
        found = outcomes(ours, OTHERS)
        assert not found["CF2"]
        assert not found["PSCF"]
        assert not found["naive"]

    def test_the_commoner_class_is_no_accuracy_kept(self):
        ours = [(0, 0.88, 0.025), (1, 0.5, 0.0001)]
        found = outcomes(ours, OTHERS)
        assert found["zero"]
        assert not found["kept"]

    def test_a_lead_that_seeds_do_not_bear_out_is_none(self):
        ours = [(0, 0.88, 0.025), (1, 0.8002, 0.005)]
        assert not outcomes(ours, OTHERS)["CF2"]
        assert outcomes([(0, 0.88, 0.025), (1, 0.81, 0.005)], OTHERS)["CF2"]


TINY = adult.AdultSettings(
    rows=250,
    judging_rows=None,
    seeds=1,
    paper_gammas=(0.0, 5.0),
    route_gammas=(0.0, 1.0),
    shares=(0.1, 0.0),
    epochs=1,
    route_epochs=1,
    auto_rows=200,
    latent_epochs=1,
    points=10,
    interventions=4,
    draws=3,
)


@pytest.fixture
def study():
    return dataclasses.replace(adult.STUDY, presets={"quick": TINY})


@pytest.mark.slow
def test_a_study_on_made_up_rows_compares_all_predictors_and_is_kept(study, tmp_path, monkeypatch):
    options = {"data": str(write_files(tmp_path / "data", n_train=300, n_test=160))}
    estimated = []

    def remembered(rows, latent, seed):
        estimated.append(rows)
        return estimated_model(rows, latent, seed)

    monkeypatch.setattr(adult_models, "estimated_model", remembered)
    first = reproduce(study, "quick", tmp_path / "out", device="cpu", options=options)
    table = pd.read_csv(tmp_path / "out" / "adult" / "predictors.csv")
    assert set(table["method"]) == {*BASELINES, *CURVES, AUTO}
    assert len(table) == 5 + 4 * 2 + 1
    assert table[["accuracy", "balanced_accuracy", "auc", "flips"]].stack().between(0, 1).all()
    assert (table["vcf"] >= 0).all()
    invariant = table[(table["method"] == "CF1") | (table["share"] == 0)]
    assert invariant[["vcf", "flips"]].to_numpy().tolist() == [[0.0, 0.0]] * 2
    assert {claim["method"] for claim in first["claims"]} == set(PENALISED)
    nodes = {row["node"] for row in first["comparisons"][1]["rows"]}
    assert {"age", "occupation", "income"} <= nodes
    assert (tmp_path / "out" / "adult" / "figure.png").stat().st_size > 10_000
    # The model that trains and the model that judges know none of each other's rows.
    trains, judges = estimated
    assert len(trains) == 250
    assert len(judges) == len(load_adult(options["data"]).test)

    def forbidden(*args):
        raise AssertionError("nothing is estimated twice")

    monkeypatch.setattr(adult_models, "estimated_model", forbidden)
    (tmp_path / "out" / "adult" / "result.json").unlink()
    again = reproduce(study, "quick", tmp_path / "out", device="cpu", options=options)
    assert again["comparisons"] == first["comparisons"]


def test_without_data_the_command_says_how_to_provide_it(tmp_path, monkeypatch, capsys):
    def offline(folder):
        raise MissingDataError("The Adult data could not be downloaded; name the folder in CIPLEARN_DATA.")

    monkeypatch.delenv("CIPLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("ciplearn.datasets.adult.download", offline)
    assert main(["adult", "--out", str(tmp_path / "out"), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "CIPLEARN_DATA" in said
    assert not list((tmp_path / "out").rglob("result.*"))


def test_settings_are_plain_values_and_the_paper_preset_has_the_papers_numbers():
    paper = adult.PRESETS["paper"]
    assert json.dumps(dataclasses.asdict(paper))
    assert (paper.rows, paper.seeds, paper.epochs, paper.batch_size) == (None, 4, 100, 128)
    assert (paper.points, paper.interventions) == (1000, 100)
