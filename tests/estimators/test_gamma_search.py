import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ciplearn import CIPClassifier, CIPRegressor, GammaSearch, Independence, audit
from ciplearn._core.errors import InputError
from ciplearn.estimators.criteria import Judged
from ciplearn.estimators.preparation import Prepared


def quick(scm):
    return CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], epochs=30, learning_rate=15e-3, random_state=0)


def test_search_keeps_to_the_tolerance_and_keeps_its_trace(scm, X, y):
    search = GammaSearch(quick(scm), tolerance=0.2, scoring="score", max_trials=6, cv=1, random_state=0).fit(X, y)
    table = search.frontier_.table.set_index("gamma")
    assert search.base_score_ == table.loc[0.0, "score"]
    # R² of a constant is zero on the rows that judge, so what is explained is R² itself.
    assert search.explained_ == pytest.approx(search.base_score_)
    assert table.loc[search.best_gamma_, "score"] >= 0.8 * search.base_score_
    larger = table[table.index > search.best_gamma_]
    assert len(larger) >= 1
    assert (larger["score"] < search.base_score_).all()
    assert len(table) == 7
    assert search.best_estimator_.gamma_ == search.best_gamma_
    assert search.predict(X).shape == (600,)


@pytest.mark.filterwarnings("ignore:Even")
def test_every_row_judges_once_where_rows_are_few(scm, X, y, monkeypatch):
    sizes = []
    of = Judged.of.__func__

    def counted(cls, model, X, y, weights):
        sizes.append(len(X))
        return of(cls, model, X, y, weights)

    monkeypatch.setattr(Judged, "of", classmethod(counted))
    search = GammaSearch(quick(scm).set_params(epochs=4), tolerance=0.5, max_trials=2, refit=False, random_state=0)
    search.fit(X, y)
    assert sizes == [120] * 5 * len(search.frontier_.points)


@pytest.mark.filterwarnings("ignore:Even")
def test_models_of_the_trace_are_kept_and_the_best_is_one_of_them_without_refit(scm, X, y):
    settings = {"tolerance": 0.5, "max_trials": 3, "cv": 1, "refit": False, "random_state": 0}
    search = GammaSearch(quick(scm).set_params(epochs=10), **settings).fit(X, y)
    assert sorted(search.models_) == search.frontier_.table["gamma"].tolist()
    assert all(model.gamma_ == gamma for gamma, model in search.models_.items())
    assert search.best_estimator_ is search.models_[search.best_gamma_]


@pytest.mark.filterwarnings("ignore:Even the")
def test_the_loss_is_the_default_also_for_classes(scm, X, y):
    search = GammaSearch(quick(scm), tolerance=0.5, max_trials=3, cv=1, refit=False, random_state=0).fit(X, y)
    assert search.base_score_ == search.frontier_.table["loss"].iloc[0]
    classifier = CIPClassifier(protected=["A"], epochs=20, learning_rate=1e-2, random_state=0)
    found = GammaSearch(classifier, tolerance=0.1, max_trials=3, cv=1, random_state=0).fit(X, y > y.median())
    assert found.predict_proba(X).shape == (600, 2)
    assert found.base_score_ == found.frontier_.table["loss"].iloc[0]
    assert 0 < found.explained_ < np.log(2)


@pytest.mark.parametrize("measure", ["auc", "balanced_accuracy", "score"])
@pytest.mark.filterwarnings("ignore:Even the")
def test_other_criteria_are_shares_of_what_is_explained(measure, X, y):
    classifier = CIPClassifier(protected=["A"], epochs=20, learning_rate=1e-2, random_state=0)
    found = GammaSearch(classifier, 0.1, measure, max_trials=3, cv=1, refit=False, random_state=0)
    found.fit(X, y > y.median())
    table = found.frontier_.table.set_index("gamma")
    assert found.base_score_ == table.loc[0.0, measure]
    assert found.explained_ == pytest.approx(found.base_score_ - 0.5, abs=0.02)
    assert table.loc[found.best_gamma_, measure] >= found.base_score_ - 0.1 * found.explained_


def test_a_predictor_that_is_no_better_than_a_constant_is_said_to_be_so(X):
    noise = np.random.default_rng(1).normal(size=600)
    model = CIPRegressor(protected=["A"], epochs=30, learning_rate=1e-2, random_state=0)
    with pytest.warns(UserWarning, match="Even without a penalty the predictor is no better than a constant"):
        search = GammaSearch(model, max_trials=3, cv=1, random_state=0).fit(X, noise)
    assert search.best_gamma_ == 0.0


