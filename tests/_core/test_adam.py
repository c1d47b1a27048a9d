"""Adam takes the steps of torch's own, and loads no compiler."""

import subprocess
import sys

import pytest
import torch

from ciplearn._core.tensors import Adam


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
