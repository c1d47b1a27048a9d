import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.evaluation import group_scores
from ciplearn.evaluation.group_scores import MEASURES

# Made with fairlearn 0.15.0 and scikit-learn 1.9.1 on the rows of `people`:
#   MetricFrame(metrics={"positive_rate": selection_rate, "fpr": false_positive_rate, "fnr": false_negative_rate,
#       "error": zero_one_loss}, y_true=(y == "yes"), y_pred=(score > 0.5), sensitive_features=rows[columns]).by_group,
# the same with roc_auc_score and with mean(y_pred) - mean(y_true) for y_pred=score, and positive_rate over group_max().
RECORDED = {
    ("sex", "f"): (0.5, 1.0, 0.5924764890282131, 0.36363636363636365, 0.4482758620689655, -0.2349009900990099, 0.425),
    ("sex", "m"): (
        0.45,
        0.9,
        0.33333333333333337,
        0.6666666666666666,
        0.6428571428571429,
        -0.20940594059405931,
        0.65,
    ),
    ("race", "a"): (
        0.4666666666666667,
        0.875,
        0.4545454545454546,
        0.5,
        0.5454545454545454,
        -0.2597359735973597,
        0.5333333333333333,
    ),
    ("race", "c"): (0.5333333333333333, 1.0, 0.5, 0.4, 0.4, -0.1432343234323431, 0.4),
    ("sex × race", "f, a"): (0.5, 0.8333333333333334, 0.6533333333333333, 0.2, 0.4, -0.26039603960396035, 0.35),
    ("sex × race", "f, b"): (
        0.5,
        0.8333333333333334,
        0.5714285714285714,
        0.6666666666666666,
        0.5714285714285714,
        -0.20891089108910876,
        0.6,
    ),
    ("sex × race", "m, a"): (
        0.4,
        0.6666666666666667,
        0.09523809523809525,
        1.0,
        0.8571428571428571,
        -0.2584158415841583,
        0.9,
    ),
    ("sex × race", "m, b"): (0.4, 0.6666666666666667, 0.75, 0.0, 0.5, -0.31089108910891095, 0.4),
    ("sex × race", "m, c"): (0.6, 1.0, 0.5, 0.5, 0.3333333333333333, -0.00990099009900991, 0.4),
}