def test_ends_of_the_interval_have_their_rules(scm, X, y):
    with pytest.warns(UserWarning, match="Even the largest gamma, 0.001"):
        search = GammaSearch(quick(scm), tolerance=0.9, low=1e-4, high=1e-3, cv=1, refit=False, random_state=0).fit(
            X, y
        )
    assert search.best_gamma_ == 1e-3
    with pytest.warns(UserWarning, match="Even the smallest gamma, 100"):
        search = GammaSearch(quick(scm), tolerance=0.0, low=100, high=1e3, cv=1, refit=False, random_state=0).fit(X, y)
    assert search.best_gamma_ == 0.0
    assert search.best_estimator_.gamma_ == 0.0


def test_bound_on_the_penalty_takes_the_smallest_gamma_that_meets_it(scm, X, y):
    base = quick(scm).set_params(gamma=0.0).fit(X, y).penalty_value(X)
    search = GammaSearch(
        quick(scm), tolerance=0.2 * base, scoring="penalty", max_trials=6, cv=1, refit=False, random_state=0
    )
    table = search.fit(X, y).frontier_.table.set_index("gamma")
    assert table.loc[search.best_gamma_, "penalty"] <= 0.2 * base
    assert (table[table.index < search.best_gamma_]["penalty"] > 0.2 * base).all()


def test_bound_that_is_met_without_a_penalty_asks_for_none(scm, X, y):
    search = GammaSearch(quick(scm), tolerance=10.0, scoring="penalty", max_trials=2, cv=1, refit=False, random_state=0)
    assert search.fit(X, y).best_gamma_ == 0.0


def test_bound_below_the_penalty_of_a_constant_is_said_to_be_out_of_reach(scm, X, y):
    search = GammaSearch(quick(scm), tolerance=1e-9, scoring="penalty", cv=1, refit=False, random_state=0)
    with pytest.warns(UserWarning, match=r"does not meet the bound 1e-09: .* no longer falls, so raise the bound\.$"):
        search.fit(X, y)
    table = search.frontier_.table
    assert f"the least penalty reached is {table['penalty'].min():.3g}" in search.remark_
    assert search.best_gamma_ == 1e4
    assert table["gamma"].tolist() == [0.0, 1e3, 1e4]


def test_bound_that_a_larger_gamma_may_meet_asks_for_one(scm, X, y):
    model = quick(scm).set_params(epochs=40, learning_rate=1e-2)
    search = GammaSearch(model, tolerance=1e-3, scoring="penalty", high=0.1, cv=1, refit=False, random_state=0)
    with pytest.warns(UserWarning, match=r"does not meet the bound 0.001: .*; raise high\.$"):
        search.fit(X, y)


