import copy

import numpy as np
import pytest

from ciplearn import CIPClassifier, CIPRegressor, GammaSearch, frontier
from ciplearn._core.errors import InputError
from ciplearn.estimators.preparation import Prepared
from ciplearn.penalties import ResidualHSCIC


def quick(scm, kind=CIPRegressor, **settings):
    # A generator is drawn from: each model gets one in the state that was passed.
    settings = copy.deepcopy(settings)
    return kind(graph=scm.graph, outcome="Y", protected=["A"], epochs=3, learning_rate=1e-2, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"random_state": 3},
        {"random_state": np.random.RandomState(3)},
        {"random_state": 3, "early_stopping": True},
        {"random_state": 3, "prepare_once": False},
        {"random_state": 3, "penalty": ResidualHSCIC()},
    ],
    ids=["plain", "generator", "early stopping", "on batches", "own penalty"],
)
def test_training_on_what_is_prepared_is_training(scm, X, y, settings):
    prepared = Prepared.of(quick(scm, **settings), X, y)
    for gamma in (0.0, 1.0, 10.0):
        alone = quick(scm, **settings).set_params(gamma=gamma).fit(X, y)
        shared = prepared.trained(gamma)
        assert np.array_equal(shared.predict(X), alone.predict(X))
        assert shared.gamma_scale_ == alone.gamma_scale_


def test_weights_and_labels_are_prepared_too(scm, X, y):
    labels, weights = np.where(y > y.median(), "high", "low"), np.linspace(0.1, 2, len(y))
    model = quick(scm, CIPClassifier, random_state=0, gamma=1.0)
    shared = Prepared.of(model, X, labels, weights).trained(1.0)
    assert np.array_equal(shared.predict_proba(X), model.fit(X, labels, weights).predict_proba(X))


@pytest.mark.filterwarnings("ignore:Even")
def test_operator_is_prepared_once_for_all_gammas(scm, X, y, monkeypatch):
    sizes, prepare = [], ResidualHSCIC.prepare

    def counted(self, right, given=None, **more):
        sizes.append(len(right))
        return prepare(self, right, given, **more)

    monkeypatch.setattr(ResidualHSCIC, "prepare", counted)
    frontier(quick(scm), X, y, gammas=[0, 1, 3, 10], seeds=[0, 1])
    assert sizes == [480, 120]
    sizes.clear()
    GammaSearch(
        quick(scm).set_params(epochs=20),
        measure="score",
        tolerance=0.3,
        max_trials=4,
        folds=1,
        refit=False,
        random_state=0,
    ).fit(X, y)
    assert sizes == [480, 120]


def test_gamma_without_an_independence_is_refused(X, y):
    prepared = Prepared.of(CIPRegressor(epochs=1), X, y)
    assert prepared.judge(X) is None
    with pytest.raises(InputError, match="asks for an independence"):
        prepared.trained(1.0)
