"""What two regressions in a row take away from the variance of a product of residuals."""

import numpy as np
import pytest
import torch

from ciplearn.evaluation.independence import Residuals
from ciplearn.evaluation.regression import Basis, Regression

N, RANK, DRAWS = 120, 60, 600
FEATURES = {"the residuals": lambda r: r, "their squares": lambda r: r.square() - 1, "their sines": torch.sin}


def projection(generator, rank):
    vectors = torch.linalg.qr(torch.as_tensor(generator.normal(size=(N, rank))))[0]
    return Basis(vectors, torch.ones(rank, dtype=torch.float64))


def regression(basis, targets):
    return Regression(basis, torch.full((targets.shape[1],), 1e-9), targets, torch.zeros(1), 1)


@pytest.mark.parametrize("name", FEATURES)
def test_shrinkage_makes_good_what_both_regressions_used_up(name):
    generator = np.random.default_rng(0)
    wide, narrow = projection(generator, RANK), projection(generator, 1)
    sums, squares, said = [], [], []
    for _ in range(DRAWS):
        sides = []
        for _ in range(2):
            raw = regression(wide, torch.as_tensor(generator.normal(size=(N, 1))))
            unit = raw.residuals / raw.residuals.square().mean().sqrt()
            sides.append(Residuals(raw, regression(narrow, FEATURES[name](unit))))
        product = sides[0].features.residuals * sides[1].features.residuals
        sums.append(float(product.sum()) ** 2)
        squares.append(float(product.square().sum()))
        said.append(float(sides[0].shrinkage(sides[1])))
    true = np.mean(sums) / np.mean(squares)
    # The mean of squared sums is off by a tenth of itself: twice a standard error.
    assert np.mean(said) == pytest.approx(true, rel=0.12)
    if name == "the residuals":
        assert true > 1.7
