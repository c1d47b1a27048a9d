import numpy as np
import pytest


@pytest.fixture
def generator():
    return np.random.default_rng(0)
