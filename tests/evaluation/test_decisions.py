"""Measures that shrinking cannot buy."""

import json

import numpy as np
import pytest

from ciplearn import variance_of_counterfactuals
from tests.evaluation.classifier import Squash
from tests.evaluation.linear_model import linear, predictor


def test_relative_is_vcf_over_the_variance_of_the_predictions(rows):
    found = variance_of_counterfactuals(predictor, linear(), rows, ["A"], len(rows), len(rows))
    assert found.relative == pytest.approx(3.5**2 * rows["A"].var() / predictor(rows).var(), rel=1e-9)
    assert found.relative_interval[0] < found.relative < found.relative_interval[1]
    assert found.to_dict()["relative"] == found.relative
    assert "of the variance of the predictions" in str(found)


def test_relative_and_flips_do_not_change_where_vcf_is_bought_by_shrinking(rows):
    models = {"whole": Squash(2.0), "shrunk": Squash(2.0, shrunk=0.1)}
    found = variance_of_counterfactuals(models, linear(), rows, ["A"], 150, 40)
    whole, shrunk = found["whole"], found["shrunk"]
    assert shrunk.value == pytest.approx(0.01 * whole.value, rel=1e-9)
    assert shrunk.relative == pytest.approx(whole.relative, rel=1e-9)
    assert shrunk.relative_interval == pytest.approx(whole.relative_interval, rel=0.1)
    assert shrunk.flips.value == 0
    assert whole.flips.value > 0.1
    assert shrunk.flips_at_equal_rate.value == whole.flips_at_equal_rate.value > 0.1
    assert shrunk.flips_at_equal_rate.rate == whole.flips_at_equal_rate.rate


def test_relative_of_a_constant_is_unknown(rows):
    found = variance_of_counterfactuals(lambda f: np.ones(len(f)), linear(), rows, ["A"], 50, 20)
    assert np.isnan(found.relative)
    assert found.to_dict()["relative"] is None
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_flips_are_pairs_of_values_with_two_decisions(rows):
    grid = [-2.0, -1.0, 0.0, 2.5]
    asked = {"interventions": grid, "threshold": 1.0, "rate": 0.25}
    found = variance_of_counterfactuals(predictor, linear(), rows, ["A"], 60, **asked)
    points = rows.loc[found.per_row.index]
    said = np.stack([predictor(linear().counterfactual(points, {"A": value})) for value in grid])
    for flips, threshold in ((found.flips, 1.0), (found.flips_at_equal_rate, np.sort(predictor(points))[44])):
        pairs = [(one > threshold) != (other > threshold) for one in said for other in said]
        assert flips.threshold == threshold
        assert flips.value == pytest.approx(np.mean(pairs), rel=1e-12)
        assert flips.interval[0] < flips.value < flips.interval[1]
        assert flips.rate == np.mean(predictor(points) > threshold)
    assert found.flips_at_equal_rate.rate == 0.25
    assert str(found).count("of decisions flip where") == 2
    assert found.to_dict()["flips"]["value"] == found.flips.value


def test_numbers_decide_nothing_without_a_threshold(rows):
    found = variance_of_counterfactuals(predictor, linear(), rows, ["A"], 30, 10)
    assert found.flips is None
    assert found.to_dict()["flips_at_equal_rate"] is None
