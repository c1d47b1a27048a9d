"""Criteria against scikit-learn, and the rule of the tolerance."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, r2_score, roc_auc_score

from ciplearn.estimators.criteria import CRITERIA, Allowance, Judged, auc, balanced_accuracy, loss, rows_of, score

DRAW = np.random.default_rng(0)


def probabilities(n, k):
    raw = DRAW.random((n, k))
    return raw / raw.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("k", [2, 4])
def test_criteria_of_classes_are_those_of_scikit_learn(k):
    truth, answers = DRAW.integers(k, size=300), probabilities(300, k)
    judged = Judged(truth, answers, np.full(k, 1 / k), k)
    assert loss(judged) == pytest.approx(log_loss(truth, answers, labels=range(k)))
    assert score(judged) == pytest.approx(accuracy_score(truth, answers.argmax(axis=1)))
    assert balanced_accuracy(judged) == pytest.approx(balanced_accuracy_score(truth, answers.argmax(axis=1)))
    theirs = roc_auc_score(truth, answers[:, 1] if k == 2 else answers, multi_class="ovr")
    assert auc(judged) == pytest.approx(theirs)


@pytest.mark.parametrize("weighted", [False, True])
def test_auc_counts_ties_and_weights_as_scikit_learn_does(weighted):
    draw = np.random.default_rng(0)
    truth, second = draw.integers(2, size=300), draw.integers(7, size=300) / 10
    weights = draw.random(300) if weighted else None
    judged = Judged(truth, np.stack([1 - second, second], axis=1), np.array([0.5, 0.5]), 2, weights=weights)
    assert auc(judged) == pytest.approx(roc_auc_score(truth, second, sample_weight=weights))


def test_criteria_of_numbers_are_those_of_scikit_learn():
    truth, answers = DRAW.normal(size=(200, 2)), DRAW.normal(size=(200, 2))
    judged = Judged(truth, answers, truth.mean(axis=0))
    assert loss(judged) == pytest.approx(np.square(truth - answers).mean())
    assert score(judged) == pytest.approx(r2_score(truth, answers))


def test_a_constant_explains_nothing():
    truth = DRAW.integers(2, size=400)
    judged = Judged(truth, probabilities(400, 2), np.array([1 - truth.mean(), truth.mean()]), 2)
    for criterion in ("loss", "auc", "score", "balanced_accuracy"):
        assert Allowance(criterion, 0.1, judged.of_constant()).explained == pytest.approx(0, abs=1e-12)
    assert not Allowance("loss", 0.1, judged.of_constant()).explains_something


def test_the_bound_and_not_the_estimate_keeps_to_the_tolerance():
    truth = DRAW.normal(size=100)
    free = Judged(truth, truth + 0.1 * DRAW.normal(size=100), np.zeros(()))
    # A model that loses just the tolerance on average is refused: on fresh rows it would lose more every other time.
    worse = free.losses() + 0.1 * Allowance("loss", 0.1, free).explained * (1 + 2 * DRAW.normal(size=100))
    answers = truth + np.sqrt(np.clip(worse, 0, None))
    model, allowance = Judged(truth, answers, np.zeros(())), Allowance("loss", 0.1, free)
    lost = loss(model) - loss(free)
    beyond = model.losses() - free.losses() - 0.1 * (np.square(truth) - free.losses())
    assert allowance.excess(model) == pytest.approx(beyond.mean())
    assert allowance.bound(model) == pytest.approx(beyond.mean() + norm.ppf(0.9) * beyond.std(ddof=1) / 10)
    # Of five routes each may be allowed by chance.
    several = replace(allowance, choices=5)
    assert several.bound(model) == pytest.approx(beyond.mean() + norm.ppf(0.98) * beyond.std(ddof=1) / 10)
    exact = Allowance("loss", lost / allowance.explained, free)
    assert exact.excess(model) == pytest.approx(0, abs=1e-12)
    assert not exact.allows(model)
    assert Allowance("loss", 3 * lost / allowance.explained, free).allows(model)


def test_the_tolerance_that_is_needed_is_the_first_that_allows():
    generator = np.random.default_rng(1)
    truth = generator.normal(size=200)
    free = Judged(truth, truth + 0.3 * generator.normal(size=200), np.zeros(()))
    for noise in (0.4, 0.5, 0.6):
        model = Judged(truth, truth + noise * generator.normal(size=200), np.zeros(()))
        allowed = [
            hundredth / 100 for hundredth in range(101) if Allowance("loss", hundredth / 100, free).allows(model)
        ]
        assert Allowance("loss", 0.0, free).needed(model) == allowed[0]
    assert Allowance("loss", 0.0, free).needed(Judged(truth, -truth, np.zeros(()))) is None


@pytest.mark.parametrize("kind", ["string", "Int64", "category"])
def test_rows_of_an_outcome_that_is_an_array_of_pandas(kind):
    y = pd.array(["1", "2", "3"], dtype=kind) if kind == "string" else pd.array([1, 2, 3], dtype=kind)
    assert [str(one) for one in rows_of(np.zeros((3, 1)), y, np.array([2, 0]))[1]] == ["3", "1"]


def test_folds_that_differ_by_more_than_their_rows_explain_tell_how_much_training_is_chance():
    folds = []
    for shift in (0.0, 0.5, 1.0):
        truth = DRAW.normal(size=60)
        free = Judged(truth, truth + 0.1 * DRAW.normal(size=60), np.zeros(()))
        folds.append((free, Judged(truth, truth + 0.1 * DRAW.normal(size=60) + shift, np.zeros(()))))
    free, model = (reduce(Judged.joined, each) for each in zip(*folds, strict=True))
    assert model.ends == (60, 120, 180)
    assert model.by_training()[1].answers == pytest.approx(folds[1][1].answers)
    beyond = model.losses() - free.losses() - 0.1 * (np.square(free.truth) - free.losses())
    means = beyond.reshape(3, 60).mean(axis=1)
    of_rows = beyond.std(ddof=1) / 180**0.5
    chance = np.sqrt(of_rows**2 + max(0.0, means.var(ddof=1) - 3 * of_rows**2))
    assert chance > 2 * of_rows
    assert Allowance("loss", 0.1, free).bound(model) == pytest.approx(beyond.mean() + norm.ppf(0.9) * chance)


@pytest.mark.parametrize("criterion", ["loss", "score", "balanced_accuracy", "auc"])
def test_a_weight_of_two_is_a_row_twice(criterion):
    draw = np.random.default_rng(0)
    answers, truth = draw.dirichlet([1, 1, 1], size=80), draw.integers(3, size=80)
    weights = draw.integers(3, size=80).astype(float)
    rows = np.repeat(np.arange(80), weights.astype(int))
    weighted = Judged(truth, answers, np.full(3, 1 / 3), 3, weights=weights)
    repeated = Judged(truth[rows], answers[rows], np.full(3, 1 / 3), 3)
    assert CRITERIA[criterion](weighted) == pytest.approx(CRITERIA[criterion](repeated))


def test_equal_weights_change_nothing():
    draw = np.random.default_rng(0)
    truth = draw.normal(size=60)
    answers = [truth + scale * draw.normal(size=60) for scale in (0.3, 0.5)]
    plain, weighted = (
        [Judged(truth, each, np.atleast_1d(truth.mean()), weights=weights) for each in answers]
        for weights in (None, np.full(60, 2.5))
    )
    for measure in ("loss", "score"):
        bounds = [Allowance(measure, 0.1, free).bound(own) for free, own in (plain, weighted)]
        assert bounds[0] == pytest.approx(bounds[1])
    both = [free.joined(own) for free, own in (plain, weighted)]
    assert both[0].constant == pytest.approx(both[1].constant)
    values = draw.normal(size=60)
    assert weighted[0].standard_error(values) == pytest.approx(values.std(ddof=1) / 60**0.5)


def test_classes_may_stand_in_any_order():
    chances = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.2, 0.3, 0.3]])
    judged = Judged.of_labels(np.array(["b", "c", "new"]), chances, np.array(["b", "c", "a", "aa"], dtype=object))
    assert judged.truth.tolist() == [0, 1, -1]
    assert score(judged) == pytest.approx(2 / 3)
