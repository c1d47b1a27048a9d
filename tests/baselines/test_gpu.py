"""The rivals on a CUDA device."""

import numpy as np
import pytest
import torch

from ciplearn import baselines

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

MORE = {"Augmented": {"copies": 2}, "CausallyAugmented": {"copies": 2}, "PSCF": {"n_draws": 3}}


@pytest.mark.parametrize("name", baselines.__all__)
def test_rival_learns_on_a_device_what_it_learns_elsewhere(name, X, y, roles):
    fitted = [
        getattr(baselines, name)(**roles, epochs=40, device=device, **MORE.get(name, {})).fit(X, y)
        for device in ("cpu", "cuda")
    ]
    here, there = (model.predict(X) for model in fitted)
    assert next(fitted[1].model_.module_.parameters()).is_cuda
    assert np.isfinite(there).all()
    # Other random numbers and other roundings, the same target: the two differ by less than the outcome varies.
    assert np.mean((here - there) ** 2) < 0.5 * y.var()
