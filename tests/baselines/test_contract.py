"""What every baseline promises: the estimator contract, seeds, and that only training rows are learnt from."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from ciplearn import CausalGraph, baselines
from ciplearn._core.errors import InputError


class OnlyItself:
    """A causal model in which the protected variables move nothing but themselves."""

    def counterfactual(self, rows, values):
        return rows.assign(**values)


QUICK = {
    "NaivePredictor": {},
    "CF1": {},
    "CF2": {},
    "Veitch": {"gamma": 1.0},
    "Augmented": {"copies": 2},
    "CausallyAugmented": {"copies": 2},
    "InvariantDirections": {"counterfactuals": OnlyItself()},
    "PSCF": {"n_draws": 3, "n_latents": 2},
    "StraightLine": {"share": 0.5},
}
NEED_A_GRAPH = ("CF1", "CF2", "CausallyAugmented", "PSCF", "StraightLine")

every_baseline = pytest.mark.parametrize("name", list(QUICK))


def made(name, roles, **more):
    return getattr(baselines, name)(**{**roles, "epochs": 2, **QUICK[name], **more})


def test_every_baseline_is_tested_here():
    assert sorted(QUICK) == sorted(baselines.__all__)


@every_baseline
def test_clone_pickle_and_grid_search_work(name, X, y, roles):
    model = made(name, roles)
    fitted = clone(model).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    search = GridSearchCV(model, {"learning_rate": [1e-3, 1e-2]}, cv=2).fit(X[:100], y[:100])
    assert search.best_params_["learning_rate"] in (1e-3, 1e-2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every_baseline
def test_same_seed_gives_the_same_bytes_and_leaves_the_global_state_alone(name, X, y, roles):
    predictions = []
    for state in (1, 2):
        torch.manual_seed(state)
        np.random.seed(state)  # noqa: NPY002
        before = torch.get_rng_state()
        predictions.append(made(name, roles).fit(X, y).predict(X).tobytes())
        assert torch.equal(torch.get_rng_state(), before)
    assert predictions[0] == predictions[1]
    assert made(name, roles, random_state=1).fit(X, y).predict(X).tobytes() != predictions[0]


@every_baseline
@pytest.mark.filterwarnings("ignore:Column .* lies far outside")
def test_only_training_rows_are_learnt_from(name, X, y, roles):
    model = made(name, roles).fit(X[:400], y[:400])
    before = pickle.dumps(model)
    test = X[400:]
    alone = np.concatenate([model.predict(test[i : i + 1]) for i in range(20)])
    wild = pd.concat([test[:20], test * 1e3])
    # The same row gets the same answer, whatever rows it comes with, and predicting changes nothing.
    np.testing.assert_allclose(model.predict(wild)[:20], alone, rtol=1e-12)
    assert pickle.dumps(model) == before


@every_baseline
def test_rows_are_answered_in_blocks_and_none_is_no_answer(name, X, y, roles, monkeypatch):
    model = made(name, roles).fit(X, y)
    at_once = model.predict(X)
    monkeypatch.setattr("ciplearn.baselines.base._ROWS_AT_ONCE", 70)
    np.testing.assert_allclose(model.predict(X), at_once, rtol=1e-12)
    read = model.inputs_[0]
    with pytest.raises(InputError, match=f"Column '{read}' holds lists"):
        model.predict(X[:2].assign(**{read: [[1.0], [2.0]]}))
    with pytest.raises(InputError, match="no rows to predict"):
        model.predict(X[:0])


@every_baseline
def test_missing_values_are_refused_dropped_or_imputed(name, X, y, roles):
    gaps = X.copy()
    gaps.loc[:9, ["Z", "L"]] = np.nan
    with pytest.raises(InputError, match="10 of 600 rows miss a value"):
        made(name, roles).fit(gaps, y)
    dropped = made(name, roles, missing="drop").fit(gaps, y)
    complete = made(name, roles).fit(X[10:], y[10:])
    assert np.array_equal(dropped.predict(X), complete.predict(X))
    with pytest.raises(InputError, match="miss a value"):
        dropped.predict(gaps)
    assert np.isfinite(made(name, roles, missing="impute").fit(gaps, y).predict(gaps)).all()


@every_baseline
def test_mixed_columns_classes_and_weights(name):
    generator = np.random.default_rng(0)
    sex = generator.choice(["f", "m"], 150)
    job = np.where(generator.random(150) < np.where(sex == "f", 0.8, 0.3), "nurse", "smith")
    X = pd.DataFrame({"sex": sex, "job": pd.Categorical(job), "age": generator.integers(20, 60, 150)})
    y = np.array(["low", "mid", "top"])[generator.integers(0, 3, 150)]
    graph = CausalGraph.from_edges("sex -> job, age -> job, job -> Y, age -> Y")
    model = made(name, {"graph": graph, "outcome": "Y", "protected": ["sex"], "random_state": 0})
    model.fit(X, y, sample_weight=generator.random(150))
    assert list(model.classes_) == ["low", "mid", "top"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    strange = X.assign(job="pilot")
    if "job" not in model.inputs_:
        assert np.array_equal(model.predict(strange), model.predict(X))
        return
    with pytest.warns(UserWarning, match="'job' holds levels that training never saw: 'pilot' in 150 rows") as said:
        assert set(model.predict(strange)) <= set(model.classes_)
    assert len(said) == 1


@every_baseline
def test_two_outputs(name, X, y, roles):
    assert made(name, roles).fit(X, np.column_stack([y, -y])).predict(X).shape == (600, 2)


@every_baseline
def test_graph_is_asked_for_where_it_is_needed(name, X, y):
    roles = {"protected": ["A"], "random_state": 0}
    if name in NEED_A_GRAPH:
        with pytest.raises(InputError, match="A causal graph is needed"):
            made(name, roles).fit(X, y)
    else:
        more = {"direction": "causal"} if name == "Veitch" else {}
        assert made(name, roles, **more).fit(X, y).predict(X).shape == (600,)


MISTAKES = {
    "no y": (lambda model, X, y: model.fit(X, None), "the target y is None"),
    "other rows": (lambda model, X, y: model.fit(X, y[:50]), "X has 600 rows and y has 50"),
    "protected not in X": (lambda model, X, y: model.fit(X[["Z", "L"]], y), "protected column 'A' is not in X"),
    "input not in X": (lambda model, X, y: model.fit(X[["A", "L"]], y), "inputs column 'Z' is not in X"),
    "outcome in X": (lambda model, X, y: model.fit(X.assign(Y=y), y), "X holds the outcome 'Y'"),
    "no epochs": (lambda model, X, y: model.set_params(epochs=0).fit(X, y), "epochs must be at least 1"),
    "device": (lambda model, X, y: model.set_params(device="gpu7").fit(X, y), "device must be"),
    "policy": (lambda model, X, y: model.set_params(missing="ignore").fit(X, y), "missing must be one of"),
}


@every_baseline
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(name, mistake, X, y, roles):
    act, words = MISTAKES[mistake]
    with pytest.raises(InputError, match=words):
        act(made(name, roles, epochs=1), X, y)


@every_baseline
def test_odd_calls_are_refused_in_one_sentence(name, X, y, roles):
    for change, words in (
        ({"inputs": []}, r"inputs=\[\]"),
        ({"random_state": "a"}, "random_state must be"),
        ({"hidden": 5}, "sequence of widths"),
    ):
        with pytest.raises(InputError, match=words):
            made(name, roles | change).fit(X, y)
    with pytest.raises(InputError, match="The target cannot be used"):
        made(name, roles).fit(X, 3)
