"""The straight line between CF1 and an unconstrained predictor."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph, CIPClassifier, CIPRegressor, baselines, variance_of_counterfactuals
from ciplearn._core.errors import InputError
from tests.baselines.models import groups

SHARES = (0.0, 0.01, 0.05, 0.5, 1.0)
QUICK = {"epochs": 5, "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def line(X, y, roles):
    return baselines.StraightLine(**roles, **QUICK).fit(X, y)


def vcfs(models, scm, rows):
    found = variance_of_counterfactuals(models, scm, rows, protected=["A"], n_points=40, n_interventions=30)
    return {share: one.value for share, one in zip(SHARES, found.values(), strict=True)}


def test_ends_are_cf1_and_the_unconstrained_network_bit_by_bit(line, X, y, roles):
    cf1 = baselines.CF1(**roles, **QUICK).fit(X, y)
    free = CIPRegressor(**QUICK, random_state=0).fit(X[list(line.inputs_)], y)
    assert np.array_equal(line.at(0.0).predict(X), cf1.predict(X))
    assert np.array_equal(line.at(1.0).predict(X), free.predict(X))
    expected = cf1.predict(X) + np.sqrt(0.3) * (free.predict(X) - cf1.predict(X))
    np.testing.assert_allclose(line.at(0.3).predict(X), expected, rtol=1e-12)


def test_vcf_is_exactly_the_share_of_the_unconstrained_one(line, scm, table):
    found = vcfs({str(share): line.at(share) for share in SHARES}, scm, table)
    assert found[1.0] > 1e-3
    assert found[0.0] == 0.0
    for share in SHARES:
        np.testing.assert_allclose(found[share], share * found[1.0], rtol=1e-10)


def test_vcf_of_probabilities_scales_too():
    scm = groups()
    rows = scm.sample(300, random_state=0)
    X, y = rows.drop(columns="Y"), np.where(rows["Y"] > rows["Y"].median(), "high", "low")
    line = baselines.StraightLine(graph=scm.graph, outcome="Y", protected=["A"], random_state=0, **QUICK).fit(X, y)
    assert line.model_.unchanged == ("C",)
    found = vcfs({str(share): line.at(share) for share in SHARES}, scm, rows)
    assert found[1.0] > 1e-4
    for share in SHARES:
        np.testing.assert_allclose(found[share], share * found[1.0], rtol=1e-9)
    probabilities = line.at(0.25).predict_proba(X)
    np.testing.assert_allclose(probabilities, (line.at(0).predict_proba(X) + line.at(1).predict_proba(X)) / 2)
    assert np.array_equal(line.at(0.25).predict(X), line.classes_[probabilities.argmax(axis=1)])


def test_another_share_trains_nothing_and_changes_nothing(line, X, monkeypatch):
    before = line.predict(X)
    monkeypatch.setattr(CIPRegressor, "fit", None)
    other = line.at(0.5)
    assert other.share == 0.5
    assert other.model_.unconstrained is line.model_.unconstrained
    assert line.share == 0.05
    assert np.array_equal(line.predict(X), before)
    assert not np.array_equal(other.predict(X), before)


def test_without_a_non_descendant_it_starts_at_the_best_constant(X, y):
    roles = {"graph": CausalGraph.from_edges("A -> L, L -> Y, A -> Z, Z -> Y"), "outcome": "Y", "protected": ["A"]}
    weights = np.arange(1.0, 601.0)
    line = baselines.StraightLine(**roles, share=0, random_state=0, **QUICK).fit(X, y, weights)
    np.testing.assert_allclose(line.predict(X), np.average(y, weights=weights))
    two = line.set_params(share=0.04).fit(X, np.column_stack([y, -y]))
    assert two.predict(X).shape == (600, 2)
    np.testing.assert_allclose(two.at(0).predict(X), [[y.mean(), -y.mean()]] * 600)
    labels = pd.Series(pd.Categorical(np.array(["a", "b", "c"])[np.arange(600) % 6 // 3 + (np.arange(600) < 60)]))
    classes = line.set_params(share=0.0).fit(X, labels)
    shares = [(labels == label).mean() for label in "abc"]
    np.testing.assert_allclose(classes.predict_proba(X), [shares] * 600)
    assert isinstance(classes.model_.unconstrained, CIPClassifier)


@pytest.mark.parametrize("share", [-0.1, 1.5, "half", float("nan")])
def test_share_must_be_a_share(share, line, X, y, roles):
    with pytest.raises(InputError, match="share must"):
        baselines.StraightLine(**roles, share=share, epochs=1).fit(X, y)
    with pytest.raises(InputError, match="share must"):
        line.at(share)
