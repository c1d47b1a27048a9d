import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ciplearn._core.errors import InputError
from ciplearn.evaluation import counterfactual_effect, flip_rate
from ciplearn.evaluation.effects import setting_text
from tests.evaluation.linear_model import linear, predictor
from tests.scm import models


@pytest.fixture(scope="module")
def rows():
    return linear().sample(400, random_state=0)


def test_the_effect_of_a_linear_predictor_is_its_total_effect(rows):
    found = counterfactual_effect(predictor, linear(), rows, {"A": 1.0}, {"A": 3.0})
    assert found.value["prediction"] == pytest.approx(2 * 3.5)
    np.testing.assert_allclose(found.per_row["prediction"], 7.0)
    assert "from A = 1 to A = 3" in str(found)
    assert json.dumps(found.to_dict())


def test_the_effect_has_an_interval_over_rows(rows):
    found = counterfactual_effect(lambda f: f["A"] * f["S"], linear(), rows, {"A": 0.0}, {"A": 1.0})
    low, high = found.interval["prediction"]
    assert low < rows["S"].mean() < high
    assert high - low == pytest.approx(2 * 1.96 * rows["S"].std() / 20, rel=0.15)


def test_a_label_that_follows_a_flips_and_one_that_does_not_stays(rows):
    flips = flip_rate(lambda f: np.where(f["A"] > 0.5, "a", "b"), linear(), rows, {"A": 1.0}, first={"A": 0.0})
    assert flips.value == 1
    stays = flip_rate(lambda f: np.where(f["S"] > 0.5, "a", "b"), linear(), rows, {"A": 1.0})
    assert stays.value == 0
    assert stays.interval == (0, 0)


def test_the_flip_rate_from_what_was_observed_counts_rows(rows):
    model = LogisticRegression().fit(rows[["A", "L"]], np.where(rows["L"] > 0, "yes", "no"))
    found = flip_rate(model, linear(), rows, {"A": 2.0})
    changed = model.predict(linear().counterfactual(rows, {"A": 2.0})[["A", "L"]]) != model.predict(rows[["A", "L"]])
    assert found.value == changed.mean()
    assert (found.per_row == changed).all()
    assert "flip from what was observed" in str(found)


def test_flips_are_averaged_over_the_noises_that_fit():
    scm = models.coins()
    rows = scm.sample(200, random_state=0)
    rows = rows[(rows["A"] == "yes") & (rows["X"] == "yes")]
    found = flip_rate(lambda f: f["X"], scm, rows, {"A": "no"}, n_draws=300)
    assert found.value == pytest.approx(0.7, abs=0.02)


@pytest.mark.parametrize("second", [{"A": 1.0, "L": 0.0}, {"S": 1.0}, {1: 2.0}])
def test_settings_of_different_nodes_are_refused(rows, second):
    with pytest.raises(InputError, match="set the same nodes"):
        counterfactual_effect(predictor, linear(), rows, {"A": 0.0}, second)


def test_what_is_no_setting_or_no_label_is_refused(rows):
    with pytest.raises(InputError, match="must map nodes to values"):
        flip_rate(predictor, linear(), rows, 1.0)
    with pytest.raises(InputError, match="one label per row"):
        flip_rate(lambda f: np.zeros((len(f), 2)), linear(), rows, {"A": 1.0})


def test_numbers_of_a_setting_are_short_and_never_powers_of_ten():
    setting = {"A": 0.13086296334438882, "B": 2.0, "C": 123456.7, "D": "x", "E": np.float32(-1.5), "F": 7}
    assert setting_text(setting) == "A = 0.1309, B = 2, C = 123457, D = x, E = -1.5, F = 7"
