"""Any scikit-learn estimator in place of the network."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from ciplearn import CausalGraph, baselines, variance_of_counterfactuals
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError

TREES = HistGradientBoostingRegressor(max_iter=10, random_state=0)
MORE = {"Augmented": {"copies": 2}, "CausallyAugmented": {"copies": 2}, "PSCF": {"n_draws": 2, "n_latents": 2}}
# InvariantDirections asks a causal model, and has tests of its own with an estimator.
TAKERS = [name for name in baselines.__all__ if name not in ("Veitch", "InvariantDirections")]

every_taker = pytest.mark.parametrize("name", TAKERS)


def made(name, estimator, roles, **more):
    return getattr(baselines, name)(**roles, estimator=estimator, epochs=2, **MORE.get(name, {}), **more)


@pytest.fixture(scope="module")
def mixed():
    generator = np.random.default_rng(0)
    sex = generator.choice(["f", "m"], 200)
    job = np.where(generator.random(200) < np.where(sex == "f", 0.8, 0.3), "nurse", "smith")
    X = pd.DataFrame({"sex": sex, "job": job, "age": generator.integers(20, 60, 200)})
    y = np.where((job == "nurse") ^ (generator.random(200) < 0.2), "yes", "no")
    graph = CausalGraph.from_edges("sex -> job, age -> job, job -> Y, age -> Y")
    return X, y, {"graph": graph, "outcome": "Y", "protected": ["sex"], "random_state": 0}


@every_taker
def test_regressor_takes_the_place_of_the_network(name, X, y, roles):
    model = made(name, TREES, roles).fit(X, y)
    trained = model.model_.unconstrained if name == "StraightLine" else model.model_
    assert isinstance(trained.estimator, HistGradientBoostingRegressor)
    assert model.predict(X).shape == (600,)
    # The autoencoders of PSCF are those of two epochs.
    assert model.score(X, y) > 0.1 or name == "PSCF"
    again = clone(model).fit(X, y)
    assert np.array_equal(again.predict(X), model.predict(X))


@every_taker
def test_classifier_says_probabilities_of_labels(name, mixed):
    X, y, roles = mixed
    model = made(name, HistGradientBoostingClassifier(max_iter=5), roles).fit(X, y)
    assert model.task_ == "classification"
    assert list(model.classes_) == ["no", "yes"]
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])


def test_selected_columns_are_encoded_and_nothing_else_is_done(mixed):
    X, y, roles = mixed
    model = baselines.NaivePredictor(**roles, estimator=LogisticRegression()).fit(X, y, np.arange(200.0))
    encoding = TableEncoding.of(X, ("age", "job"))
    expected = LogisticRegression().fit(encoding.features(X), y, np.arange(200.0))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(encoding.features(X)))
    assert model.inputs_ == ("age", "job")


def test_pipeline_reads_the_frame_itself(mixed):
    X, y, roles = mixed
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"), LogisticRegression()
    )
    model = baselines.NaivePredictor(**roles, estimator=pipeline).fit(X, y, np.arange(200.0))
    seen = X[["age", "job"]]
    expected = clone(pipeline).fit(seen, y, logisticregression__sample_weight=np.arange(200.0))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(seen))


def test_cf1_of_trees_never_varies_and_their_line_keeps_its_share(scm, X, y, table, roles):
    line = baselines.StraightLine(**roles, estimator=TREES).fit(X, y)
    models = {"CF1": baselines.CF1(**roles, estimator=TREES).fit(X, y), "half": line.at(0.5), "free": line.at(1.0)}
    found = variance_of_counterfactuals(models, scm, table, protected=["A"], n_points=40, n_interventions=30)
    assert found["CF1"].value == 0 < found["free"].value
    np.testing.assert_allclose(found["half"].value, found["free"].value / 2, rtol=1e-10)
    assert np.array_equal(line.at(0).predict(X), models["CF1"].predict(X))


def test_causal_augmentation_shows_every_copy_with_its_target_and_weight(X, y, roles):
    class Remembering(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            self.shown_ = X, y, sample_weight
            return super().fit(X, y, sample_weight)

    weights = np.arange(1.0, 601.0)
    model = baselines.CausallyAugmented(**roles, estimator=Remembering(), copies=3, epochs=1).fit(X, y, weights)
    rows, target, weighted = model.model_.estimator.shown_
    assert rows.shape == (1800, 3)
    np.testing.assert_array_equal(target, np.tile(y, 3))
    np.testing.assert_array_equal(weighted, np.tile(weights, 3))
    encoded = model.model_.encoding.features(X)
    unchanged, protected = (model.model_.encoding.places([name]) for name in ("Z", "A"))
    np.testing.assert_array_equal(rows[:, unchanged], np.tile(encoded, (3, 1))[:, unchanged])
    assert set(rows[:600, protected].ravel()) <= set(encoded[:, protected].ravel())
    assert not np.array_equal(rows[:600, protected], rows[600:1200, protected])


def test_open_random_states_get_the_seed(X, y, roles):
    forest = RandomForestRegressor(n_estimators=3)
    found = [baselines.CF1(**roles | {"random_state": seed}, estimator=forest).fit(X, y) for seed in (0, 0, 1)]
    first, same, other = (model.predict(X) for model in found)
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert forest.random_state is None
    own = baselines.CF1(**roles, estimator=RandomForestRegressor(n_estimators=3, random_state=5)).fit(X, y)
    assert own.model_.estimator.random_state == 5


def test_several_outputs_and_one_in_a_column_keep_their_shape(X, y, roles):
    two = baselines.StraightLine(**roles, estimator=LinearRegression()).fit(X, np.column_stack([y, -y]))
    assert two.predict(X).shape == (600, 2)
    one = baselines.StraightLine(**roles, estimator=LinearRegression()).fit(X, y.to_numpy()[:, None])
    assert one.predict(X).shape == (600, 1)


def test_classifier_without_probabilities_predicts_and_is_no_line(mixed):
    X, y, roles = mixed
    model = baselines.CF1(**roles, estimator=LinearSVC()).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert set(model.predict(X)) <= {"no", "yes"}
    with pytest.raises(InputError, match="mixes probabilities, but LinearSVC has none"):
        baselines.StraightLine(**roles, estimator=LinearSVC()).fit(X, y)


MISTAKES = {
    "no estimator": ({"estimator": "trees"}, {}, "must be a scikit-learn regressor or classifier, got 'trees'"),
    "a class": ({"estimator": LinearRegression}, {}, "must be a scikit-learn regressor or classifier"),
    "other task": ({"estimator": TREES, "task": "classification"}, {}, "HistGradientBoostingRegressor does regression"),
    "module too": ({"estimator": TREES, "module": "mlp"}, {}, "either a module or an estimator"),
    "weights": ({"estimator": KNeighborsRegressor()}, {"sample_weight": np.ones(600)}, "takes no sample_weight"),
    "refused": ({"estimator": KNeighborsRegressor(n_neighbors=-1)}, {}, "KNeighborsRegressor cannot be fitted: .*;"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(mistake, X, y, roles):
    settings, passed, words = MISTAKES[mistake]
    with pytest.raises(InputError, match=words):
        baselines.CF1(**roles, **settings).fit(X, y, **passed)


def test_penalty_needs_a_network(X, y, roles):
    with pytest.raises(InputError, match="needs gradients, got estimator=HistGradient"):
        baselines.Veitch(**roles, estimator=TREES).fit(X, y)
