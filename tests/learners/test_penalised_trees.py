"""Trees trained with a penalty: the objective against naive oracles, and what it achieves."""

import numpy as np
import pytest
import torch

from ciplearn import CIPClassifier, CIPRegressor, GammaSearch, load_model, save_model
from ciplearn._core.errors import InputError
from ciplearn.estimators.preparation import Prepared
from ciplearn.learners import Boosted
from ciplearn.learners.boosted import Cost
from tests.learners.test_learners import labelled


@pytest.fixture(scope="module")
def roles(scm):
    return {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "learner": Boosted(), "random_state": 0}


def cost_of(model, X, y, weight=3.0):
    prepared = Prepared.of(model, X, y)
    split, estimator = prepared.splits[0], prepared.estimator
    base = estimator._constant_output(split.rows.target)
    return Cost.of(split.rows, estimator._objective(), split.invariance, weight, base)


@pytest.mark.parametrize("levels", [None, ["no", "yes"], ["high", "low", "middle"]])
@pytest.mark.parametrize("imagines", [False, True])
def test_gradient_is_that_of_finite_differences(roles, scm, X, y, levels, imagines):
    kind = CIPRegressor if levels is None else CIPClassifier
    target = y if levels is None else labelled(y, levels)
    cost = cost_of(kind(**roles, counterfactuals=scm if imagines else None), X[:80], target[:80])
    draw = torch.Generator().manual_seed(0)
    cost.output += 0.3 * torch.randn(cost.output.shape, generator=draw, dtype=torch.float64)
    value, gradient = cost.gradient()
    assert value == pytest.approx(float(cost.value(cost.output)))
    n = len(cost.rows)
    assert len(cost.inputs) == (n * 5 if imagines else n)
    for place in (0, n // 2, len(cost.inputs) - 1):
        for column in range(cost.output.shape[1]):
            ends = []
            for step in (1e-4, -1e-4):
                moved = cost.output.clone()
                moved[place, column] += step
                ends.append(float(cost.value(moved)))
            assert gradient[place, column] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=2e-6)


def test_cost_is_loss_and_penalty_written_out(roles, X, y):
    cost = cost_of(CIPRegressor(**roles), X[:80], y[:80])
    cost.output += torch.linspace(0, 1, len(cost.output), dtype=torch.float64)[:, None]
    operator, said = cost.invariance.operator, cost.output.numpy()
    distance = (said - said.T) ** 2 / (2 * operator.kernel.lengthscale**2)
    penalty = (operator.matrix().numpy() * np.exp(-distance)).sum()
    loss = np.mean((said[:, 0] - cost.rows.target[:, 0].numpy()) ** 2)
    assert float(cost.value(cost.output)) == pytest.approx(loss + 3.0 * penalty, rel=1e-5)


def test_stronger_penalties_leave_less_dependence_and_end_at_what_a_leaves_alone(roles, X, y):
    prepared = Prepared.of(CIPRegressor(**roles), X, y)
    models = {gamma: prepared.trained(gamma) for gamma in (0.0, 1.0, 100.0)}
    penalties = {gamma: model.penalty_value(X) for gamma, model in models.items()}
    assert penalties[0.0] > 5 * penalties[1.0] > 5 * penalties[100.0]
    alone = Boosted().estimator("regression", random_state=0).fit(X[["Z"]], y)
    error = {name: np.mean((one.predict(X) - y) ** 2) for name, one in {**models, "Z": alone}.items()}
    assert error[0.0] < error[1.0] < error[100.0] < 1.5 * error["Z"]
    without = CIPRegressor(**roles, gamma=100.0, invariant_path=False).fit(X, y)
    assert np.mean((without.predict(X) - y) ** 2) > 1.5 * error[100.0]


def test_each_round_lowers_the_cost(roles, X, y):
    model = CIPRegressor(**roles, gamma=1.0).fit(X, y)
    costs = [one["loss"] + model.gamma_ * model.gamma_scale_ * one["penalty"] for one in model.history_]
    assert len(costs) > 2
    assert (np.diff(costs) < 0).all()


@pytest.mark.parametrize("levels", [None, ["no", "yes"], ["high", "low", "middle"]])
def test_imagined_rows_move_less_and_the_model_is_saved(roles, scm, X, y, levels, tmp_path):
    kind = CIPRegressor if levels is None else CIPClassifier
    target = y if levels is None else labelled(y, levels)
    other = scm.counterfactual(X.assign(Y=y), {"A": X["A"].to_numpy()[::-1]})[list(X.columns)]

    def moved(model):
        said = model.predict if levels is None else model.predict_proba
        return np.mean((said(X) - said(other)) ** 2)

    known = {**roles, "counterfactuals": scm, "learner": Boosted(trees=15)}
    free, kept = (kind(**known, gamma=gamma).fit(X, target) for gamma in (1e-6, 3.0))
    assert moved(kept) < moved(free) / 3
    again = load_model(save_model(kept, tmp_path / "model"))
    assert np.array_equal(again.predict(X), kept.predict(X))
    assert again.gamma_ == 3.0


def test_gamma_is_chosen_for_trees_too(roles, X, y):
    settings = {"tolerance": 0.5, "low": 0.1, "high": 10.0, "cv": 1, "max_trials": 3, "random_state": 0}
    search = GammaSearch(CIPRegressor(**roles), **settings).fit(X, y)
    assert search.best_gamma_ >= 0.1
    tried = search.frontier_.table.sort_values("gamma")
    assert (tried["penalty"].diff().dropna() < 0).all()
    assert (tried["loss"].diff().dropna() > 0).all()


def test_a_penalty_of_each_batch_is_refused(roles, X, y):
    with pytest.raises(InputError, match="prepare_once=False"):
        CIPRegressor(**roles, gamma=1.0, prepare_once=False).fit(X, y)
