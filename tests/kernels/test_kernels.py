import math

import pytest
import torch
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from ciplearn._core.errors import InputError
from ciplearn.kernels import Categorical, Gaussian, Laplace, Linear, Product, Sum

X = torch.rand(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Z = torch.rand(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
CODES = torch.tensor([[0, 1], [0, 2], [1, 1], [0, 1]])
KERNELS = [
    Gaussian(0.5),
    Gaussian("median"),
    Laplace(0.5),
    Linear(),
    Categorical(),
    Categorical(mismatch=0.3),
    Product(Gaussian(0.5, columns=[0]), Laplace(0.4, columns=[1, 2])),
    Sum(Gaussian(0.5), Linear(columns=[2])),
]


def test_gaussian_equals_scikit_learn_with_distances_summed_or_averaged():
    summed = rbf_kernel(X.numpy(), Z.numpy(), gamma=1 / (2 * 0.5**2))
    averaged = rbf_kernel(X.numpy(), Z.numpy(), gamma=1 / (2 * 0.5**2 * 3))
    torch.testing.assert_close(Gaussian(0.5, average=False)(X, Z), torch.from_numpy(summed))
    torch.testing.assert_close(Gaussian(0.5)(X, Z), torch.from_numpy(averaged))


def test_laplace_equals_scikit_learn_with_distances_summed_or_averaged():
    summed = laplacian_kernel(X.numpy(), Z.numpy(), gamma=1 / 0.5)
    averaged = laplacian_kernel(X.numpy(), Z.numpy(), gamma=1 / (0.5 * 3))
    torch.testing.assert_close(Laplace(0.5, average=False)(X, Z), torch.from_numpy(summed))
    torch.testing.assert_close(Laplace(0.5)(X, Z), torch.from_numpy(averaged))


def test_linear_is_the_inner_product():
    torch.testing.assert_close(Linear(average=False)(X, Z), X @ Z.T)
    torch.testing.assert_close(Linear()(X, Z), X @ Z.T / 3)


def test_categorical_compares_whole_rows():
    expected = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=torch.float64)
    torch.testing.assert_close(Categorical()(CODES), expected)


def test_mismatch_softens_each_column_that_differs():
    gram = Categorical(mismatch=0.5)(CODES)
    assert gram[0, 1] == 0.5
    assert gram[1, 2] == 0.25
    assert torch.linalg.eigvalsh(Categorical(mismatch=0.5)(CODES[:3])).min() > 0


def test_product_and_sum_combine_their_parts():
    first, second = Gaussian(0.5, columns=[0]), Laplace(0.4, columns=[1, 2])
    torch.testing.assert_close(Product(first, second)(X, Z), first(X, Z) * second(X, Z))
    torch.testing.assert_close(Sum([first, second])(X, Z), first(X, Z) + second(X, Z))
    assert Product([first, second]) == Product(first, second)
    assert Product(first, second) != Sum(first, second)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gram_matrix_is_positive_semi_definite_and_its_diagonal_is_known(kernel):
    gram = kernel(X)
    assert torch.linalg.eigvalsh(gram).min() > -1e-12
    torch.testing.assert_close(gram.diagonal(), kernel.resolve(X).diagonal(X))


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(0.5), Linear(), KERNELS[-2], KERNELS[-1]], ids=repr)
def test_gram_matrix_is_differentiable(kernel):
    x = X[:4].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: kernel(rows, Z), x)


def test_many_columns_use_a_matrix_product_with_the_same_result():
    wide = 1e4 + torch.rand(20, 9, dtype=torch.float64)
    direct = ((wide[:, None] - wide[None]) ** 2).mean(-1)
    torch.testing.assert_close(Gaussian(0.5)(wide), torch.exp(-direct / (2 * 0.25)), atol=1e-9, rtol=1e-9)


class TestMedian:
    def test_is_the_median_distance_between_rows(self):
        x = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
        assert Gaussian().resolve(x).lengthscale == pytest.approx(2.0)
        assert Laplace().resolve(x).lengthscale == pytest.approx(2.0)

    def test_averages_over_columns(self):
        x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
        assert Gaussian().resolve(x).lengthscale == pytest.approx(math.sqrt(12.5))
        assert Gaussian(average=False).resolve(x).lengthscale == pytest.approx(5.0)

    def test_of_a_constant_column_is_one(self):
        assert Gaussian().resolve(torch.ones(9, 2)).lengthscale == 1.0

    def test_of_mostly_equal_rows_is_that_of_the_unequal_pairs(self):
        x = torch.zeros(20, 1)
        x[0] = 4.0
        assert Gaussian().resolve(x).lengthscale == pytest.approx(4.0)

    def test_of_many_rows_is_that_of_a_seeded_sample(self):
        x = torch.rand(1_000_000, 1, generator=torch.Generator().manual_seed(0))
        first, second = Gaussian().resolve(x), Gaussian().resolve(x)
        assert first == second
        # The median distance of two uniform draws is 1 − 1/√2.
        assert first.lengthscale == pytest.approx(1 - 1 / math.sqrt(2), rel=0.05)

    def test_is_left_alone_where_a_number_was_given(self):
        kernel = Product(Gaussian(0.7, columns=[0]), Gaussian("median", columns=[1]))
        lengthscales = {candidate.parts[0].lengthscale for candidate in kernel.candidates(X)}
        assert lengthscales == {0.7}
        assert len({candidate.parts[1].lengthscale for candidate in kernel.candidates(X)}) > 1


def test_columns_of_another_number_are_refused():
    with pytest.raises(InputError, match="same columns, got 3 and 2"):
        Gaussian(1.0)(X, Z[:, :2])


def test_open_kernel_has_no_width():
    with pytest.raises(InputError, match="resolve"):
        _ = Gaussian("median").width


def test_parts_must_be_kernels():
    with pytest.raises(InputError, match="takes kernels"):
        Product(Gaussian(), "linear")


@pytest.mark.parametrize("columns", [[], [True], [-1], [0.5], "0", -2])
@pytest.mark.parametrize("kernel", [Gaussian, Laplace, Linear, Categorical])
def test_columns_are_numbers_from_zero(kernel, columns):
    with pytest.raises(InputError, match="columns must be"):
        kernel(columns=columns)
    assert kernel(columns=2).columns == (2,)
