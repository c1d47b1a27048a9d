"""Every learner that is registered, through the estimators, saving and loading."""

import json
import sys

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from ciplearn import CIPClassifier, CIPRegressor, load_model, save_model
from ciplearn._core.errors import InputError, InputTypeError, MissingDependencyError
from ciplearn.baselines import CF1, CF2, StraightLine
from ciplearn.learners import LEARNERS, Boosted, Learner, Linear, Network
from tests.estimators.mixed_table import mixed_table

QUICK = {"network": Network(epochs=2), "boosted": Boosted(trees=5), "linear": Linear()}


@pytest.fixture(params=sorted(LEARNERS))
def learner(request):
    return QUICK[request.param]


def labelled(signal, levels):
    return np.array(levels)[np.searchsorted(np.quantile(signal, np.linspace(0, 1, len(levels) + 1)[1:-1]), signal)]


@pytest.mark.parametrize("levels", [None, ["no", "yes"], ["high", "low", "middle"]])
def test_every_learner_is_fitted_saved_and_loaded(learner, levels, tmp_path):
    X, signal = mixed_table()
    task, y = ("regression", signal) if levels is None else ("classification", labelled(signal, levels))
    model = learner.estimator(task, random_state=0).fit(X, y)
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.learner == learner
    assert list(again.feature_names_in_) == list(X.columns)
    assert np.array_equal(again.predict(X), model.predict(X))
    if levels is not None:
        assert list(model.classes_) == levels
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert model.predict_proba(X).shape == (len(X), len(levels))
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


def test_every_learner_learns_two_numbers_at_once_and_weights_of_rows(learner, X, y):
    both = np.column_stack([y, -y])
    model = learner.estimator("regression", random_state=0).fit(X, both, sample_weight=np.arange(len(y)) + 1.0)
    assert model.predict(X).shape == both.shape
    plain = learner.estimator("regression", random_state=0).fit(X, both)
    assert not np.array_equal(model.predict(X), plain.predict(X))


def test_every_learner_treats_gaps_as_it_is_told(learner):
    X, signal = mixed_table()
    X.loc[X.index[:5], "age"] = np.nan
    with pytest.raises(InputError, match="missing"):
        learner.estimator("regression").fit(X, signal)
    model = learner.estimator("regression", random_state=0, missing="impute").fit(X, signal)
    assert np.isfinite(model.predict(X)).all()


def test_network_by_a_learner_is_the_network_by_keywords(scm, X, y):
    roles = {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "gamma": 0.5, "random_state": 0}
    settings = {"hidden": (8,), "epochs": 3, "early_stopping": True, "batch_size": 64}
    by_learner = CIPRegressor(learner=Network(**settings), **roles).fit(X, y)
    assert np.array_equal(by_learner.predict(X), CIPRegressor(**settings, **roles).fit(X, y).predict(X))


def test_linear_is_ridge_regression(X, y):
    model = Linear().estimator("regression").fit(X, y)
    features = model.encoding_.features(X).astype(float)
    oracle = RidgeCV(Linear().strengths).fit(features, y).predict(features)
    assert np.allclose(model.predict(X), oracle, atol=1e-4 * np.std(y))


def test_linear_takes_its_strengths_as_a_list_of_whole_numbers(X, y):
    once, again = (CIPRegressor(learner=Linear(strengths=each)).fit(X, y) for each in ([1], (1.0,)))
    assert once.predict(X).tolist() == again.predict(X).tolist()


def test_trees_learn_steps_that_no_line_does():
    draw = np.random.default_rng(0)
    X, noise = draw.random((800, 3)), draw.normal(size=800) / 10
    y = np.floor(3 * X[:, 0]) * np.sign(X[:, 1] - 0.5) + noise
    trees, line = (
        np.mean((one.estimator("regression", random_state=0).fit(X[:600], y[:600]).predict(X[600:]) - y[600:]) ** 2)
        for one in (Boosted(), Linear())
    )
    assert trees < line / 5


