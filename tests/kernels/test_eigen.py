import pytest
import torch

from ciplearn._core.errors import NumericalError
from ciplearn.kernels.ridge import eigenspace, eigh, inverse_root, leading


def test_inverse_root_of_a_singular_matrix_is_that_of_its_range():
    singular = torch.tensor([[2.0, 2.0], [2.0, 2.0]], dtype=torch.float64)
    root = inverse_root(singular)
    assert root.shape == (2, 1)
    torch.testing.assert_close(root @ root.T, torch.linalg.pinv(singular))


def test_a_zero_matrix_has_no_directions():
    assert inverse_root(torch.zeros(3, 3)).shape == (3, 0)
    assert len(eigenspace(torch.zeros(0, 0, dtype=torch.float64))[0]) == 0
    assert len(leading(torch.zeros(3, 3), 1e-9)[0]) == 0


def test_leading_directions_come_first_and_hold_all_but_a_share_of_the_trace():
    matrix = torch.diag(torch.tensor([1.0, 100.0, 0.5, 10.0], dtype=torch.float64))
    values, vectors = leading(matrix, 2 / 111.5)
    assert values.tolist() == [100.0, 10.0]
    torch.testing.assert_close(vectors.abs(), torch.eye(4, dtype=torch.float64)[:, [1, 3]])


def test_a_matrix_without_a_decomposition_is_named():
    with pytest.raises(NumericalError, match="eigendecomposition of a 3 × 3 matrix"):
        eigh(torch.full((3, 3), float("nan")))
