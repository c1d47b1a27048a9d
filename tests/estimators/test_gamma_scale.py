"""Gamma in units of the outcome's own penalty."""

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn import CIPClassifier, CIPRegressor, Gaussian, ResidualHSCIC
from ciplearn._core.errors import InputError
from ciplearn.estimators import frontier
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings
from ciplearn.learning.stepper import train_stacked
from ciplearn.penalties import HSIC
from ciplearn.saving import load_model, save_model

ROLES = {"protected": ["A"], "adjustment": ["S"]}


def people(n=500, columns=0, dependence=1.0):
    generator = np.random.default_rng(0)
    S, noise = generator.normal(size=n), generator.normal(size=n)
    A = 0.5 * S + generator.normal(size=n)
    X = pd.DataFrame({"A": A, "S": S, **{f"B{i}": generator.normal(size=n) for i in range(columns)}})
    return X, S + dependence * A + 0.1 * noise


def test_regression_counts_in_variance_over_penalty_of_the_outcome():
    X, y = people()
    model = CIPRegressor(**ROLES, epochs=1, random_state=0).fit(X, y)
    scaled = (y - y.min()) / (y.max() - y.min())
    outcome = float(model.penalty_operator(X)(torch.from_numpy(scaled)[:, None].float()))
    # The outcome's penalty less that of shuffled outcomes, which is small beside it.
    assert model.gamma_scale_ == pytest.approx(scaled.var() / outcome, rel=0.1)


@pytest.mark.parametrize("classes", [2, 3])
def test_classification_counts_in_entropy_over_penalty_of_the_outcome(classes):
    X, y = people()
    labels = pd.qcut(y, [0, 0.3, 1] if classes == 2 else [0, 0.3, 0.6, 1], labels=False)
    model = CIPClassifier(**ROLES, epochs=1, random_state=0).fit(X, labels)
    shares = np.bincount(labels) / len(labels)
    certain = torch.eye(classes)[torch.from_numpy(labels)]
    outcome = float(model.penalty_operator(X)(certain[:, 1:] if classes == 2 else certain))
    assert model.gamma_scale_ == pytest.approx(-(shares * np.log(shares)).sum() / outcome, rel=0.1)


def test_relative_gamma_is_the_plain_weight_times_its_scale():
    X, y = people()
    relative = CIPRegressor(**ROLES, gamma=2.0, epochs=3, random_state=0).fit(X, y)
    plain = CIPRegressor(**ROLES, gamma=2.0, gamma_scale=relative.gamma_scale_, epochs=3, random_state=0).fit(X, y)
    assert relative.gamma_scale_ != pytest.approx(1.0, rel=0.01)
    assert np.array_equal(relative.predict(X), plain.predict(X))


def test_penalty_that_is_passed_has_its_plain_weight_unless_told_otherwise():
    X, y = people()
    penalty = ResidualHSCIC(kernel=Gaussian(0.2))
    assert CIPRegressor(**ROLES, penalty=penalty, epochs=1).fit(X, y).gamma_scale_ == 1.0
    told = CIPRegressor(**ROLES, penalty=penalty, gamma_scale="outcome", epochs=1).fit(X, y)
    assert told.gamma_scale_ != pytest.approx(1.0, rel=0.01)
    per_batch = told.set_params(prepare_once=False).fit(X, y)
    assert per_batch.gamma_scale_ == pytest.approx(told.gamma_scale_)


def test_same_gamma_does_as_much_where_the_plain_penalty_is_a_fraction():
    for columns in (0, 6):
        X, y = people(columns=columns)
        roles = {"protected": [name for name in X.columns if name != "S"], "adjustment": ["S"]}
        free, held = (
            CIPRegressor(**roles, gamma=gamma, epochs=60, learning_rate=3e-3, random_state=0).fit(X, y)
            for gamma in (0.0, 3.0)
        )
        share = held.penalty_value(X) / free.penalty_value(X)
        assert share < 0.2
        assert np.corrcoef(held.predict(X), X["S"])[0, 1] > 0.9
    assert held.gamma_scale_ > 3 * CIPRegressor(**ROLES, epochs=1).fit(X, y).gamma_scale_


def test_outcome_without_dependence_has_a_scale_too():
    X, y = people(dependence=0.0)
    model = CIPRegressor(**ROLES, epochs=1, random_state=0).fit(X, y)
    dependent = CIPRegressor(**ROLES, epochs=1, random_state=0).fit(*people())
    assert dependent.gamma_scale_ < model.gamma_scale_ < np.inf


