import numpy as np
import pytest

from ciplearn.evaluation import group_scores
from ciplearn.evaluation.predictors import Predictor
from ciplearn.report.sections import scores_by_group


def test_scores_are_those_of_the_evaluation_with_and_without_a_penalty(decisions):
    found = decisions.by_group
    for name, asked in decisions.audit.predictors.items():
        own = group_scores(asked.model, decisions.rows, "Y", decisions.group_columns).table
        here = found.table[found.table["model"] == name]
        assert here["group"].tolist() == own["group"].tolist()
        assert here["positive_rate"].tolist() == own["positive_rate"].tolist()
    assert set(found.table["columns"]) == {"sex", "race", " × ".join(decisions.group_columns)}
    assert found.positive == "yes"


def test_several_classes_are_taken_one_after_the_other(decisions):
    class Three:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, frame):
            weights = np.exp(np.column_stack([frame["X"], 0 * frame["X"], -frame["X"]]))
            return weights / weights.sum(axis=1, keepdims=True)

    rows = decisions.rows.assign(Y=np.resize(["a", "b", "b", "c"], len(decisions.rows)))
    found = scores_by_group({"m": Predictor(Three(), "predict_proba", ("X",))}, rows, "Y", ["sex"])
    assert found.table["output"].unique().tolist() == ["a", "b", "c"]
    row = found.table[(found.table["output"] == "b") & (found.table["group"] == "1")].iloc[0]
    inside = rows["sex"] == 1
    wanted = Three().predict_proba(rows[inside])[:, 1].mean() - (rows["Y"][inside] == "b").mean()
    assert row["calibration"] == pytest.approx(wanted)
    assert found.threshold is None
