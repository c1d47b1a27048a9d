"""Fits in threads end where fits one after the other do, and leave torch's own generator alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from ciplearn import CIPClassifier, CIPRegressor

ROWS = np.random.default_rng(0).random((120, 3))
OUTCOME = ROWS.sum(axis=1)


def dropping():
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))


KINDS = {
    "default": lambda seed: CIPRegressor(protected=[0], epochs=3, batch_size=30, random_state=seed).fit(ROWS, OUTCOME),
    "early stopping": lambda seed: CIPRegressor(
        protected=[0], epochs=3, batch_size=30, early_stopping=True, random_state=seed
    ).fit(ROWS, OUTCOME),
    "classifier": lambda seed: CIPClassifier(protected=[0], epochs=3, batch_size=30, random_state=seed).fit(
        ROWS, OUTCOME > 1.5
    ),
    "dropout": lambda seed: CIPRegressor(
        protected=[0], module=dropping, epochs=3, batch_size=30, random_state=seed
    ).fit(ROWS, OUTCOME),
}


def weights(model):
    return torch.cat([part.flatten() for part in model.module_.state_dict().values()])


@pytest.mark.parametrize("kind", KINDS)
def test_fits_in_threads_equal_fits_in_turn(kind):
    fit = KINDS[kind]
    seeds = [0, 1, 2, 3] * 5
    state = torch.get_rng_state()
    with ThreadPoolExecutor(8) as pool:
        together = [weights(model) for model in pool.map(fit, seeds)]
    assert torch.equal(torch.get_rng_state(), state)
    alone = {seed: weights(fit(seed)) for seed in set(seeds)}
    assert all(torch.equal(found, alone[seed]) for seed, found in zip(seeds, together, strict=True))
    assert not torch.equal(alone[0], alone[1])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dropout"])
def test_torchs_generator_is_not_touched_while_a_default_fit_runs(kind):
    torch.manual_seed(5)
    drawn = []
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(KINDS[kind], seed) for seed in range(2)]
        while not all(one.done() for one in running):
            drawn.append(torch.rand(1))
    torch.manual_seed(5)
    assert torch.equal(torch.cat(drawn), torch.cat([torch.rand(1) for _ in drawn]))
