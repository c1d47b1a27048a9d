"""Regression or classification."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor

from ciplearn import baselines
from ciplearn._core.errors import InputError

TARGETS = {
    "numbers": (np.arange(5.0), "regression"),
    "whole numbers": ([3, 1, 2], "regression"),
    "two values": (np.array([0, 1, 1, 0]), "classification"),
    "two values in a frame's column": (pd.Series([0.5, 2.5, 0.5]), "classification"),
    "text": (["a", "b", "c"], "classification"),
    "categories": (pd.Series(pd.Categorical([1, 2, 3])), "classification"),
    "booleans": ([True, False, True], "classification"),
    "objects that are numbers": (np.array([1, 2, 3], dtype=object), "regression"),
    "two outputs": (np.array([[0.0, 1.0], [1.0, 0.0]]), "regression"),
    "one column": (np.array([[0.0], [1.0], [2.0]]), "regression"),
}


@pytest.mark.parametrize("case", TARGETS)
def test_task_is_read_off_the_target(case):
    target, expected = TARGETS[case]
    assert baselines.CF1()._settled_task(target) == expected


def test_task_can_be_named_and_nothing_else():
    assert baselines.CF1(task="regression")._settled_task([0, 1]) == "regression"
    with pytest.raises(InputError, match="task must be one of auto, regression, classification"):
        baselines.CF1(task="ranking")._settled_task([0, 1])


def test_face_follows_the_task(X, y, roles):
    unknown = baselines.CF1(**roles, epochs=1)
    assert not is_classifier(unknown)
    assert not is_regressor(unknown)
    regressor = baselines.CF1(**roles, epochs=1).fit(X, y)
    assert is_regressor(regressor)
    assert not hasattr(regressor, "predict_proba")
    classifier = baselines.CF1(**roles, epochs=1).fit(X, y > y.mean())
    assert is_classifier(classifier)
    assert classifier.predict_proba(X).shape == (600, 2)
    assert set(classifier.predict(X)) <= {True, False}
    assert 0.3 < classifier.score(X, y > y.mean()) <= 1
    # A second fit forgets the classes of the first.
    assert not hasattr(classifier.fit(X, y), "classes_")
    assert is_classifier(baselines.CF1(task="classification"))
    assert is_regressor(baselines.CF1(task="regression"))
