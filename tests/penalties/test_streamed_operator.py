"""An operator from parts equals the one from all rows at once."""

import pytest
import torch

from ciplearn import CIRCE, HSCIC, HSIC, MMD, Gaussian, ResidualHSCIC
from ciplearn._core.errors import InputError
from tests.penalties.parts import N, parts_of, rows, value_and_gradient

B = 300


CRITERIA = {
    "residual": (ResidualHSCIC(kernel=Gaussian(0.5)), 1),
    "residual, many columns": (ResidualHSCIC(kernel=Gaussian(0.5), ridge=1e-3), 6),
    "centred": (ResidualHSCIC(kernel=Gaussian(0.5), centre=True), 1),
    "circe": (CIRCE(kernel=Gaussian(0.5)), 1),
    "hscic": (HSCIC(kernel=Gaussian(0.5), ridge=1e-3), 1),
    "hsic": (HSIC(kernel=Gaussian(0.5)), 1),
}


@pytest.mark.parametrize("name", CRITERIA)
def test_parts_give_the_operator_of_all_rows(name):
    penalty, columns = CRITERIA[name]
    right, given = rows(columns)
    if columns > 1:
        # In memory a row with two vectors keeps them in half the precision of the data.
        right, given = right.double(), given.double()
    whole = penalty.prepare(right, None if name == "hsic" else given)
    shown = torch.zeros(N, 0) if name == "hsic" else given
    streamed = penalty.prepare_parts(parts_of(right, shown, (1000, 1001, 3700)))
    assert streamed.n_rows == N
    assert streamed.relative_error == pytest.approx(whole.relative_error, abs=1e-6)
    index = torch.randperm(N, generator=torch.Generator().manual_seed(1))[:B]
    y_hat = (right + given)[index, :1].double()
    value, gradient = value_and_gradient(lambda y: whole(y, rows=index), y_hat)
    also = None if name == "hsic" else given[index]
    again, steps = value_and_gradient(lambda y: streamed(y, right[index], also), y_hat)
    assert again == pytest.approx(float(value), rel=1e-6)
    assert float((steps - gradient).norm() / gradient.norm()) < 1e-5


def test_parts_must_hold_two_rows():
    with pytest.raises(InputError, match="at least 2 rows"):
        HSIC().prepare_parts([])


def test_mmd_says_that_it_needs_all_rows():
    right, given = rows()
    with pytest.raises(InputError, match="MMD is prepared on rows in memory"):
        MMD().prepare_parts(parts_of(right, given, ()))


def test_value_of_many_rows_is_formed_strip_by_strip():
    right, given = rows(6)
    operator = ResidualHSCIC(kernel=Gaussian(0.5), ridge=1e-3).prepare(right, given)
    index = torch.randperm(N, generator=torch.Generator().manual_seed(1))[:2300]
    y_hat = (right + given)[index, :2].double()
    whole, _ = value_and_gradient(lambda y: operator(y, rows=index), y_hat)
    assert float(operator(y_hat, rows=index)) == pytest.approx(float(whole), rel=1e-6)
