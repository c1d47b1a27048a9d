import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ciplearn._core.errors import InputError
from ciplearn.kernels import Gaussian, Laplace, Nystroem, Product
from ciplearn.penalties import CIRCE, HSCIC, HSIC, MMD, ResidualHSCIC

N = 50
GENERATOR = torch.Generator().manual_seed(0)
Y = torch.rand(N, generator=GENERATOR, dtype=torch.float64)
R = torch.rand(N, 2, generator=GENERATOR, dtype=torch.float64)
S = torch.rand(N, 1, generator=GENERATOR, dtype=torch.float64)


def test_low_rank_begins_beyond_the_row_limit_and_is_visible():
    exact, low_rank = HSCIC(exact_rows=N).prepare(R, S), HSCIC(exact_rows=N - 1).prepare(R, S)
    assert exact.exact
    assert "exact" in repr(exact)
    assert not low_rank.exact
    assert "low-rank" in repr(low_rank)


def test_operators_are_compared_by_identity():
    one = HSCIC().prepare(R, S)
    # The same kernel, storage and setting in another object.
    twin = replace(one)
    assert one != twin
    assert len({one, twin, one}) == 2


def test_chosen_ridge_and_length_scales_can_be_read():
    setting = ResidualHSCIC(given_kernel=Gaussian(0.3)).prepare(R, S).setting
    assert setting.ridge > 0
    assert setting.given_kernel == Gaussian(0.3)
    assert isinstance(setting.right_kernel.lengthscale, float)


def test_leave_one_out_also_chooses_an_open_length_scale():
    fine = torch.sin(40 * S) + 0.01 * R[:, :1]
    setting = ResidualHSCIC().prepare(fine, S).setting
    median = Gaussian("median").resolve(S).lengthscale
    assert setting.given_kernel.lengthscale < 0.6 * median


@pytest.mark.parametrize("kernel", [Gaussian("median"), Product(Gaussian(1.0), Laplace("median"))], ids=repr)
def test_open_length_scale_is_never_read_off_predictions(kernel):
    penalty = HSIC(kernel=kernel)
    operator = penalty.prepare(R)
    stacked = Y[None, :, None], torch.arange(N)
    for call in (lambda: operator(Y), lambda: penalty(Y, R), lambda: operator.stacked(*stacked)):
        with pytest.raises(InputError, match=r"no length scale, got .*; name one, .* or use penalty.for_outcome"):
            call()


def test_outcome_settles_an_open_length_scale():
    outcome = torch.stack([3 * Y, -Y], dim=1)
    distances = (outcome[:, None] - outcome[None, :]).square().mean(dim=2)
    expected = math.sqrt(float(distances.mean()))
    settled = HSIC(kernel=Gaussian("median")).for_outcome(outcome)
    assert settled.kernel.lengthscale == pytest.approx(expected)
    assert settled.prepare(R)(Y) == HSIC(kernel=Gaussian(settled.kernel.lengthscale)).prepare(R)(Y)
    assert HSIC(kernel=Gaussian(0.3)).for_outcome(outcome).kernel == Gaussian(0.3)
    assert HSIC().for_outcome(np.full(9, 2)).kernel == Gaussian(1.0)
    mixed = HSIC(kernel=Product(Gaussian(0.3), Laplace())).for_outcome(outcome).kernel
    assert mixed == Product(Gaussian(0.3), Laplace(settled.kernel.lengthscale))


def test_batch_of_all_rows_in_another_order_equals_the_whole():
    operator = CIRCE(kernel=Gaussian(0.2)).prepare(R, S)
    order = torch.randperm(N)
    torch.testing.assert_close(operator(Y[order], rows=order), operator(Y))


@pytest.mark.parametrize("exact_rows", [None, 0])
def test_moving_an_operator_changes_only_its_precision(exact_rows):
    operator = HSCIC(exact_rows=exact_rows, centre=True).prepare(R, S)
    single = operator.to(dtype=torch.float32)
    assert single.matrix().dtype == torch.float32
    assert single.setting == operator.setting
    torch.testing.assert_close(single.matrix().double(), operator.matrix(), atol=1e-8, rtol=1e-4)


def test_penalties_are_values():
    assert HSCIC(ridge=0.1) == HSCIC(ridge=0.1)
    assert HSCIC(ridge=0.1) != HSCIC(ridge=0.2)
    assert hash(MMD()) == hash(MMD())
    assert HSCIC.paper().kernel == Gaussian(0.1)
    assert HSCIC.paper().ridge == 0.01


def test_rows_in_the_hundred_thousands_need_no_square_matrix():
    n = 200_000
    right, given = torch.rand(n, 1), torch.rand(n, 1)
    operator = ResidualHSCIC(kernel=Gaussian(0.3), features=Nystroem(16), ridge=1e-3, rank=24).prepare(right, given)
    assert operator.storage.width <= 24
    rows = torch.arange(0, n, 1000)
    y_hat = right[rows].requires_grad_()
    value = operator(y_hat, rows=rows)
    value.backward()
    assert torch.isfinite(value)
    assert y_hat.grad.abs().max() > 0


def test_function_of_the_condition_is_not_punished_by_the_residual_form():
    n = 300
    generator = torch.Generator().manual_seed(1)
    given = torch.rand(n, 1, generator=generator, dtype=torch.float64)
    right = given + 0.3 * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    invariant = torch.sin(6 * given)
    shares = {}
    for penalty in (HSCIC(kernel=Gaussian(0.3), centre=True), ResidualHSCIC(kernel=Gaussian(0.3), centre=True)):
        operator = penalty.prepare(right, given)
        shares[type(penalty).__name__] = (operator(invariant) / operator(right)).item()
    assert shares["ResidualHSCIC"] < 0.5 * shares["HSCIC"]
