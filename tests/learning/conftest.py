import pytest
import torch
from torch import nn


@pytest.fixture
def network():
    """Make a small network from a seed."""

    def made(seed=0, inputs=3, kind=nn.Sequential):
        torch.manual_seed(seed)
        return kind(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, 1))

    return made
