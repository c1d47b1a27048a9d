"""The contract that every penalty keeps, against evaluations written from the definitions."""

import pytest
import torch
from torch.autograd import gradcheck

from ciplearn.kernels import Categorical, Gaussian, Laplace, Linear, Nystroem, Product, RandomFourier, Sum
from ciplearn.penalties import CIRCE, HSCIC, HSIC, MMD, ResidualHSCIC
from tests.penalties import naive

RIDGE = 0.01
Y_SCALE, R_SCALE, S_SCALE = 0.2, 0.4, 0.3
KERNELS = {"kernel": Gaussian(Y_SCALE), "right_kernel": Gaussian(R_SCALE), "given_kernel": Gaussian(S_SCALE)}
MARGINAL = {"kernel": Gaussian(Y_SCALE), "right_kernel": Gaussian(R_SCALE)}


class Case:
    """One criterion: how to build it, what it takes, and its definition."""

    def __init__(self, name, build, definition, *, given, discrete=False, centres=False):
        self.name, self.build, self.definition = name, build, definition
        self.given, self.discrete, self.centres = given, discrete, centres

    def arguments(self, right, given):
        return (right, given) if self.given else (right,)

    def data(self, n=24, dtype=torch.float64, outputs=1):
        generator = torch.Generator().manual_seed(n)

        def draw(columns):
            return torch.rand(n, columns, generator=generator, dtype=torch.float64).to(dtype)

        y_hat, right, given = draw(outputs), draw(2), draw(2)
        if self.discrete:
            right, given = (right[:, :1] * 3).floor(), (given[:, :1] * 2).floor()
        return y_hat, right, given


def _conditional(definition):
    def value(k_y, right, given):
        return definition(k_y, naive.gaussian(right, R_SCALE), naive.gaussian(given, S_SCALE), RIDGE)

    return value


def _hsic(k_y, right, _given):
    return naive.hsic(k_y, naive.gaussian(right, R_SCALE))


def _mmd_given(k_y, right, given):
    return naive.mmd(k_y, right[:, 0].tolist(), given[:, 0].tolist())


def _mmd(k_y, right, _given):
    return naive.mmd(k_y, right[:, 0].tolist(), [0] * len(right))


def _hscic_build(**settings):
    return HSCIC(**{**KERNELS, "ridge": RIDGE, **settings})


def _residual_build(**settings):
    return ResidualHSCIC(**{**KERNELS, "ridge": RIDGE, **settings})


def _circe_build(**settings):
    return CIRCE(**{**KERNELS, "ridge": RIDGE, **settings})


def _hsic_build(**settings):
    return HSIC(**{**MARGINAL, **settings})


def _mmd_build(**settings):
    return MMD(settings.get("kernel", Gaussian(Y_SCALE)))


CONDITIONAL = [
    Case("HSCIC", _hscic_build, _conditional(naive.hscic), given=True),
    Case("ResidualHSCIC", _residual_build, _conditional(naive.residual_hscic), given=True),
    Case("CIRCE", _circe_build, _conditional(naive.circe), given=True),
]
GRAM_CASES = [*CONDITIONAL, Case("HSIC", _hsic_build, _hsic, given=False, centres=True)]
CASES = [
    *GRAM_CASES,
    Case("MMD", _mmd_build, _mmd, given=False, discrete=True, centres=True),
    Case("MMD given", _mmd_build, _mmd_given, given=True, discrete=True, centres=True),
]


def each(cases):
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


@each(CASES)
@pytest.mark.parametrize("outputs", [1, 3, 7])
def test_value_and_gradient_equal_the_definition(case, outputs):
    y_hat, right, given = case.data(outputs=outputs)
    y_hat.requires_grad_()
    fast = case.build()(y_hat, *case.arguments(right, given))
    slow = case.definition(naive.gaussian(y_hat, Y_SCALE), right, given)
    assert abs(fast.item() - slow.item()) < 1e-8
    fast_gradient = torch.autograd.grad(fast, y_hat)[0]
    slow_gradient = torch.autograd.grad(slow, y_hat)[0]
    assert slow_gradient.abs().max() > 1e-6
    torch.testing.assert_close(fast_gradient, slow_gradient, atol=1e-10, rtol=1e-8)


@each(CASES)
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.3, average=False),
        Gaussian(0.3, columns=[1]),
        Laplace(0.3),
        Linear(),
        Linear(average=False, columns=[0]),
        Product(Gaussian(0.3, columns=[0]), Laplace(0.5, columns=[1])),
        Sum(Gaussian(0.3), Linear()),
    ],
    ids=repr,
)
def test_every_kernel_of_the_prediction_enters_through_its_gram_matrix(case, kernel):
    y_hat, right, given = case.data(outputs=2)
    y_hat.requires_grad_()
    fast = case.build(kernel=kernel)(y_hat, *case.arguments(right, given))
    slow = case.definition(kernel(y_hat), right, given)
    torch.testing.assert_close(fast, slow, atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(
        torch.autograd.grad(fast, y_hat)[0], torch.autograd.grad(slow, y_hat)[0], atol=1e-10, rtol=1e-7
    )


@each(CASES)
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear()], ids=repr)
@pytest.mark.parametrize("outputs", [1, 2, 6])
def test_gradient_of_a_batch_passes_gradcheck(case, kernel, outputs):
    y_hat, right, given = case.data(n=12, outputs=outputs)
    operator = case.build(kernel=kernel).prepare(*case.arguments(right, given))
    rows = torch.tensor([7, 2, 3, 11, 0])
    assert gradcheck(lambda batch: operator(batch, rows=rows), y_hat[rows].clone().requires_grad_())