def test_scale_is_kept_with_the_model(tmp_path):
    X, y = people()
    model = CIPRegressor(**ROLES, epochs=1, random_state=0).fit(X, y)
    assert load_model(save_model(model, tmp_path / "model")).gamma_scale_ == model.gamma_scale_


def test_stacked_networks_count_alike():
    X, y = people(100)
    inputs, target = torch.tensor(X.to_numpy()).float(), torch.tensor(y)[:, None].float()
    rows = TrainingRows((inputs,), target, inputs[:, :1])
    operator = HSIC(Gaussian(1.0), Gaussian(1.0)).prepare(rows.right)
    torch.manual_seed(0)
    start = torch.nn.Linear(2, 1)
    trained = [
        train_stacked([start], [gamma], rows, SquaredError(), TrainingSettings(epochs=3, gamma_scale=scale), operator)
        for gamma, scale in ((6.0, 1.0), (2.0, 3.0))
    ]
    assert torch.equal(trained[0][0].module.weight, trained[1][0].module.weight)


def test_frontier_leaves_the_scale_to_the_estimator():
    X, y = people(200)
    found = frontier(CIPRegressor(**ROLES, epochs=10), X, y, gammas=[0.0, 1e3])
    penalties = found.summary()["penalty"]
    assert penalties.iloc[1] < penalties.iloc[0]


@pytest.mark.parametrize("scale", ["other", 0.0, -1.0, float("nan"), None])
def test_scale_that_is_none_is_refused(scale):
    with pytest.raises(InputError, match="gamma_scale must"):
        CIPRegressor(**ROLES, gamma_scale=scale, epochs=1).fit(*people(50))


@pytest.mark.parametrize(
    "roles", [{"protected": ["sex"]}, {"protected": ["A"]}, {"protected": ["A"], "adjustment": ["S"]}]
)
def test_invariance_that_already_holds_costs_next_to_nothing(roles):
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(1200, 3)), columns=["S", "L", "A"]).assign(
        sex=generator.choice(["f", "m"], 1200)
    )
    y = X["S"] + X["L"] + 0.1 * generator.normal(size=1200)
    train, fresh = slice(0, 600), slice(600, None)
    free, held = (
        CIPRegressor(**roles, gamma=gamma, epochs=40, learning_rate=5e-3, random_state=0).fit(X[train], y[train])
        for gamma in (0.0, 1.0)
    )
    assert held.score(X[fresh], y[fresh]) > free.score(X[fresh], y[fresh]) - 0.03


@pytest.mark.parametrize(("classes", "most"), [(2, 0.05), (3, 0.15)])
def test_invariance_that_already_holds_costs_a_classifier_little(classes, most):
    generator = np.random.default_rng(1)
    X = pd.DataFrame(generator.normal(size=(1200, 2)), columns=["S", "L"]).assign(
        sex=generator.choice(["f", "m"], 1200)
    )
    labels = pd.qcut(X["S"] + X["L"], classes, labels=False)
    train, fresh = slice(0, 600), slice(600, None)
    free, held = (
        CIPClassifier(protected=["sex"], gamma=gamma, epochs=120, learning_rate=5e-3, random_state=0)
        .fit(X[train], labels[train])
        .score(X[fresh], labels[fresh])
        for gamma in (0.0, 1.0)
    )
    assert held > free - most


def test_column_of_names_tells_nothing_and_says_so():
    X, y = people()
    named = X.assign(name=[f"person {row}" for row in range(len(X))])
    model = CIPRegressor(protected=["name"], inputs=["A", "S"], epochs=40, learning_rate=5e-3, random_state=0)
    with pytest.warns(UserWarning, match="values of name occur once"):
        model.fit(named, y)
    assert model.score(named, y) > 0.9


@pytest.mark.parametrize("kind", [CIPRegressor, CIPClassifier])
def test_open_kernel_on_predictions_is_the_defaults(kind):
    X, y = people()
    target = y if kind is CIPRegressor else y > 0
    default = kind(**ROLES, gamma=2.0, epochs=3, random_state=0).fit(X, target)
    passed = default.set_params(penalty=ResidualHSCIC(), gamma_scale="outcome")
    expected = default.predict(X)
    assert np.array_equal(passed.fit(X, target).predict(X), expected)
