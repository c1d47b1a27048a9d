import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ciplearn import variance_of_counterfactuals
from ciplearn._core.errors import InputError
from ciplearn.evaluation import counterfactual_rows
from ciplearn.evaluation.counterfactual_rows import Points
from tests.evaluation.classifier import Squash
from tests.evaluation.linear_model import linear, predictor


def test_several_models_are_measured_on_rows_that_are_made_once(rows, monkeypatch):
    made, counterfactuals = [], Points.counterfactuals
    monkeypatch.setattr(Points, "counterfactuals", lambda *given: made.append(1) or counterfactuals(*given))
    models = {"steep": Squash(3.0), "flat": Squash(0.5), "number": predictor}
    found = variance_of_counterfactuals(models, linear(), rows, ["A"], 80, 30)
    assert list(found) == list(models)
    assert len(made) == 1
    for name, model in models.items():
        alone = variance_of_counterfactuals(model, linear(), rows, ["A"], 80, 30)
        assert (alone.value, alone.interval) == (found[name].value, found[name].interval)
        pd.testing.assert_frame_equal(alone.per_row, found[name].per_row)
    with pytest.raises(InputError, match="mapping of models is empty"):
        variance_of_counterfactuals({}, linear(), rows, ["A"], 80, 30)


def test_what_is_drawn_after_hangs_on_no_model_beside(rows):
    after = []
    for models in ({"flat": Squash(0.5)}, {"flat": Squash(0.5), "steep": Squash(3.0)}):
        generator = np.random.default_rng(0)
        variance_of_counterfactuals(models, linear(), rows, ["A"], 20, 5, generator)
        after.append(generator.random())
    assert after[0] == after[1]


def test_models_in_a_mapping_keep_their_own_columns(rows):
    models = {"all": predictor, "some": LinearRegression().fit(rows[["S", "L"]], rows["A"])}
    found = variance_of_counterfactuals(models, linear(), rows, ["A"], 80, 30)
    alone = variance_of_counterfactuals(models["some"], linear(), rows, ["A"], 80, 30)
    assert found["some"].value == pytest.approx(alone.value, rel=1e-12)
    assert found["some"].overlap.radius == alone.overlap.radius != found["all"].overlap.radius


def test_processes_share_the_points_and_change_nothing(rows, monkeypatch):
    monkeypatch.setattr(counterfactual_rows, "CHUNK_ROWS", 300)
    with joblib.parallel_config(backend="threading"):
        one, two = (
            variance_of_counterfactuals(Squash(2.0), linear(), rows, ["A"], 40, 30, n_jobs=jobs) for jobs in (None, 2)
        )
    assert one.value == two.value
    assert one.interval == two.interval


def test_a_predictor_that_changes_its_frame_changes_nothing_else(rows):
    def spoils(frame):
        frame["L"] = 0.0
        del frame["S"]
        return frame["A"]

    before = rows.copy()
    found = variance_of_counterfactuals({"spoils": spoils, "reads": predictor}, linear(), rows, ["A"], 80, 30)
    assert found["reads"].value == variance_of_counterfactuals(predictor, linear(), rows, ["A"], 80, 30).value
    pd.testing.assert_frame_equal(rows, before)