@each(CASES)
def test_operator_is_symmetric_and_positive_semi_definite(case):
    _, right, given = case.data(n=40)
    matrix = case.build().prepare(*case.arguments(right, given)).matrix()
    torch.testing.assert_close(matrix, matrix.T, atol=1e-14, rtol=1e-10)
    values = torch.linalg.eigvalsh(matrix)
    assert values[-1] > 0
    assert values[0] > -1e-12 * values[-1]


@each(CASES)
def test_value_does_not_depend_on_the_order_of_rows(case):
    y_hat, right, given = case.data()
    order = torch.randperm(len(y_hat))
    penalty = case.build()
    first = penalty(y_hat, *case.arguments(right, given))
    second = penalty(y_hat[order], *case.arguments(right[order], given[order]))
    torch.testing.assert_close(first, second, atol=1e-14, rtol=1e-9)


@each(CASES)
def test_value_does_not_depend_on_a_shift_of_the_inputs(case):
    y_hat, right, given = case.data()
    penalty = case.build()
    first = penalty(y_hat, *case.arguments(right, given))
    second = penalty(y_hat + 5, *case.arguments(right - 3, given + 8))
    torch.testing.assert_close(first, second, atol=1e-12, rtol=1e-8)


@each(CASES)
def test_constant_prediction_has_the_floor_as_value_and_no_gradient(case):
    _, right, given = case.data()
    operator = case.build().prepare(*case.arguments(right, given))
    constant = torch.full((24, 1), 0.7, dtype=torch.float64, requires_grad=True)
    value = operator(constant)
    (gradient,) = torch.autograd.grad(value, constant)
    assert gradient.abs().max() < 1e-15
    assert value.item() == pytest.approx(operator.matrix().sum().item(), abs=1e-14)
    assert value.item() == pytest.approx(operator.floor, abs=1e-14)
    if case.centres:
        assert abs(operator.floor) < 1e-15
    else:
        assert operator.floor > 1e-6


@each(CONDITIONAL)
@pytest.mark.parametrize("exact_rows", [None, 0], ids=["exact", "low-rank"])
def test_centring_removes_the_floor_and_is_c_q_c(case, exact_rows):
    _, right, given = case.data()
    plain = case.build(exact_rows=exact_rows).prepare(right, given)
    centred = case.build(exact_rows=exact_rows, centre=True).prepare(right, given)
    n = plain.n_rows
    projection = torch.eye(n, dtype=torch.float64) - 1 / n
    torch.testing.assert_close(centred.matrix(), projection @ plain.matrix() @ projection, atol=1e-15, rtol=1e-9)
    assert abs(centred.floor) < 1e-12 * plain.floor + 1e-16


@each(CASES)
def test_dependence_has_a_larger_value_than_independence(case):
    n = 200
    generator = torch.Generator().manual_seed(3)

    def noise():
        return torch.rand(n, 1, generator=generator, dtype=torch.float64)

    given, right = noise(), noise()
    if case.discrete:
        given, right = (given * 2).floor(), (right * 2).floor()
    arguments = case.arguments(right, given)
    penalty = case.build()
    assert penalty(0.5 * given + 0.5 * right, *arguments) > 3 * penalty(0.5 * given + 0.5 * noise(), *arguments)


@each(CASES)
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear(), Laplace(0.3)], ids=repr)
def test_batch_estimate_is_unbiased_over_all_batches(case, kernel):
    y_hat, right, given = case.data(n=7)
    operator = case.build(kernel=kernel).prepare(*case.arguments(right, given))
    batches = torch.combinations(torch.arange(7), 3)
    estimates = torch.stack([operator(y_hat[rows], rows=rows) for rows in batches])
    torch.testing.assert_close(estimates.mean(), operator(y_hat), atol=1e-14, rtol=1e-9)
    assert estimates.std() > 0


@each(CASES)
@pytest.mark.parametrize("exact_rows", [None, 0], ids=["exact", "low-rank"])
def test_prepared_on_chunks_equals_prepared_at_once(case, exact_rows):
    _, right, given = case.data(n=30)
    penalty = case.build(exact_rows=exact_rows)
    whole = penalty.prepare(*case.arguments(right, given))
    pieces = [(right[a:b], given[a:b] if case.given else None) for a, b in [(0, 4), (4, 21), (21, 30)]]
    chunked = penalty.prepare_chunks(pieces)
    torch.testing.assert_close(chunked.matrix(), whole.matrix(), atol=1e-14, rtol=1e-9)


