"""The linear-time product equals the pass over the block, to the precision of the arithmetic."""

import pytest
import torch

from ciplearn._core.workers import ALONE
from ciplearn.kernels import Gaussian
from ciplearn.penalties import HSCIC, ResidualHSCIC
from ciplearn.penalties.inner_product import FourierInnerProduct, inner_product, series_for
from ciplearn.penalties.storage import DenseMatrix, Factor

B, M = 64, 5


def both(y_hat, factor, lengthscale, off=1.7, on=1.2):
    """Value and gradient by the series, and by the block."""
    kernel = Gaussian(lengthscale)
    scale = kernel.scale(1)
    low, high = y_hat.min().item(), y_hat.max().item()
    series = series_for(y_hat, B, (high - low) * scale, factor.shape[1])
    assert series is not None
    fast = FourierInnerProduct.apply(y_hat, factor, scale, series, off, on, low, ALONE)
    slow = inner_product(kernel, y_hat, DenseMatrix(factor @ factor.T), None, off, on, (low, high))
    return [(value, torch.autograd.grad(value, y_hat)[0]) for value in (fast, slow)]


@pytest.mark.parametrize("width", [0.0, 1e-6, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("place", [0.0, -3.0, 1e4])
def test_series_equal_the_block_in_double_precision(width, place):
    y_hat = (place + width * torch.rand(B, 1, dtype=torch.float64)).requires_grad_()
    factor = torch.randn(B, M, dtype=torch.float64)
    (fast, fast_gradient), (slow, slow_gradient) = both(y_hat, factor, lengthscale=0.2)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(fast_gradient, slow_gradient, rtol=1e-9, atol=1e-9)


def test_series_equal_the_block_in_single_precision():
    y_hat = torch.rand(B, 1).requires_grad_()
    (fast, fast_gradient), (slow, slow_gradient) = both(y_hat, torch.randn(B, M), lengthscale=0.1)
    torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(fast_gradient, slow_gradient, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [0.1, 1.0, 8.0])
def test_matrix_with_a_factor_beside_it_gives_value_and_gradient_pair_by_pair(dtype, width):
    generator = torch.Generator().manual_seed(1)
    y_hat = (width * torch.rand(B, 1, dtype=torch.float64, generator=generator)).to(dtype).requires_grad_()
    factor = torch.randn(B, 3 * M, dtype=torch.float64, generator=generator).to(dtype)
    storage = DenseMatrix(factor @ factor.T, factor)
    value = inner_product(Gaussian(0.1), y_hat, storage, None, 1.7, 1.2, (0.0, width))
    exact = y_hat.detach().double().requires_grad_()
    weights = torch.full((B, B), 1.7, dtype=torch.float64).fill_diagonal_(1.2)
    pairs = torch.exp(-50 * (exact - exact.T).square()) * (factor @ factor.T).double() * weights
    (gradient,), (expected,) = torch.autograd.grad(value, y_hat), torch.autograd.grad(pairs.sum(), exact)
    most = 1e-5 if dtype == torch.float32 else 1e-12
    assert abs(value.item() / pairs.sum().item() - 1) < most
    assert (gradient - expected).norm() < most * expected.norm()


def test_gradient_passes_gradcheck():
    y_hat = torch.rand(12, 1, dtype=torch.float64, requires_grad=True)
    factor = torch.randn(12, 3, dtype=torch.float64)
    series = series_for(y_hat, 12, 5.0, 3)
    assert torch.autograd.gradcheck(
        lambda y: FourierInnerProduct.apply(y, factor, 5.0, series, 1.7, 1.2, 0.5, ALONE), y_hat
    )


def test_second_derivative_is_refused_not_wrong():
    y_hat = torch.rand(12, 1, dtype=torch.float64, requires_grad=True)
    factor = torch.randn(12, 3, dtype=torch.float64)
    series = series_for(y_hat, 12, 5.0, 3)
    value = FourierInnerProduct.apply(y_hat, factor, 5.0, series, 1.0, 1.0, 0.5, ALONE)
    (gradient,) = torch.autograd.grad(value, y_hat, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient.sum().backward()


def test_block_takes_over_where_series_would_be_many():
    spread = torch.linspace(0, 1e5, B)[:, None]
    assert series_for(spread, B, 5e5, M) is None
    factor = torch.randn(B, M)
    value = inner_product(Gaussian(0.2), spread, Factor(factor), None, 1.0, 1.0, (0.0, 1e5))
    # Predictions this far apart see only themselves.
    torch.testing.assert_close(value, factor.square().sum())


@pytest.mark.parametrize("penalty", [HSCIC(kernel=Gaussian(0.1)), ResidualHSCIC(kernel=Gaussian(0.1), ridge=1e-3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_prepared_operator_is_held_as_a_factor_with_the_same_values(penalty, dtype):
    generator = torch.Generator().manual_seed(0)
    given = torch.rand(400, 1, generator=generator, dtype=torch.float64).to(dtype)
    right = given + 0.3 * torch.randn(400, 1, generator=generator, dtype=torch.float64).to(dtype)
    operator = penalty.prepare(right, given)
    assert operator.storage.factor is not None
    assert operator.storage.factor.dtype == dtype
    rows = torch.randperm(400, generator=generator)[:150]
    y_hat = (0.3 * given + 0.7 * right)[rows].requires_grad_()
    fast = operator(y_hat, rows=rows)
    n, b = 400, 150
    slow = inner_product(
        penalty.kernel, y_hat, DenseMatrix(operator.matrix()), rows, n * (n - 1) / (b * (b - 1)), n / b, (-1.0, 1.0)
    )
    tolerance = {"rtol": 1e-4, "atol": 1e-7} if dtype == torch.float32 else {"rtol": 1e-8, "atol": 1e-12}
    torch.testing.assert_close(fast, slow, **tolerance)
    torch.testing.assert_close(torch.autograd.grad(fast, y_hat)[0], torch.autograd.grad(slow, y_hat)[0], **tolerance)
