"""Tiles of a product form give what the whole block does."""

import pytest
import torch

from ciplearn.kernels import Categorical, Gaussian, Laplace, Linear
from ciplearn.penalties import inner_product
from ciplearn.penalties.inner_product import inner_product as penalty
from ciplearn.penalties.storage import DenseMatrix, ElementwiseProduct, Factor

N, ROWS = 61, 45
OFF, ON = 1.7, 0.6


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(inner_product, "TILE", 16)  # 45 rows: three tiles, the last one short


def draw(columns, seed):
    return torch.randn(N, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


PRODUCTS = {
    "plain": ElementwiseProduct(draw(3, 0), draw(4, 1)),
    "corrected": ElementwiseProduct(draw(3, 0), draw(4, 1), (draw(2, 2), draw(2, 3))),
}
INDEX = torch.randperm(N, generator=torch.Generator().manual_seed(4))[:ROWS]


def refuse_blocks(monkeypatch):
    def block(self, rows):
        raise AssertionError("the block is formed")

    monkeypatch.setattr(ElementwiseProduct, "block", block)


def by_block(kernel, y_hat, product):
    gram = kernel.gram(y_hat, y_hat) * product.block(INDEX)
    return OFF * (gram.sum() - gram.diagonal().sum()) + ON * gram.diagonal().sum()


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("kernel", [Gaussian(0.9), Gaussian(0.7, columns=[1])], ids=["all", "one column"])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_value_and_gradient_are_those_of_the_block(product, kernel, columns, monkeypatch):
    if kernel.columns and columns == 1:
        kernel = Gaussian(0.7, columns=[0])
    product, y_hat = PRODUCTS[product], draw(columns, 5)[:ROWS].requires_grad_()
    expected = by_block(kernel, y_hat, product)
    slopes = torch.autograd.grad(expected, y_hat)[0]
    refuse_blocks(monkeypatch)
    value = penalty(kernel, y_hat, product, INDEX, OFF, ON, None)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, y_hat)[0], slopes)
    torch.testing.assert_close(penalty(kernel, y_hat.detach(), product, INDEX, OFF, ON, None), expected.detach())


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("kernel", [Laplace(0.8), Linear()], ids=["Laplace", "Linear"])
def test_value_under_any_kernel_is_that_of_the_block(product, kernel, monkeypatch):
    product, y_hat = PRODUCTS[product], draw(2, 5)[:ROWS]
    expected = by_block(kernel, y_hat, product)
    refuse_blocks(monkeypatch)
    torch.testing.assert_close(penalty(kernel, y_hat, product, INDEX, OFF, ON, None), expected)


def test_value_of_categories_is_that_of_the_block(monkeypatch):
    product, y_hat = PRODUCTS["plain"], draw(1, 5)[:ROWS].gt(0).long()
    expected = by_block(Categorical(), y_hat, product)
    refuse_blocks(monkeypatch)
    torch.testing.assert_close(penalty(Categorical(), y_hat, product, INDEX, OFF, ON, None), expected)


@pytest.mark.parametrize("product", PRODUCTS)
def test_diagonal_is_that_of_the_matrix(product):
    torch.testing.assert_close(
        PRODUCTS[product].diagonal(), DenseMatrix(PRODUCTS[product].block(None)).matrix.diagonal()
    )


@pytest.mark.parametrize("columns", [1, 3])
def test_a_factor_is_taken_tile_by_tile_where_no_series_serves(columns, monkeypatch):
    factor, y_hat = Factor(draw(5, 6)), draw(columns, 5)[:ROWS].requires_grad_()
    expected = by_block(Gaussian(0.9), y_hat, factor)
    slopes = torch.autograd.grad(expected, y_hat)[0]
    laplace = by_block(Laplace(0.8), y_hat.detach(), factor)
    monkeypatch.setattr(Factor, "block", lambda self, rows: pytest.fail("the block is formed"))
    value = penalty(Gaussian(0.9), y_hat, factor, INDEX, OFF, ON, None)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, y_hat)[0], slopes)
    torch.testing.assert_close(penalty(Laplace(0.8), y_hat.detach(), factor, INDEX, OFF, ON, None), laplace)
