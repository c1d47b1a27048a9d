from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.estimators import CIPRegressor
from ciplearn.kernels import Gaussian
from ciplearn.penalties import ResidualHSCIC
from reproduction import dsprites as study
from reproduction import dsprites_trainings as trainings
from reproduction import sprites as dsprites
from reproduction.dsprites_trainings import BY_VARIABLE, METHODS, ImageCase, penalty_of
from reproduction.study import Conditions

RIGHT = ["color", "orientation", "scale", "x_pos"]

TINY = replace(
    study.PRESETS["quick"],
    rows=150,
    seeds=2,
    paper_gammas=(1.0,),
    by_variable_gammas=(1.0,),
    counterfactual_gammas=(1.0,),
    epochs=1,
    points=5,
    interventions=5,
)


@pytest.fixture(scope="module")
def conditions(tmp_path_factory):
    return Conditions(0, "cpu", tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def tables(conditions):
    return study.measure(TINY, conditions)


def test_every_network_of_every_seed_is_measured(tables):
    table, findings = tables["trainings"], study.judge(tables, TINY)
    assert len(table) == 2 * 4
    assert set(table["seed"]) == {0, 1}
    assert (table[["mse", "vcf"]] > 0).all(axis=None)
    assert {claim.method for claim in findings.claims} == set(METHODS)
    assert len(findings.claims) == 9
    assert findings.figure is not None


def test_the_gallery_shows_one_sprite_at_every_place(tables):
    moved = tables["moved_sideways"]
    one = moved[(moved["seed"] == 1) & (moved["method"] == BY_VARIABLE)]
    np.testing.assert_array_equal(one["x_pos"], np.arange(32))
    assert one[["shape", "y_pos", "orientation", "factual"]].nunique().tolist() == [1, 1, 1, 1]
    assert one["shape"].iloc[0] == 3
    assert one["prediction"].nunique() > 1


def test_a_finished_seed_is_not_trained_again(tables, conditions, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(study, "one_seed", refuse)
    again = study.measure(TINY, conditions)
    np.testing.assert_allclose(again["trainings"]["mse"], tables["trainings"]["mse"])


def test_a_killed_seed_goes_on_with_the_networks_that_are_done(tmp_path, monkeypatch):
    fit, fitted = CIPRegressor.fit, []

    def killed_at_third(model, *rows, **more):
        fitted.append(model.gamma)
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return fit(model, *rows, **more)

    monkeypatch.setattr(CIPRegressor, "fit", killed_at_third)
    whole = replace(TINY, points=3)
    with pytest.raises(KeyboardInterrupt):
        trainings.one_seed(whole, 0, 0, "cpu", tmp_path / "killed")
    resumed = trainings.one_seed(whole, 0, 0, "cpu", tmp_path / "killed")
    assert len(fitted) == len(whole.trainings()) + 1
    monkeypatch.setattr(CIPRegressor, "fit", fit)
    for table, other in zip(resumed, trainings.one_seed(whole, 0, 0, "cpu", tmp_path / "other"), strict=True):
        pd.testing.assert_frame_equal(table, other)


def test_vcf_and_error_are_those_of_the_network(tmp_path):
    settings = replace(
        TINY, paper_gammas=(), by_variable_gammas=(), counterfactual_gammas=(), points=1000, interventions=2000
    )
    case = ImageCase.draw(settings.rows, 0)
    model = trainings._trained(case, BY_VARIABLE, 0.0, settings, 0, "cpu", tmp_path)
    measures, _ = trainings.one_seed(settings, 0, 0, "cpu", tmp_path / "seed")
    inputs = list(dsprites.FACTORS)
    said = model.predict(case.test[inputs], tensors=(case.test_pictures,))
    error = np.mean((said - case.test["Y"]) ** 2) / case.outcome_range**2
    np.testing.assert_allclose(measures["mse"], error, rtol=1e-4)
    # Each position weighs as much as it is frequent among the rows.
    weights = np.bincount(case.test["x_pos"].astype(int), minlength=32) / len(case.test)
    worlds = [case.scm.counterfactual(case.test_units, {"x_pos": float(x)}) for x in range(32)]
    answers = np.stack([model.predict(world[inputs], tensors=(dsprites.pictures(world),)) for world in worlds], axis=1)
    means = answers @ weights
    variance = (np.square(answers - means[:, None]) @ weights).mean()
    np.testing.assert_allclose(measures["vcf"], variance / case.outcome_range**2, rtol=0.1)


def test_a_kernel_for_each_variable_tells_the_outcome_from_its_mean_by_shape_and_y():
    rows = ImageCase.draw(1200, 0).train
    scaled = (rows - rows.min()) / (rows.max() - rows.min()).replace(0, 1)
    outcome = scaled[["Y"]].to_numpy()
    mean = scaled.groupby(["shape", "y_pos"])[["Y"]].transform("mean").to_numpy()
    right, given = (scaled[names].to_numpy() for names in (RIGHT, ["shape", "y_pos"]))

    def contrast(penalty):
        operator = penalty.prepare(right, given)
        floor = float(operator(np.zeros_like(outcome)))
        return (float(operator(outcome)) - floor) / (float(operator(mean)) - floor)

    assert contrast(penalty_of(BY_VARIABLE)) > 3 * contrast(ResidualHSCIC(kernel=Gaussian(0.1)))


def test_imagined_pictures_show_the_row_with_another_x_and_nothing_else_but_its_effects():
    case = ImageCase.draw(200, 0)
    worlds = case.worlds(3, 0)
    for table, (images,) in worlds:
        np.testing.assert_array_equal(images, dsprites.pictures(table))
        same = ["color", "shape", "orientation", "y_pos"]
        np.testing.assert_array_equal(table[same], case.train[same])
        # Where x is drawn as it was, the whole row is as it was: its noise is kept.
        as_it_was = table["x_pos"].to_numpy() == case.train["x_pos"].to_numpy()
        assert as_it_was.any()
        np.testing.assert_array_equal(table[as_it_was], case.train[list(table.columns)][as_it_was])
    assert len({tuple(table["x_pos"]) for table, _ in worlds}) == 3


@pytest.mark.slow
def test_a_strong_counterfactual_route_leaves_less_vcf_than_none(tmp_path):
    settings = replace(
        TINY, rows=400, paper_gammas=(), by_variable_gammas=(), counterfactual_gammas=(100.0,), epochs=12
    )
    measures, _ = trainings.one_seed(replace(settings, points=40, interventions=20), 0, 0, "cpu", tmp_path)
    by_gamma = measures.set_index("gamma")["vcf"]
    assert by_gamma[100.0] < 0.3 * by_gamma[0.0]


def test_the_mean_by_shape_and_y_survives_cells_without_training_rows():
    case = ImageCase.draw(60, 0)
    assert np.isfinite(case.cell_means()).all()
    assert case.error(case.test["Y"].to_numpy()) == 0


def test_pictures_come_from_the_original_file_where_there_is_one(monkeypatch):
    class Original:
        def __init__(self, path):
            assert path == "original.npz"

        def images(self, latents):
            return 1 - dsprites.render(latents)

    monkeypatch.setattr(trainings, "Archive", Original)
    rendered, original = ImageCase.draw(50, 0), ImageCase.draw(50, 0, "original.npz")
    np.testing.assert_array_equal(original.train_pictures, 1 - rendered.train_pictures)
    np.testing.assert_array_equal(original.test_pictures, 1 - rendered.test_pictures)


def test_a_file_that_is_not_there_is_one_sentence(conditions):
    with pytest.raises(InputError, match=r"absent\.npz is no file"):
        study.measure(TINY, replace(conditions, options={"data": "absent.npz"}))
