import pytest
import torch

from ciplearn._core.errors import InputError
from ciplearn.kernels import Categorical, Gaussian, Laplace, Linear, Nystroem, OneHot, Product, RandomFourier, Sum

GENERATOR = torch.Generator().manual_seed(0)
X = torch.rand(80, 2, dtype=torch.float64, generator=GENERATOR)
MIXED = torch.cat([X[:, :1], (X[:, 1:] * 4).floor()], dim=1)
MIXED_KERNEL = Product(Gaussian(0.3, columns=[0]), Categorical(columns=[1]))


def error(features, kernel, x):
    phi = features.fit(kernel, x)(x)
    return (phi @ phi.T - kernel(x)).abs().max().item()


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.4), Gaussian(0.4, average=False), Laplace(0.4), Laplace(0.4, average=False), Gaussian("median")],
    ids=repr,
)
def test_random_fourier_features_converge_to_the_kernel(kernel):
    errors = [error(RandomFourier(size), kernel, X) for size in (16, 256, 16384)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.4), Laplace(0.4), Linear(), MIXED_KERNEL, Sum(Gaussian(0.4), Linear())], ids=repr
)
def test_nystroem_on_all_rows_is_exact_for_any_kernel(kernel):
    x = MIXED if kernel is MIXED_KERNEL else X
    assert error(Nystroem(len(x), tolerance=0.0), kernel, x) < 1e-6


def test_nystroem_improves_with_landmarks():
    errors = [error(Nystroem(size), Gaussian(0.2), X) for size in (5, 20, 80)]
    assert errors[0] > errors[1] > errors[2]


def test_nystroem_stops_when_duplicates_leave_nothing_to_explain():
    x = X[:6].repeat(50, 1)
    features = Nystroem(100).fit(Gaussian(0.2), x)
    assert features.size <= 6
    assert error(Nystroem(100), Gaussian(0.2), x) < 1e-7


def test_nystroem_finds_a_rare_category():
    codes = torch.zeros(2000, 1, dtype=torch.float64)
    codes[17] = 1.0
    assert error(Nystroem(2), Categorical(), codes) < 1e-12


def test_one_hot_is_exact():
    codes = torch.randint(0, 5, (40, 2), generator=GENERATOR)
    assert error(OneHot(), Categorical(), codes) < 1e-12
    assert error(OneHot(), Categorical(mismatch=0.2), codes) < 1e-12
    assert error(OneHot(), Categorical(columns=[1]), codes) < 1e-12


def test_one_hot_gives_nothing_to_a_level_it_has_not_seen():
    features = OneHot().fit(Categorical(), torch.tensor([[0], [1]]))
    assert features(torch.tensor([[7]])).abs().sum() == 0


def test_products_and_sums_of_features_follow_the_kernel():
    fitted = RandomFourier(4096).fit(MIXED_KERNEL, MIXED)
    assert fitted.size == 4096 * 4
    assert error(RandomFourier(4096), MIXED_KERNEL, MIXED) < 0.1
    added = Sum(Gaussian(0.4, columns=[0]), Categorical(columns=[1]))
    assert RandomFourier(4096).fit(added, MIXED).size == 4096 + 4
    assert error(RandomFourier(4096), added, MIXED) < 0.1


def test_same_seed_gives_the_same_features():
    for maker in (RandomFourier, Nystroem):
        first, second, other = (maker(32, seed=seed).fit(Gaussian(0.3), X)(X) for seed in (1, 1, 2))
        assert torch.equal(first, second)
        assert first.shape != other.shape or not torch.allclose(first, other)


def test_fourier_features_far_from_the_origin_keep_their_precision():
    assert error(RandomFourier(16384), Gaussian(0.4), X + 1e6) < 0.05


def test_kernel_without_a_spectral_law_is_refused():
    with pytest.raises(InputError, match="Nystroem"):
        RandomFourier().fit(Linear(), X)
    with pytest.raises(InputError, match="Categorical"):
        OneHot().fit(Gaussian(), X)


def test_odd_number_of_fourier_features_is_refused():
    with pytest.raises(InputError, match="even"):
        RandomFourier(7)
    with pytest.raises(InputError, match="at least 1"):
        Nystroem(0)
