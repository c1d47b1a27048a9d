import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciplearn.evaluation.scores import Unit, decimal, percent, short


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.12345, "0.123"),
        (1e-5, "1e-5"),
        (12345, "12\u202f345"),
        (-2.5e-7, "-2.5e-7"),
        (3.0, "3"),
        (1e9, "1e9"),
        (float("nan"), "–"),
    ],
)
def test_numbers_are_written_short(value, expected):
    assert short(value) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "0 %"), (1e-5, "<0.1 %"), (0.00051, "0.1 %"), (0.1234, "12.3 %"), (0.99999, ">99.9 %"), (1, "100 %")],
)
def test_shares_are_never_rounded_to_none_or_all(share, expected):
    assert percent(share) == expected
    assert percent(float("nan")) == percent(None) == "–"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0"), (1e-7, "<0.001"), (-1e-7, ">−0.001"), (-0.5, "−0.500"), (1234.5, "1\u202f234.500")],
)
def test_decimals_have_no_exponent(value, expected):
    assert decimal(value) == expected


def test_probabilities_move_by_points_and_others_in_the_unit_of_the_outcome():
    points = Unit(probability=True)
    assert points.amount(0.0312, signed=True) == "+3.1 points"
    assert points.amount(1e-5, signed=True) == "<0.1 points"
    assert points.between(-0.01, 0.02) == "−1.0 to 2.0"
    assert points.level(0.25) == "25.0 %"
    pounds = Unit(probability=False, scale=12_000.0)
    assert pounds.amount(-1234.4) == "−1\u202f234"
    assert Unit(probability=False, scale=0.2).amount(0.01234) == "0.0123"
    assert Unit(probability=False, scale=3e-7).amount(1.5e-7) == "1.500 × 10⁻⁷"


@given(st.floats(1e-9, 1e12), st.floats(-1e9, 1e9))
def test_amounts_never_have_an_exponent_and_never_vanish(scale, value):
    said = Unit(probability=False, scale=scale).amount(value)
    assert "e" not in said
    assert (said == "0") == (value == 0)
