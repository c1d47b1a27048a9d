"""Penalties of training steps, each against its definition, gradients included."""

import pytest
import torch
from torch import nn

from ciplearn.kernels import Gaussian
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, Validation, loop, train
from ciplearn.learning.invariance import CounterfactualVariance, Dependence, ImaginedRows, Worst
from ciplearn.learning.stepper import train_stacked
from ciplearn.penalties import HSIC


def tensors(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def asked(invariance, network, index):
    (inputs,) = invariance.imagined_inputs(index)
    return invariance.penalty(network(tensors(len(index), inputs.shape[1])), network(inputs), index, None)


def variance_row_by_row(network, worlds, weights, index):
    """Mean over rows of Σ_a w_a |f_a − Σ w f|², written from the definition."""
    total = 0.0
    for row in index:
        answers = torch.stack([network(worlds[row, place][None])[0] for place in range(worlds.shape[1])])
        shares = torch.full((len(answers),), 1 / len(answers), dtype=torch.float64) if weights is None else weights
        mean = sum(share * answer for share, answer in zip(shares, answers, strict=True))
        spread = sum(share * (answer - mean).square().sum() for share, answer in zip(shares, answers, strict=True))
        total = total + (spread * len(answers) / (len(answers) - 1) if weights is None else spread)
    return total / len(index)


@pytest.mark.parametrize("weights", [None, torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)], ids=["drawn", "listed"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_counterfactual_variance_and_its_gradient_are_those_of_the_definition(weights, outputs):
    worlds, index = tensors(10, 3, 2), torch.tensor([7, 0, 3, 4])
    network = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, outputs)).double()
    invariance = CounterfactualVariance(ImaginedRows((worlds,), weights))
    fast, slow = asked(invariance, network, index), variance_row_by_row(network, worlds, weights, index)
    torch.testing.assert_close(fast, slow)
    for one, other in zip(*(torch.autograd.grad(v, network.parameters()) for v in (fast, slow)), strict=True):
        torch.testing.assert_close(one, other)


def test_a_few_of_many_worlds_are_drawn_anew_in_each_epoch_without_bias():
    worlds, index = tensors(40, 16, 1), torch.arange(40)
    invariance, generator = CounterfactualVariance(ImaginedRows((worlds,))), torch.Generator().manual_seed(0)
    seen, values = set(), []
    for _ in range(400):
        invariance.begin_epoch(generator)
        assert invariance.imagined_inputs(index)[0].shape == (160, 1)
        values.append(float(asked(invariance, lambda rows: rows, index)))
        seen.add(values[-1])
    assert len(seen) > 50
    assert sum(values) / 400 == pytest.approx(float(worlds.var(dim=1).mean()), rel=0.01)


def test_the_worst_of_several_counts_each_in_its_own_unit():
    small, large = tensors(20, 4, 1), 10 * tensors(20, 4, 1, seed=1)
    parts = [CounterfactualVariance(ImaginedRows((worlds,))) for worlds in (small, large)]
    index = torch.arange(20)
    own = [float(asked(part, lambda rows: rows, index)) for part in parts]
    assert float(asked(Worst(tuple(parts), (1.0, 1.0)), lambda rows: rows, index)) == pytest.approx(own[1])
    assert float(asked(Worst(tuple(parts), (own[0], 2 * own[1])), lambda rows: rows, index)) == pytest.approx(1.0)
    operator = Dependence(HSIC(kernel=Gaussian(0.5)).prepare(tensors(20, 1)))
    both = Worst((operator, parts[0]), (1e-9, 1.0))
    (inputs,) = both.imagined_inputs(index)
    y_hat = tensors(20, 1, seed=3)
    found = both.penalty(y_hat, inputs, index, None)
    assert float(found) == pytest.approx(float(operator.operator(y_hat)) / 1e-9)


def test_the_worst_of_several_statements_has_the_gradient_of_the_worst():
    statements = [HSIC(kernel=Gaussian(0.5)).prepare(tensors(20, 1, seed=seed)) for seed in (4, 5, 6)]
    y_hat, index = tensors(20, 1, seed=3).requires_grad_(), torch.arange(20)
    units = (1.0, 2.0, 0.5)
    relative = [statement(y_hat) / unit for statement, unit in zip(statements, units, strict=True)]
    largest = max(relative)
    found = Worst(tuple(map(Dependence, statements)), units).penalty(y_hat, y_hat[:0], index, None)
    assert largest > 1.01 * sorted(relative)[1]
    torch.testing.assert_close(found, largest)
    torch.testing.assert_close(torch.autograd.grad(found, y_hat), torch.autograd.grad(largest, y_hat))


