"""Data augmentation, plain and along the graph."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from ciplearn import CausalGraph, CIPRegressor, baselines
from ciplearn._core.errors import InputError
from ciplearn.baselines.augmentation import AugmentedNetwork, ChangeOfA, Equation
from tests.baselines.models import linear, vcf

QUICK = {"epochs": 15, "copies": 8, "learning_rate": 3e-3}


class Affine:
    """A mean that is known: the inputs times weights."""

    def __init__(self, weights):
        self.weights = torch.tensor(weights).double()

    def mean(self, inputs):
        return inputs @ self.weights


def test_a_is_drawn_from_its_marginal_law_and_all_else_stays():
    rows = torch.arange(12.0).reshape(4, 3)
    pool = torch.tensor([[10.0], [20.0]])
    changed = ChangeOfA(pool, torch.tensor([1]))(rows.repeat(500, 1), torch.zeros(2000, 1))
    assert torch.equal(changed[:, [0, 2]], rows.repeat(500, 1)[:, [0, 2]])
    assert set(changed[:, 1].tolist()) == {10.0, 20.0}
    # Half of 2000 draws, within four standard deviations.
    assert abs(float((changed[:, 1] == 10).float().mean()) - 0.5) < 4 * (0.25 / 2000) ** 0.5
    assert torch.equal(rows, torch.arange(12.0).reshape(4, 3))


def test_descendants_follow_as_in_the_structural_causal_model():
    scm = linear(confounded=True)
    table = scm.sample(50, random_state=0)
    rows = torch.from_numpy(table[["Z", "A", "L"]].to_numpy(copy=True))
    equation = Equation(torch.tensor([2]), torch.tensor([1, 0]), Affine([[2.0], [1.0]]), False)
    noise = torch.zeros_like(rows)
    noise[:, 2:] = equation.residual(rows)
    change = ChangeOfA(torch.tensor([[1.5]]).double(), torch.tensor([1]), [equation])
    expected = scm.counterfactual(table, {"A": 1.5})
    np.testing.assert_allclose(change(rows, noise).numpy(), expected[["Z", "A", "L"]].to_numpy(), atol=1e-12)


def test_category_is_drawn_from_predicted_levels():
    class Levels:
        def mean(self, inputs):
            return torch.stack([1 - inputs[:, 0], inputs[:, 0]], dim=1)

    rows = torch.tensor([[0.25, 1.0, 0.0]]).repeat(4000, 1)
    equation = Equation(torch.tensor([1, 2]), torch.tensor([0]), Levels(), True)
    drawn = equation.value(rows, torch.zeros_like(rows))
    assert torch.equal(drawn.sum(dim=1), torch.ones(4000))
    assert abs(float(drawn[:, 1].mean()) - 0.25) < 4 * (0.25 * 0.75 / 4000) ** 0.5
    assert torch.equal(equation.residual(rows), torch.zeros(4000, 2))


def test_network_is_trained_on_changed_rows_and_asked_about_rows_as_they_are():
    network = AugmentedNetwork(nn.Identity(), ChangeOfA(torch.tensor([[9.0]]), torch.tensor([0])), torch.arange(2))
    rows = torch.tensor([[1.0, 2.0]])
    assert torch.equal(network.train()(rows, rows, rows), torch.tensor([[9.0, 2.0]]))
    assert torch.equal(network.eval()(rows, rows, rows), rows)


@pytest.mark.parametrize("baseline", [baselines.Augmented, baselines.CausallyAugmented])
def test_augmentation_varies_less_than_no_augmentation(baseline, scm, X, y, table, roles):
    plain = CIPRegressor(epochs=120, learning_rate=3e-3, random_state=0).fit(X, y)
    model = baseline(**roles, **QUICK).fit(X, y)
    assert vcf(model, scm, table) < 0.5 * vcf(plain, scm, table)
    assert model.score(X, y) > 0.2


def test_residuals_can_be_left_out_as_in_the_paper(X, y, roles):
    kept, left_out = (
        baselines.CausallyAugmented(**roles, epochs=2, copies=2, keep_residuals=keep).fit(X, y).predict(X)
        for keep in (True, False)
    )
    assert not np.allclose(kept, left_out)


def test_residuals_are_kept_or_not(X, y, roles):
    with pytest.raises(InputError, match="keep_residuals must be True or False"):
        baselines.CausallyAugmented(**roles, epochs=1, copies=1, keep_residuals=pd.Series([1, 2])).fit(X, y)


def test_epochs_count_copies_and_the_network_is_plain_again(X, y, roles):
    def make():
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    model = baselines.Augmented(**roles, module=make, epochs=3, copies=4).fit(X, y)
    assert model.model_.n_iter_ == 12
    assert isinstance(model.model_.module_, nn.Sequential)
    assert model.model_.module is make


def test_outcome_that_causes_a_descendant_keeps_its_value():
    generator = np.random.default_rng(0)
    a, y = generator.standard_normal(300), generator.standard_normal(300)
    X = pd.DataFrame({"A": a, "X": a + y})
    roles = {"graph": CausalGraph.from_edges("A -> X, Y -> X"), "outcome": "Y", "protected": ["A"], "inputs": ["X"]}
    settings = {"epochs": 20, "copies": 8, "learning_rate": 1e-2, "random_state": 0, "keep_residuals": False}
    model = baselines.CausallyAugmented(**roles, **settings).fit(X, y)
    # With A drawn anew X = A' + Y: the best prediction of Y is X / 2, and R² one half.
    assert abs(model.score(X, y) - 0.5) < 0.1
    assert model.inputs_ == ("X",)


def test_category_that_descends_from_a_is_augmented():
    generator = np.random.default_rng(0)
    a = generator.choice(["f", "m"], 200)
    job = np.where(generator.random(200) < np.where(a == "f", 0.8, 0.3), "nurse", "smith")
    X = pd.DataFrame({"A": a, "job": job})
    model = baselines.CausallyAugmented(
        graph=CausalGraph.from_edges("A -> job, job -> Y"), outcome="Y", protected=["A"], epochs=3, copies=2
    ).fit(X, job == "nurse")
    assert model.predict_proba(X).shape == (200, 2)


def test_augmentation_that_would_change_nothing_is_refused(X, y, roles):
    with pytest.raises(InputError, match="nothing to augment"):
        baselines.Augmented(**roles, inputs=["Z", "L"]).fit(X, y)
    with pytest.raises(InputError, match="copies must be at least 1"):
        baselines.Augmented(**roles, copies=0).fit(X, y)
    with pytest.raises(InputError, match="module must be a torch"):
        baselines.Augmented(**roles, module="mlp").fit(X, y)
