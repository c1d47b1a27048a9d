from types import SimpleNamespace

import pytest
import torch

from ciplearn.penalties import low_rank
from ciplearn.penalties.storage import DenseMatrix, ElementwiseProduct, Factor

N = 9


def draw(columns, seed):
    return torch.rand(N, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def products():
    left, right = draw(3, 0), draw(4, 1)
    return {
        "plain": ElementwiseProduct(left, right),
        "corrected": ElementwiseProduct(left, right, (draw(2, 2), draw(2, 3))),
    }


def entry_by_entry(product):
    matrix = torch.empty(N, N, dtype=torch.float64)
    for i in range(N):
        for j in range(N):
            matrix[i, j] = (product.left[i] @ product.left[j]) * (product.right[i] @ product.right[j])
            if product.correction is not None:
                g, f = product.correction
                matrix[i, j] -= g[i] @ f[j] + f[i] @ g[j]
    return matrix


@pytest.mark.parametrize("kind", products())
def test_product_is_its_definition(kind):
    product = products()[kind]
    matrix = entry_by_entry(product)
    rows = torch.tensor([5, 0, 3])
    torch.testing.assert_close(product.block(None), matrix)
    torch.testing.assert_close(product.block(rows), matrix[rows][:, rows])
    torch.testing.assert_close(product.at(rows).between(product), matrix[rows])
    torch.testing.assert_close(product.row_sums(), matrix.sum(dim=1))
    assert product.factor is None
    assert product.rows == N
    assert product.width == 7 + (4 if kind == "corrected" else 0)


@pytest.mark.parametrize("n", [9, 90])
def test_block_of_a_matrix_is_its_rows_and_columns(n):
    matrix = torch.rand(n, n, generator=torch.Generator().manual_seed(5))
    rows = torch.tensor([7, 0, 3])
    torch.testing.assert_close(DenseMatrix(matrix).block(rows), matrix[rows][:, rows], rtol=0, atol=0)


@pytest.mark.parametrize("stored", [*products().values(), Factor(draw(3, 4)), DenseMatrix(draw(N, 5) + draw(N, 5).T)])
def test_centring_is_c_q_c(stored):
    projection = torch.eye(N, dtype=torch.float64) - 1 / N
    torch.testing.assert_close(stored.centred().block(None), projection @ stored.block(None) @ projection)


@pytest.mark.parametrize("kind", products())
def test_pieces_join_and_move(kind):
    product = products()[kind]
    chunks = [(torch.arange(start, stop),) * 2 for start, stop in ((0, 2), (2, 8), (8, N))]
    rows = SimpleNamespace(n=N, dtype=torch.float64, chunks=lambda: chunks)
    whole = low_rank.stored(rows, lambda right, given: product.at(right))
    torch.testing.assert_close(whole.block(None), product.block(None))
    single = product.to(None, torch.float32)
    assert single.block(None).dtype == torch.float32
    torch.testing.assert_close(single.block(None).double(), product.block(None), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stored", [products()["plain"], Factor(draw(3, 4))])
def test_vectors_in_half_precision_are_computed_with_in_single(stored):
    half = stored.to(None, torch.bfloat16)
    rounded = half.to(None, torch.float64)
    rows = torch.tensor([5, 0, 3])
    torch.testing.assert_close(half.block(rows), rounded.block(rows).float())
    torch.testing.assert_close(half.row_sums(), rounded.row_sums().float())
    centred = half.centred()
    assert centred.parts()[0].dtype == torch.bfloat16
    # A factor is rounded once more when its mean is gone: 2⁻⁸ of each number.
    least = 0.02 if isinstance(stored, Factor) else 1e-5
    torch.testing.assert_close(centred.block(None), rounded.centred().block(None).float(), rtol=least, atol=least)
