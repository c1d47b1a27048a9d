import numpy as np
import pandas as pd
import pytest

from ciplearn.evaluation.group_scores import grouped
from ciplearn.evaluation.predictors import Predictor
from ciplearn.report.groups import most_affected, scores_by_group


def asked(model):
    return Predictor.of(model, ["A", "S"], None, None)


def test_rare_levels_are_one_group(labels):
    found = grouped(labels, 6)
    assert len(found.cat.categories) == 7
    assert found.cat.categories[-1] == "all others"
    common = labels.value_counts().index[:6]
    assert (found != "all others").sum() == labels.isin(common).sum()


def test_numbers_are_cut_into_bands_of_equal_size_that_name_their_ends():
    found = grouped(pd.Series(np.arange(100)), 6)
    assert list(found.cat.categories) == ["0 to 24", "25 to 49", "50 to 74", "75 to 99"]
    assert found.value_counts().tolist() == [25] * 4
    assert list(grouped(pd.Series([0, 1, 1, 0, 1]), 6).cat.categories) == ["0", "1", "all others"]


def test_scores_of_a_group_are_those_of_its_rows_alone(make_report):
    report = make_report()
    groups = scores_by_group(asked(report.model), report.rows, "Y", ["A"], report.audit.vcf)
    assert sum(group.n_rows for group in groups) == len(report.rows)
    bands = grouped(report.rows["A"], 6)
    first = report.rows[(bands == groups[0].label).to_numpy()]
    error = (report.model(first) - first["Y"]) ** 2
    assert groups[0].scores["mse"] == pytest.approx(error.mean())
    assert groups[0].prediction == pytest.approx(report.model(first).mean())
    assert groups[0].observed == pytest.approx(first["Y"].mean())
    inside = report.audit.vcf.per_row["vcf"]
    assert groups[0].vcf == pytest.approx(inside[inside.index.isin(first.index)].mean())


def test_most_affected_rows_come_first(make_report):
    report = make_report()
    found = most_affected(asked(report.model), report.rows, ["A"], report.audit.vcf, n=3)
    assert [row.vcf for row in found] == sorted(report.audit.vcf.per_row["vcf"], reverse=True)[:3]
    for row in found:
        assert row.lowest < row.highest
        assert row.prediction == pytest.approx(report.model(report.rows.loc[[row.place]]).iloc[0])


def test_classes_are_counted_as_shares(make_report):
    class Classifier:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, frame):
            chance = 1 / (1 + np.exp(-frame["S"].to_numpy()))
            return np.column_stack([1 - chance, chance])

    report = make_report()
    rows = report.rows.assign(Y=np.where(report.rows["Y"] > 0, "yes", "no"))
    groups = scores_by_group(asked(Classifier()), rows, "Y", ["A"], report.audit.vcf)
    overall = sum(group.observed * group.n_rows for group in groups) / len(rows)
    assert overall == pytest.approx((rows["Y"] == "yes").mean())
    assert set(groups[0].scores) == {"accuracy", "log_loss"}