def rows_with_worlds(n=64):
    """y follows A; each row is imagined with A = 0 and with A = 1."""
    protected = (torch.arange(n) % 2).float()[:, None]
    noise = tensors(n, 1).float()
    inputs = torch.cat([protected, noise], dim=1)
    worlds = torch.stack([torch.cat([torch.full_like(noise, value), noise], dim=1) for value in (0.0, 1.0)], dim=1)
    rows = TrainingRows(inputs=(inputs,), target=protected + noise)
    return rows, CounterfactualVariance(ImaginedRows((worlds,), torch.tensor([0.5, 0.5])))


def test_training_on_imagined_rows_forgets_what_the_protected_variable_did_and_keeps_the_rest(network):
    rows, invariance = rows_with_worlds()
    settings = TrainingSettings(gamma=100.0, epochs=200, batch_size=16, learning_rate=1e-2)
    fit = train(network(0, inputs=2), rows, SquaredError(), settings, invariance)
    with torch.no_grad():
        answers = fit.module(rows.inputs[0])
        apart = fit.module(invariance.rows.inputs[0][:, 0]) - fit.module(invariance.rows.inputs[0][:, 1])
        kept = torch.corrcoef(torch.stack([answers[:, 0], rows.inputs[0][:, 1]]))[0, 1]
    assert float(apart.abs().mean()) < 0.05
    assert float(kept) > 0.95
    assert fit.history[-1]["penalty"] < 1e-3


def test_stacked_networks_take_the_same_steps_on_imagined_rows(network):
    rows, invariance = rows_with_worlds()
    settings = TrainingSettings(gamma=3.0, epochs=3, batch_size=16, learning_rate=1e-2)
    alone = train(network(0, inputs=2), rows, SquaredError(), settings, invariance).module
    both = [network(0, inputs=2), network(1, inputs=2)]
    stacked = train_stacked(both, [3.0, 0.0], rows, SquaredError(), settings, invariance)
    with torch.no_grad():
        torch.testing.assert_close(stacked[0].module(rows.inputs[0]), alone(rows.inputs[0]), rtol=1e-4, atol=1e-5)


def test_rows_that_say_when_to_stop_are_judged_alike_in_one_call_of_the_network_and_in_several(network, monkeypatch):
    rows, listed = rows_with_worlds()
    drawn = CounterfactualVariance(ImaginedRows((10 * tensors(64, 6, 2).float(),)))
    operator = Dependence(HSIC(kernel=Gaussian(0.5)).prepare(rows.inputs[0][:, :1]))
    worst = Worst((Worst((listed, operator), (1.0, 2.0)), drawn), (1.0, 0.7))
    settings = TrainingSettings(gamma=1.0, epochs=1, batch_size=16, patience=1)

    def judged(at_once):
        monkeypatch.setattr(loop, "_VALIDATION_ROWS_AT_ONCE", at_once)
        fit = train(network(0, inputs=2), rows, SquaredError(), settings, listed, Validation(rows, worst))
        return fit.history[0]["validation"]

    assert judged(10) == pytest.approx(judged(64), rel=1e-5)


@pytest.mark.gpu
def test_recorded_steps_on_imagined_rows_end_where_steps_on_the_cpu_do(network):
    rows, invariance = rows_with_worlds()
    settings = TrainingSettings(gamma=3.0, epochs=30, batch_size=16, learning_rate=1e-2)
    cuda = torch.device("cuda")
    moved = CounterfactualVariance(invariance.rows.to(cuda))
    on_cpu = train(network(0, inputs=2), rows, SquaredError(), settings, invariance).module
    on_gpu = train(network(0, inputs=2).to(cuda), rows.to(cuda), SquaredError(), settings, moved).module.cpu()
    with torch.no_grad():
        torch.testing.assert_close(on_gpu(rows.inputs[0]), on_cpu(rows.inputs[0]), rtol=1e-3, atol=1e-3)
