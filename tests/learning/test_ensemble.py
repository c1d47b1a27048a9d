"""Networks trained together end where they would have ended alone on the same batches."""

import math
from dataclasses import replace

import pytest
import torch

from ciplearn import Gaussian, ResidualHSCIC
from ciplearn._core.errors import InputError, NumericalError
from ciplearn.learning import BinaryCrossEntropy, SquaredError, TrainingRows, TrainingSettings
from ciplearn.learning.stepper import train_stacked

N, BATCH = 120, 30
GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.rand(N, 3, generator=GENERATOR)
TARGET = INPUTS.sum(dim=1, keepdim=True)
ROWS = TrainingRows((INPUTS,), TARGET, right=INPUTS[:, :1], given=INPUTS[:, 1:2])
SETTINGS = TrainingSettings(epochs=3, batch_size=BATCH, learning_rate=1e-2, seed=7)
OPERATOR = ResidualHSCIC(kernel=Gaussian(0.2), ridge=1e-3).prepare(ROWS.right, ROWS.given)


def alone(module, gamma, objective, target):
    """The same training written as a plain loop over the same batches."""
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(7)
    for epoch in range(3):
        optimiser.param_groups[0]["lr"] = 1e-2 * (1 + math.cos(math.pi * epoch / 3)) / 2
        for index in torch.randperm(N, generator=generator).split(N // math.ceil(N / BATCH)):
            output = module(INPUTS[index])
            loss = objective.loss(output, target[index], None)
            loss = loss + gamma * OPERATOR(objective.prediction(output), rows=index)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return module


@pytest.mark.parametrize("objective", [SquaredError(), BinaryCrossEntropy()], ids=["squared error", "cross-entropy"])
def test_stacked_networks_equal_networks_trained_alone(network, objective):
    target = TARGET if isinstance(objective, SquaredError) else (TARGET[:, 0] > 1.5).long()
    rows = TrainingRows((INPUTS,), target, right=ROWS.right, given=ROWS.given)
    gammas = [0.0, 1.0, 5.0]
    fits = train_stacked([network(s) for s in range(3)], gammas, rows, objective, SETTINGS, OPERATOR)
    for seed, (gamma, together) in enumerate(zip(gammas, [fit.module for fit in fits], strict=True)):
        single = alone(network(seed), gamma, objective, target)
        for one, other in zip(together.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-3)


def test_networks_that_are_passed_stay_as_they_were(network):
    module = network(0)
    before = [part.clone() for part in module.parameters()]
    train_stacked([module], [0.0], ROWS, SquaredError(), SETTINGS, None)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), before, strict=True))


def test_each_network_needs_its_gamma(network):
    with pytest.raises(InputError, match="2 networks and 1 gammas"):
        train_stacked([network(0), network(1)], [0.0], ROWS, SquaredError(), SETTINGS, None)


@pytest.mark.parametrize("penalty", [None, OPERATOR], ids=["without a penalty", "with a penalty"])
def test_a_loss_that_is_no_longer_finite_is_refused(network, penalty):
    fast = replace(SETTINGS, learning_rate=1e25)
    with pytest.raises(NumericalError, match=r"no longer finite in epoch 1 .* gamma 0.5.*lower the learning rate 1e"):
        train_stacked([network(0)], [0.5], ROWS, SquaredError(), fast, penalty)


def test_the_network_whose_loss_is_no_longer_finite_is_named_by_its_gamma(network):
    broken = network(1)
    with torch.no_grad():
        next(broken.parameters()).fill_(math.nan)
    with pytest.raises(NumericalError, match="gamma 2 "):
        train_stacked([network(0), broken], [0.0, 2.0], ROWS, SquaredError(), SETTINGS, None)


@pytest.mark.gpu
def test_recorded_steps_on_a_device_equal_steps_on_the_cpu(network):
    on_cpu = train_stacked([network(s) for s in range(2)], [0.0, 2.0], ROWS, SquaredError(), SETTINGS, OPERATOR)
    device = torch.device("cuda")
    on_gpu = train_stacked(
        [network(s) for s in range(2)], [0.0, 2.0], ROWS.to(device), SquaredError(), SETTINGS, OPERATOR.to(device)
    )
    for one, other in zip(on_cpu, on_gpu, strict=True):
        for a, b in zip(one.module.parameters(), other.module.parameters(), strict=True):
            torch.testing.assert_close(a, b.cpu(), atol=1e-3, rtol=1e-2)
