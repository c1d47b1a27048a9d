"""Adam takes the steps of torch's own and loads no compiler; torch's own generator is put back."""

import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

from ciplearn._core.tensors import Adam, may_draw, torch_seeded


def trained(kind, **settings):
    """Weights after twenty steps, with the state written and read again on the way."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))
    optimiser = kind(module.parameters(), **settings)
    for step in range(20):
        optimiser.zero_grad()
        module(torch.randn(16, 5)).square().sum().backward()
        optimiser.step()
        if step == 10:
            state, optimiser = optimiser.state_dict(), kind(module.parameters(), **settings)
            optimiser.load_state_dict(state)
    return torch.cat([part.detach().flatten() for part in module.parameters()])


@pytest.mark.parametrize("settings", [{"lr": 0.01}, {"lr": 0.1, "weight_decay": 0.01}])
def test_steps_are_those_of_torch(settings):
    torch.testing.assert_close(trained(Adam, **settings), trained(torch.optim.Adam, **settings), rtol=0, atol=0)


def test_a_training_loads_no_compiler():
    program = """
import sys
import numpy
from ciplearn import CIPRegressor
draw = numpy.random.default_rng(0)
CIPRegressor(epochs=1, early_stopping=True).fit(draw.normal(size=(40, 2)), draw.normal(size=40))
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


class Functional(nn.Module):
    """Nobody can see from outside that it drops units."""

    def forward(self, inputs):
        return nn.functional.dropout(inputs)


class Quiet(nn.Module):
    draws_from_torch = False

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.Sequential(*parts)


@pytest.mark.parametrize(
    ("module", "answer"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.BatchNorm1d(2)), False),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), False),
        (Quiet(nn.Linear(2, 2)), False),
        (Quiet(nn.Linear(2, 2), nn.Dropout(0.5)), True),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), True),
        (nn.RReLU(), True),
        (nn.LSTM(2, 2, 2, dropout=0.1), True),
        (nn.MultiheadAttention(2, 1, dropout=0.1), True),
        (nn.TransformerEncoderLayer(2, 1), True),
        (Functional(), True),
    ],
)
def test_only_networks_whose_parts_are_all_known_are_trusted_not_to_draw(module, answer):
    assert may_draw(module) == answer


def test_networks_that_are_trusted_do_not_draw():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 1))
    state = torch.get_rng_state()
    module.train()(torch.ones(3, 1, 4, 4))
    assert torch.equal(torch.get_rng_state(), state)


def test_seeded_numbers_are_the_same_and_the_state_is_put_back():
    state = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with torch_seeded(3):
            drawn.append(torch.rand(4))
    assert torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), state)


def test_threads_that_seed_draw_their_own_numbers():
    state, found = torch.get_rng_state(), {}

    def draw(seed):
        with torch_seeded(seed):
            found[seed] = torch.stack([torch.rand(2000).sort().values for _ in range(20)])

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(found)
    for seed in range(8):
        draw(seed)
    assert all(torch.equal(together[seed], found[seed]) for seed in range(8))
    assert torch.equal(torch.get_rng_state(), state)
