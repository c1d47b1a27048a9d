import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciplearn._core.errors import InputError
from ciplearn.cli.expressions import Formula, read_law

NAMES = ("A", "u", "hours per week")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A + u", lambda a, u, h: a + u),
        ("exp(-A ** 2 / 2) * sin(2 * A) + 2 * u", lambda a, u, h: np.exp(-(a**2) / 2) * np.sin(2 * a) + 2 * u),
        ('p["hours per week"] % 7 - pi', lambda a, u, h: h % 7 - np.pi),
        ("where(A > 0, maximum(A, u), -1.5)", lambda a, u, h: np.where(a > 0, np.maximum(a, u), -1.5)),
        ("(u < 0.3) * A", lambda a, u, h: (u < 0.3) * a),
        (2, lambda a, u, h: 2),
    ],
)
def test_formula_is_what_it_says(text, expected):
    a, u, h = np.random.default_rng(0).normal(size=(3, 50))
    value = Formula.read(text, NAMES, "It")({"A": a, "u": u, "hours per week": h})
    np.testing.assert_allclose(value, expected(a, u, h))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "A.__class__",
        "(lambda: 1)()",
        "[x for x in A]",
        "eval('1')",
        "exec",
        "A if u else 1",
        "A[0]",
        "q['x']",
        "sin(x=1)",
        "f'{A}'",
        "A := 1",
        "1 < A < 2",
        "A +",
        "",
        "B",
        None,
        ["A"],
        "1j",
        "(" * 500 + "A" + ")" * 500,
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError):
        Formula.read(text, NAMES, "It")


@given(st.text(max_size=40))
def test_no_text_does_anything_but_read_or_be_refused(text):
    try:
        formula = Formula.read(text, NAMES, "It")
    except InputError:
        return
    assert formula.text == text


def test_laws():
    assert read_law(0, "It") == 0.0
    assert read_law("-1.5", "It") == -1.5
    assert read_law("normal(1, 2)", "It").mean() == 1
    assert read_law("uniform(-1, 3)", "It").support() == (-1, 3)
    assert read_law("bernoulli(0.25)", "It").mean() == 0.25
    for wrong in ("cauchyish(1)", "normal(A)", "normal(loc=1)", "normal(1, 2, 3, 4, 5)", "sin(1) + normal(0, 1)", "A"):
        with pytest.raises(InputError):
            read_law(wrong, "It")
