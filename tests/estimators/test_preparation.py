import copy
import itertools

import numpy as np
import pytest
from torch import nn

from ciplearn import CIPClassifier, CIPRegressor, GammaSearch, frontier
from ciplearn._core.errors import InputError
from ciplearn.estimators import preparation
from ciplearn.estimators.preparation import Prepared
from ciplearn.penalties import ResidualHSCIC
from ciplearn.saving import load_model, save_model


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
    for gamma in (0.0, 10.0):
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
        scoring="score",
        tolerance=0.3,
        max_trials=4,
        cv=1,
        refit=False,
        random_state=0,
    ).fit(X, y)
    assert sizes == [480, 120]


def test_gamma_without_an_independence_is_refused(X, y):
    prepared = Prepared.of(CIPRegressor(epochs=1), X, y)
    assert prepared.judge(X) is None
    with pytest.raises(InputError, match="asks for an independence"):
        prepared.trained(1.0)


@pytest.mark.parametrize("kind", [CIPRegressor, CIPClassifier])
def test_few_rows_stop_three_networks_each_by_its_own_and_their_mean_predicts(scm, X, y, kind, tmp_path):
    y = np.where(y > y.median(), "high", "low") if kind is CIPClassifier else y
    prepared = Prepared.of(quick(scm, kind, random_state=0, early_stopping=True), X, y)
    stopping = [{tuple(row) for row in split.validation.rows.inputs[0].tolist()} for split in prepared.splits]
    assert [len(split.rows) + len(split.validation.rows) for split in prepared.splits] == [len(X)] * 3
    assert all(not one & other for one, other in itertools.combinations(stopping, 2))
    model = prepared.trained(1.0)
    networks = list(model.module_.networks)
    assert len(networks) == 3
    alone = []
    for network in networks:
        one = copy.copy(model)
        one.module_ = network
        alone.append(one.predict_proba(X) if kind is CIPClassifier else one.predict(X))
    assert np.ptp(alone, axis=0).max() > 1e-3
    # Of probabilities, not of logits: the mean of logits can vary with A more than each network's probability.
    together = model.predict_proba(X) if kind is CIPClassifier else model.predict(X)
    np.testing.assert_allclose(together, np.mean(alone, axis=0), rtol=1e-6, atol=1e-9)
    again = load_model(save_model(model, tmp_path / "m"))
    assert np.array_equal(again._output(X).numpy(), model._output(X).numpy())


def test_one_network_where_rows_are_many_or_it_is_ones_own(scm, X, y, monkeypatch):
    for settings in ({"module": lambda: nn.Linear(3, 1)}, {"warm_start": True}):
        prepared = Prepared.of(quick(scm, random_state=0, early_stopping=True, **settings), X, y)
        assert len(prepared.splits) == 1
    monkeypatch.setattr(preparation, "_ROWS_FOR_ONE_NETWORK", len(X))
    assert len(Prepared.of(quick(scm, random_state=0, early_stopping=True), X, y).splits) == 1