def test_same_seed_same_trees_and_no_more_than_asked_for(X, y):
    one, two = (Boosted(trees=7).estimator("regression", random_state=3).fit(X, y) for _ in range(2))
    assert one.predict(X).tobytes() == two.predict(X).tobytes()
    assert [trees.shape[2] <= 7 for trees in one.module_.networks] == [True] * 3


class Shown(Learner):
    name = "shown"

    def trained(self, training):
        return training.by_gradients()


def test_a_learner_of_ones_own_is_registered_by_one_line(X, y, tmp_path, monkeypatch):
    monkeypatch.setitem(LEARNERS, "shown", Shown)
    model = Shown().estimator("regression", random_state=0).fit(X[:50], y[:50])
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.learner == Shown()
    assert np.array_equal(again.predict(X), model.predict(X))


def test_what_cannot_be_done_is_said(X, y, tmp_path):
    with pytest.raises(InputTypeError, match="learner must be a learner, got 'boosted'"):
        CIPRegressor(learner="boosted").fit(X, y)
    with pytest.raises(InputError, match=r"learner=Network\(epochs=...\)"):
        CIPRegressor(learner=Boosted(), epochs=3).fit(X, y)
    with pytest.raises(InputError, match="warm_start is for networks"):
        CIPRegressor(learner=Linear(), warm_start=True).fit(X, y)
    with pytest.raises(InputError, match="task must be one of regression, classification"):
        Linear().estimator("ranking")
    with pytest.raises(InputError, match="learning_rate must be above zero"):
        Boosted(learning_rate=0)
    with pytest.raises(InputTypeError, match="hidden must be a sequence"):
        Network(hidden=8)
    table = X.assign(Y=y)
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="takes a table in memory"):
        CIPRegressor(learner=Boosted()).fit(str(tmp_path / "rows.parquet"), "Y")
    with pytest.raises(InputError, match="not registered"):
        save_model(CIPRegressor(learner=Shown(), random_state=0).fit(X[:50], y[:50]), tmp_path / "model")


def test_without_its_library_boosting_says_so_in_one_sentence(X, y, monkeypatch):
    assert Boosted.is_available()
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert not Boosted.is_available()
    with pytest.raises(MissingDependencyError, match=r"learner=Network\(\)"):
        Boosted().estimator("regression").fit(X, y)


def test_a_changed_file_of_trees_is_refused(X, y, tmp_path):
    folder = save_model(QUICK["boosted"].estimator("regression", random_state=0).fit(X, y), tmp_path / "model")
    (folder / "SHA256SUMS").unlink()
    described = json.loads((folder / "model.json").read_text())
    for change in ({"learner": {"name": "os", "settings": {}}}, {"network": {"trees": [-1, 2, 3, 4]}}):
        (folder / "model.json").write_text(json.dumps(described | change))
        with pytest.raises(InputError):
            load_model(folder)


@pytest.mark.parametrize("kind", [CF1, CF2, StraightLine])
def test_baselines_take_a_learner(kind, learner, scm, X, y):
    roles = {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "random_state": 0}
    model = kind(**roles, learner=learner).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    if kind is CF1:
        alone = learner.estimator("regression", random_state=0).fit(X[["Z"]], y)
        assert np.array_equal(model.predict(X), alone.predict(X[["Z"]]))
    with pytest.raises(InputError, match="either a learner or an estimator"):
        kind(**roles, learner=learner, estimator=RidgeCV()).fit(X, y)


# Trees and lines take all rows at once: only weighted and repeated rows differ, by where bins and folds are cut.
DECLARED = {
    "check_sample_weight_equivalence_on_dense_data": "weights do not move the edges of bins and folds",
    "check_sample_weight_equivalence_on_sparse_data": "weights do not move the edges of bins and folds",
}


@parametrize_with_checks(
    [
        kind(learner=one, random_state=0)
        for kind in (CIPRegressor, CIPClassifier)
        for one in (Boosted(trees=40), Linear(strengths=(0.1, 10.0), folds=2))
    ],
    expected_failed_checks=lambda estimator: DECLARED,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