@each(GRAM_CASES)
@pytest.mark.parametrize("features", [Nystroem, RandomFourier])
def test_low_rank_converges_to_exact_as_features_grow(case, features):
    _, right, given = case.data(n=60)
    exact = case.build(exact_rows=None).prepare(*case.arguments(right, given))
    assert exact.exact
    errors = []
    for size in (4, 16, 60) if features is Nystroem else (32, 128, 1024):
        low_rank = case.build(exact_rows=0, features=features(n_features=size)).prepare(*case.arguments(right, given))
        assert not low_rank.exact
        errors.append(((low_rank.matrix() - exact.matrix()).norm() / exact.matrix().norm()).item())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < (1e-6 if features is Nystroem else 0.15)


@each(CASES)
@pytest.mark.parametrize("exact_rows", [None, 0], ids=["exact", "low-rank"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("trouble", ["constant columns", "duplicated rows", "two rows", "around 1e8", "constant all"])
def test_nothing_turns_into_nan(case, exact_rows, dtype, trouble):
    y_hat, right, given = case.data(n=2 if trouble == "two rows" else 20, dtype=dtype, outputs=2)
    if trouble == "constant columns":
        right, given = torch.ones_like(right), torch.zeros_like(given)
    elif trouble == "duplicated rows":
        y_hat, right, given = (part[:5].repeat(4, 1) for part in (y_hat, right, given))
    elif trouble == "around 1e8":
        y_hat, right, given = (1e8 * (1 + part) for part in (y_hat, right, given))
    elif trouble == "constant all":
        y_hat, right, given = (torch.ones_like(part) for part in (y_hat, right, given))
    y_hat.requires_grad_()
    median = Gaussian("median")
    settings = {"kernel": median, "right_kernel": median, "given_kernel": median, "exact_rows": exact_rows}
    for ridge in (RIDGE, "loo", 0.0):
        if not case.given or case.discrete:
            settings = {"kernel": median, "right_kernel": median, "exact_rows": exact_rows}
        else:
            settings["ridge"] = ridge
        value = case.build(**settings).for_outcome(y_hat.detach())(y_hat, *case.arguments(right, given))
        (gradient,) = torch.autograd.grad(value, y_hat)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()
        assert value > -1e-6


@each(CASES)
def test_single_precision_agrees_with_double(case):
    y_hat, right, given = case.data()
    operator = case.build().prepare(*case.arguments(right, given))
    single = case.build().prepare(*case.arguments(right.float(), given.float()))
    assert single.matrix().dtype == torch.float32
    assert single(y_hat.float()).dtype == torch.float32
    torch.testing.assert_close(single(y_hat.float()).double(), operator(y_hat), atol=1e-7, rtol=1e-4)


@each(CASES)
def test_half_precision_predictions_are_evaluated_in_single(case):
    y_hat, right, given = case.data()
    operator = case.build().prepare(*case.arguments(right, given))
    rounded = y_hat.bfloat16()
    assert operator(rounded).dtype == torch.float32
    torch.testing.assert_close(operator(rounded).double(), operator(rounded.double()), atol=1e-6, rtol=1e-4)


@each(GRAM_CASES)
def test_mixed_columns_go_through_a_product_kernel(case):
    y_hat, right, given = case.data()
    right[:, 1] = (right[:, 1] * 3).floor()
    mixed = Product(Gaussian(R_SCALE, columns=[0]), Categorical(columns=[1]))
    settings = {"right_kernel": mixed, "exact_rows": None}
    exact = case.build(**settings).prepare(*case.arguments(right, given))
    codes = (right[:, 1:] == right[:, 1:].T).double()
    by_hand = naive.gaussian(right[:, :1], R_SCALE) * codes
    k_y = naive.gaussian(y_hat, Y_SCALE)
    if case.given:
        definition = {"HSCIC": naive.hscic, "ResidualHSCIC": naive.residual_hscic, "CIRCE": naive.circe}[case.name]
        expected = definition(k_y, by_hand, naive.gaussian(given, S_SCALE), RIDGE)
    else:
        expected = naive.hsic(k_y, by_hand)
    torch.testing.assert_close(exact(y_hat), expected, atol=1e-12, rtol=1e-9)


@pytest.mark.gpu
@each(CASES)
@pytest.mark.parametrize("outputs", [1, 3, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_cuda_agrees_with_cpu(case, outputs, dtype):
    y_hat, right, given = case.data(n=300, dtype=dtype, outputs=outputs)
    rows = torch.randperm(300)[:131]
    results = []
    for device in ("cpu", "cuda"):
        batch = y_hat[rows].to(device).requires_grad_()
        operator = case.build().prepare(*case.arguments(right.to(device), given.to(device)))
        value = operator(batch, rows=rows.to(device))
        results.append((value.detach().cpu(), torch.autograd.grad(value, batch)[0].cpu()))
    tolerance = {"atol": 1e-6, "rtol": 1e-4} if dtype == torch.float32 else {"atol": 1e-12, "rtol": 1e-8}
    torch.testing.assert_close(results[0][0], results[1][0], **tolerance)
    torch.testing.assert_close(results[0][1], results[1][1], **tolerance)
