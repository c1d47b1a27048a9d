"""What is stored beyond the row limit keeps the direction of the exact gradient, and says how well."""

import pytest
import torch

from ciplearn.kernels import Gaussian
from ciplearn.penalties import CIRCE, HSCIC, HSIC, ResidualHSCIC, conditional, low_rank, marginal
from ciplearn.penalties.conditional import RegressionProblem, _SmoothedVectors
from ciplearn.penalties.low_rank import FeatureRegression, MomentSums, gradient_error, smooth_predictions
from ciplearn.penalties.rows import PenaltyRows
from ciplearn.penalties.storage import ElementwiseProduct, Factor

N = 700


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """As with many rows, landmarks and rows to judge by are apart."""
    monkeypatch.setattr(low_rank, "_LANDMARKS", 300)
    for module in (conditional, marginal):
        monkeypatch.setattr(module, "CHECKED_ROWS", 400)


def columns(n_given, n_right):
    """R that depends on S, and a prediction that depends on both."""
    generator = torch.Generator().manual_seed(0)

    def noise(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    given = noise(N, n_given)
    right = torch.tanh(given @ noise(n_given, n_right) / n_given**0.5) + 0.7 * noise(N, n_right)
    y_hat = torch.sin(given.mean(dim=1)) + right.mean(dim=1) * n_right**0.5 / 2 + 0.3 * noise(N)
    return right, given, y_hat


def gradient(operator, y_hat):
    y_hat = y_hat.clone().requires_grad_()
    return torch.autograd.grad(operator(y_hat), y_hat)[0]


def prepared(penalty, n_given, n_right, **settings):
    right, given, y_hat = columns(n_given, n_right)
    chosen = penalty(kernel=Gaussian(2**0.5 * float(y_hat.std())), **settings)
    return chosen.prepare(right, *([] if penalty is HSIC else [given])), y_hat


@pytest.mark.parametrize("penalty", [ResidualHSCIC, CIRCE, HSCIC, HSIC])
@pytest.mark.parametrize(("n_given", "n_right"), [(1, 1), (3, 3), (10, 10)], ids=["1+1", "3+3", "10+10"])
def test_gradient_points_where_the_exact_one_does(penalty, n_given, n_right):
    exact, y_hat = prepared(penalty, n_given, n_right, exact_rows=None)
    low, _ = prepared(penalty, n_given, n_right, exact_rows=0)
    assert not low.exact
    assert low.setting == exact.setting
    cosine = torch.cosine_similarity(gradient(exact, y_hat), gradient(low, y_hat), dim=0)
    assert cosine > 0.95
    # What is reported holds, with a little room for another prediction than those it was measured with.
    assert (1 - cosine**2).sqrt() < low.relative_error + 0.05


def test_few_columns_take_a_short_factor_and_many_the_product():
    few, _ = prepared(ResidualHSCIC, 1, 1, exact_rows=0)
    many, _ = prepared(ResidualHSCIC, 10, 10, exact_rows=0)
    assert isinstance(few.storage, Factor)
    assert few.storage.width <= 128
    assert few.relative_error < 0.05
    assert isinstance(many.storage, ElementwiseProduct)
    assert few.relative_error < many.relative_error < 0.3


def test_operator_says_its_error():
    exact, _ = prepared(ResidualHSCIC, 1, 1, exact_rows=None)
    low, _ = prepared(ResidualHSCIC, 10, 10, exact_rows=0)
    assert exact.relative_error == 0
    assert f"relative error {low.relative_error:.2g}" in repr(low)
    assert low.to(dtype=torch.float32).relative_error == low.relative_error


def test_batches_of_the_product_form_are_rows_of_its_matrix():
    operator, y_hat = prepared(ResidualHSCIC, 10, 10, exact_rows=0)
    rows = torch.tensor([3, 350, 41, 699])
    kept = operator.to(dtype=torch.float64)
    torch.testing.assert_close(kept.storage.block(rows), kept.matrix()[rows][:, rows], rtol=1e-9, atol=1e-18)
    assert torch.isfinite(operator(y_hat[rows], rows=rows))


@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
def test_two_vectors_take_the_memory_of_a_short_factor_and_keep_the_gradient(precision):
    right, given, y_hat = columns(10, 10)
    penalty = ResidualHSCIC(kernel=Gaussian(2**0.5 * float(y_hat.std())), exact_rows=0)
    operator = penalty.prepare(right.to(precision), given.to(precision))
    taken = sum(part[0].numel() * part.element_size() for part in operator.storage.parts())
    assert taken <= 128 * torch.finfo(precision).bits // 8
    # By the definition: the vectors as they were before they were rounded.
    rows = PenaltyRows.of_pair((right, given))
    kernels = penalty.right_kernel, penalty.given_kernel
    regression = FeatureRegression.of(RegressionProblem.settle(rows, *kernels, penalty.ridge, penalty.features))
    unrounded = penalty._vectors(regression)(right, given).block(None)
    y_hat = y_hat[:, None].requires_grad_()
    value = (penalty.kernel(y_hat) * unrounded).sum()
    expected = torch.autograd.grad(value, y_hat)[0][:, 0]
    error = (gradient(operator, y_hat.detach()[:, 0].to(precision)) - expected).norm() / expected.norm()
    assert error < (1e-5 if precision == torch.float64 else 0.01)
    assert operator.relative_error > 10 * error


def test_differences_of_large_terms_are_not_rounded():
    right, given, _ = columns(10, 10)
    operator = HSCIC(kernel=Gaussian(1.0), exact_rows=0, rank=2).prepare(right.float(), given.float())
    assert {part.dtype for part in operator.storage.parts()} == {torch.float32}
    assert operator.storage.correction is not None


def test_sums_over_parts_merge_into_the_sums_over_the_whole():
    right, given, _ = columns(2, 2)
    rows = PenaltyRows.of_pair((right, given))
    penalty = HSCIC(exact_rows=0)
    problem = RegressionProblem.settle(rows, penalty.right_kernel, penalty.given_kernel, 0.01, penalty.features)
    whole = FeatureRegression.of(problem)
    for make, parts_of in (
        (lambda: MomentSums(whole.right, whole.given), lambda sums: (sums[0].values, sums[1])),
        (lambda: _SmoothedVectors(whole), lambda sums: sums.totals),
    ):
        first, second = make(), make()
        first.update(right[:200], given[:200])
        second.update(right[200:500], given[200:500])
        second.update(right[500:], given[500:])
        first.merge(second)
        for merged, at_once in zip(parts_of(first.finalise()), parts_of(rows.summed(make())), strict=True):
            torch.testing.assert_close(merged, at_once, rtol=1e-9, atol=1e-9 * float(at_once.abs().max()))


def test_error_of_a_gradient_is_its_angle():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.T
    predictions = smooth_predictions(matrix)
    assert predictions.std(dim=1, correction=0) == pytest.approx([1.0] * len(predictions))
    assert gradient_error(3 * matrix, matrix, predictions) < 1e-7
    assert gradient_error(torch.zeros_like(matrix), matrix, predictions) == 1
    assert gradient_error(matrix, torch.zeros_like(matrix), predictions) == 0
    nearly = factor[:, :4] @ factor[:, :4].T
    assert 0.05 < gradient_error(nearly, matrix, predictions) < 0.9


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("exact_rows", [0, None], ids=["features", "exact"])
@pytest.mark.parametrize("penalty", [ResidualHSCIC, CIRCE, HSCIC])
def test_rows_in_half_precision_have_an_operator_in_single(precision, exact_rows, penalty):
    right, given, y_hat = (part.to(precision) for part in columns(1, 1))
    criterion = penalty(kernel=Gaussian(1.0), ridge=0.01, exact_rows=exact_rows)
    expected = gradient(criterion.prepare(right.double(), given.double()), y_hat.double())
    found = gradient(criterion.prepare(right, given), y_hat.double())
    assert float((found - expected).norm() / expected.norm()) < 1e-3