def test_bound_on_a_penalty_needs_something_to_protect(X, y):
    free = CIPRegressor(epochs=1, random_state=0)
    with pytest.raises(InputError, match="There is no penalty to bound"):
        GammaSearch(free, tolerance=0.1, scoring="penalty", random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore:Even")
def test_search_answers_for_its_chosen_model(scm, X, y):
    search = GammaSearch(quick(scm).set_params(epochs=2), tolerance=5.0, max_trials=2, cv=1, random_state=0)
    assert not hasattr(search, "n_features_in_")
    chosen = search.fit(X, y).best_estimator_
    assert search.n_features_in_ == 3
    assert search.feature_names_in_.tolist() == list(X.columns)
    assert search.verdict_ is chosen.verdict_
    assert search.penalty_value(X) == chosen.penalty_value(X)
    nameless = GammaSearch(CIPRegressor(epochs=1, protected=[0]), tolerance=5.0, max_trials=2, cv=1, random_state=0)
    assert not hasattr(nameless.fit(X.to_numpy(), y), "feature_names_in_")


@pytest.mark.filterwarnings("ignore:Even")
def test_pipeline_holds_the_search_and_not_the_other_way_round(scm, X, y):
    steps = make_pipeline(StandardScaler().set_output(transform="pandas"), quick(scm).set_params(epochs=1))
    with pytest.raises(InputError, match="got Pipeline; put the search into the pipeline, as its last step"):
        GammaSearch(steps).fit(X, y)
    search = GammaSearch(steps[-1], tolerance=5.0, max_trials=2, cv=1, random_state=0)
    assert make_pipeline(steps[0], search).fit(X, y).predict(X).shape == (600,)


def test_rows_that_cannot_be_split_are_an_error_that_says_so(X, y):
    labels = np.where(np.arange(600) == 0, "rare", "common")
    with pytest.raises(InputError, match="600 training rows cannot be split"):
        GammaSearch(CIPClassifier(protected=["A"], epochs=1), random_state=0).fit(X, labels)


def test_bad_settings_are_refused_before_anything_is_trained(scm, X, y, monkeypatch):
    monkeypatch.delattr(Prepared, "trained")
    with pytest.raises(InputError, match="low must be below high"):
        GammaSearch(quick(scm), low=2, high=1).fit(X, y)
    with pytest.raises(InputError, match="scoring must be one of"):
        GammaSearch(quick(scm), scoring="mse").fit(X, y)
    with pytest.raises(InputError, match="tolerance must not be negative"):
        GammaSearch(quick(scm), tolerance=-0.1).fit(X, y)
    with pytest.raises(InputError, match="tolerance must be above zero"):
        GammaSearch(quick(scm), tolerance=0.0, scoring="penalty").fit(X, y)


@pytest.mark.filterwarnings("ignore:Even")
def test_search_is_deterministic(scm, X, y):
    model = quick(scm).set_params(epochs=10)
    first, second = (
        GammaSearch(model, tolerance=0.2, scoring="score", max_trials=3, cv=1, random_state=0).fit(X, y)
        for _ in range(2)
    )
    assert first.best_gamma_ == second.best_gamma_
    assert np.array_equal(first.predict(X), second.predict(X))


@pytest.mark.filterwarnings("ignore:Even")
def test_search_over_a_classifier_is_audited_as_its_chosen_model(scm, X, y, table):
    labels = np.where(y > y.median(), "high", "low")
    classifier = CIPClassifier(
        graph=scm.graph, outcome="Y", protected=["A"], epochs=5, learning_rate=1e-2, random_state=0
    )
    search = GammaSearch(classifier, tolerance=0.5, max_trials=2, cv=1, random_state=0).fit(X, labels)
    assert search.classes_.tolist() == ["high", "low"]
    rows = table.assign(Y=labels)
    scores = [
        audit(model, scm.graph, rows, "Y", ["A"], n_points=20, n_interventions=5, n_draws=5).scores
        for model in (search, search.best_estimator_)
    ]
    assert scores[0] == scores[1]


def test_rows_without_weight_do_not_judge():
    draw = np.random.default_rng(0)
    s, a = draw.normal(size=(2, 600))
    X = pd.DataFrame({"S": s, "A": s + a})
    y, weights = s + X["A"] + 0.3 * draw.normal(size=600), np.ones(600)
    bad = np.arange(600) % 2 == 1
    X[bad], y[bad], weights[bad] = -X[bad], 10 * draw.normal(size=300), 0.0
    model = CIPRegressor(
        independence=Independence(right=["A"], given=["S"]), epochs=60, learning_rate=1e-2, random_state=0
    )
    search = GammaSearch(model, tolerance=0.3, max_trials=3, cv=1).fit(X, y, sample_weight=weights)
    # The outcome of rows that count varies by 5, that of the others by 100.
    assert search.base_score_ < 3


@pytest.mark.filterwarnings("ignore:Even")
def test_former_names_of_scoring_and_cv_keep_working(scm, X, y):
    settings = {"tolerance": 0.5, "max_trials": 2, "refit": False, "random_state": 0}
    model = quick(scm).set_params(epochs=10)
    new = GammaSearch(model, scoring="score", cv=2, **settings).fit(X, y)
    former = GammaSearch(model, measure="score", folds=2, **settings)
    with pytest.warns(DeprecationWarning, match="type scoring=|type cv="):
        former.fit(X, y)
    assert former.frontier_ == new.frontier_
    assert former.base_score_ == new.base_score_ != pytest.approx(new.frontier_.table["loss"][0])
    with pytest.raises(InputError, match="folds= is the former name of cv=, got both"):
        GammaSearch(quick(scm), cv=2, folds=2).fit(X, y)