class Given:
    """A classifier that reads its probability off a column."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame):
        return np.column_stack([1 - frame["score"], frame["score"]])


@pytest.fixture(scope="module")
def people():
    i = np.arange(60)
    return pd.DataFrame(
        {
            "score": (37 * i % 101) / 101,
            "y": np.where((13 * i * i + i) % 7 < 3, "yes", "no"),
            "sex": np.where(i % 3 == 0, "m", "f"),
            "race": np.array(["a", "b", "c", "a"])[i % 4],
        }
    )


def test_scores_are_those_of_fairlearn(people):
    found = group_scores(Given(), people, "y", ["sex", "race"])
    table = found.table.set_index(["columns", "group"])
    for key, values in RECORDED.items():
        np.testing.assert_allclose(table.loc[key, list(MEASURES)].astype(float), values, rtol=0, atol=1e-12)
    assert (found.threshold, found.positive) == (0.5, "yes")
    assert table.loc[("sex × race", "m, c"), "n_rows"] == 5
    assert table["n_rows"].groupby("columns").sum().eq(60).all()


def test_every_score_has_an_interval_around_it(people):
    table = group_scores(Given(), people, "y", ["sex", "race"]).table
    for measure in MEASURES:
        assert (table[f"{measure}_low"] <= table[measure]).all()
        assert (table[measure] <= table[f"{measure}_high"]).all()
    wide, narrow = (table[table["n_rows"].eq(n)]["positive_rate_high"].max() for n in (5, 40))
    assert wide > narrow


def test_a_group_of_few_rows_is_a_group(people):
    rare = people.assign(
        race=people["race"].where(people.index != 7, "rare"), sex=people["sex"].where(people.index > 1)
    )
    table = group_scores(Given(), rare, "y", ["sex", "race"]).table.set_index(["columns", "group"])
    assert table.loc[("race", "rare"), "n_rows"] == 1
    assert np.isnan(table.loc[("race", "rare"), "auc"])
    assert table.loc[("sex", "missing"), "n_rows"] == 2


def test_intervals_cover_as_often_as_they_say():
    covered = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        score = rng.uniform(size=150)
        rows = pd.DataFrame({"score": score, "y": np.where(rng.uniform(size=150) < score, "yes", "no"), "g": "one"})
        row = group_scores(Given(), rows, "y", "g").table.iloc[0]
        # P(Y = 1 | s) = s on [0, 1]: AUC 5/6, FPR = FNR = 1/4, the share above one half 1/2, no gap.
        truth = {"positive_rate": 0.5, "auc": 5 / 6, "fpr": 0.25, "fnr": 0.25, "calibration": 0, "error": 0.25}
        covered.append([row[f"{name}_low"] <= value <= row[f"{name}_high"] for name, value in truth.items()])
    assert (np.mean(covered, axis=0) > 0.91).all()
    assert (np.mean(covered, axis=0) < 0.99).all()


def test_numbers_have_errors_and_bands(people):
    rows = people.assign(y=people["score"] + 0.1 * people.index, hours=people.index * 1.0)
    found = group_scores(lambda f: f["score"], rows, "y", "hours")
    assert found.threshold is None
    assert list(found.table["n_rows"]) == [15, 15, 15, 15]
    assert found.table["positive_rate"].isna().all()
    np.testing.assert_allclose(
        found.table["error"], np.square(0.1 * people.index).to_numpy().reshape(4, 15).mean(axis=1)
    )
    assert json.dumps(found.to_dict(), allow_nan=False)
    decided = group_scores(lambda f: f["score"], rows, "y", "hours", threshold=0.5)
    assert decided.table["positive_rate"].notna().all()


def test_decimals_have_the_bands_of_their_floats(people):
    rows = people.assign(y=people["score"], hours=people.index * 1.0, exact=[Decimal(place) for place in people.index])
    by_floats, by_decimals = (group_scores(lambda f: f["score"], rows, "y", name) for name in ("hours", "exact"))
    assert list(by_decimals.table["group"]) == list(by_floats.table["group"])


def test_several_models_stand_in_one_table(people):
    found = group_scores({"one": Given(), "two": Given()}, people, "y", "sex")
    assert list(found.table["model"]) == ["one", "one", "two", "two"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": "job"}, "groups names 'job', which is no column of the rows"),
        ({"rows": pd.DataFrame({"sex": [], "y": []})}, "rows has no rows"),
        ({"groups": []}, "No column to group by"),
        ({"outcome": "z"}, "outcome names 'z'"),
        ({"model": lambda f: f[["score", "score"]]}, "about one number per row"),
        ({"model": lambda f: f["score"]}, "holds labels, but the model has no classes"),
    ],
)
def test_mistakes_are_named(people, change, message):
    with pytest.raises(InputError, match=message):
        group_scores(**{"model": Given(), "rows": people, "outcome": "y", "groups": "sex", **change})


def test_groups_of_large_numbers_stay_apart_where_one_is_missing(people):
    rows = people.assign(zip=np.resize([10001.0, 10002.0, 10003.0], len(people)), amount=2 * people["score"])
    rows.loc[rows.index[0], "zip"] = np.nan
    found = group_scores(lambda frame: frame["score"], rows, "amount", ["zip"]).table
    assert list(found["group"]) == ["10001", "10002", "10003", "missing"]
    assert found["n_rows"].sum() == len(rows)


@pytest.mark.parametrize("classes", [[1], ["0", "1"]])
def test_classes_that_the_outcome_does_not_hold_are_refused(people, classes):
    class Other:
        classes_ = np.array(classes)

        def predict_proba(self, frame):
            return np.full((len(frame), len(classes)), 1 / len(classes))

    rows = people.assign(decided=np.resize([0, 1], len(people)))
    with pytest.raises(InputError, match="two classes that the outcome 'decided' holds"):
        group_scores(Other(), rows, "decided", ["sex"])
