import pytest
import torch

from ciplearn.kernels import Gaussian
from ciplearn.kernels.ridge import fewest_columns, pivoted_cholesky

X = torch.rand(60, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
GRAM = Gaussian(0.2)(X)


@pytest.mark.parametrize("seed", [None, 0])
def test_factor_is_exact_on_pivots_and_converges(seed):
    errors = []
    for rank in (3, 8, 30):
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        pivots, factor = pivoted_cholesky(GRAM.diagonal(), lambda j: GRAM[:, j], rank, 0.0, generator)
        assert factor.shape == (60, len(pivots))
        assert len(pivots) <= rank
        approximation = factor @ factor.T
        torch.testing.assert_close(approximation[pivots], GRAM[pivots], atol=1e-7, rtol=1e-7)
        errors.append((GRAM - approximation).diagonal().sum().item())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-8


def test_pivots_stop_at_the_tolerance_and_never_repeat():
    pivots, factor = pivoted_cholesky(GRAM.diagonal(), lambda j: GRAM[:, j], 60, 1e-6)
    assert len(set(pivots.tolist())) == len(pivots) < 30
    assert 0 <= (GRAM.diagonal().sum() - factor.square().sum()) <= 1e-6 * 60


def test_zero_matrix_has_no_pivots():
    pivots, factor = pivoted_cholesky(torch.zeros(5), lambda j: torch.zeros(5), 3, 1e-9)
    assert pivots.numel() == 0
    assert factor.shape == (5, 0)


def test_fewest_columns_keep_the_product():
    factor = torch.rand(40, 5, dtype=torch.float64)
    redundant = torch.cat([factor, factor @ torch.rand(5, 4, dtype=torch.float64)], dim=1)
    short = fewest_columns(redundant, 1e-12)
    assert short.shape == (40, 5)
    torch.testing.assert_close(short @ short.T, redundant @ redundant.T)
