import pytest
import torch

from ciplearn.kernels import Gaussian, Laplace, Linear
from ciplearn.penalties import HSCIC


@pytest.mark.parametrize("kernel", [Gaussian(0.2), Linear(), Laplace(0.3)], ids=repr)
@pytest.mark.parametrize("outputs", [1, 3])
def test_stacked_values_and_gradients_equal_those_of_each_model(kernel, outputs):
    right, given = torch.rand(40, 1, dtype=torch.float64), torch.rand(40, 1, dtype=torch.float64)
    operator = HSCIC(kernel=kernel).prepare(right, given)
    rows = torch.randperm(40)[:15]
    y_hat = torch.rand(4, 15, outputs, dtype=torch.float64, requires_grad=True)
    together = operator.stacked(y_hat, rows)
    alone = torch.stack([operator(one, rows=rows) for one in y_hat])
    torch.testing.assert_close(together, alone, atol=1e-13, rtol=1e-9)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    torch.testing.assert_close(
        torch.autograd.grad(weights @ together, y_hat)[0],
        torch.autograd.grad(weights @ alone, y_hat)[0],
        atol=1e-12,
        rtol=1e-8,
    )
