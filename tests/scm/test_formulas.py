import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciplearn._core.errors import InputError
from ciplearn.scm.scm_file import ParsedFormula, read_law

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
    value = ParsedFormula.read(text, NAMES, "It")({"A": a, "u": u, "hours per week": h})
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
        "9**9**9",
        "2**(2**34)",
        "10**400",
        "1" + "0" * 400,
        "1" + "0" * 5000,
        "'x'*10**10",
        "-'x'",
        "A < 'x'",
        "1/0",
        "0/0",
        "sin()",
        "sin('a')",
        "sin(A, A)",
        "maximum(A)",
        "where(u > 0, u)",
        "where(u > 0, 'a', 'b') + 1",
        "(-8)**0.5",
        "1e999",
        " + ".join(["A"] * 2000),
        "-" * 3000 + "A",
        "A" * 20_000,
        "0." + "1" * 20_000,
        "u" + "(u" * 90 + ")" * 90,
        "(" * 500 + "A" + ")" * 500,
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError):
        ParsedFormula.read(text, NAMES, "It")


@given(st.text(max_size=40))
def test_no_text_does_anything_but_read_or_be_refused(text):
    try:
        formula = ParsedFormula.read(text, NAMES, "It")
    except InputError:
        return
    assert formula.text == text
    try:
        formula({name: np.array([0.5, -1.5]) for name in NAMES})
    except InputError:
        return


@given(st.text(alphabet="Au()*/+-%<>=!0123456789.,' \"sincoexpwhr[]", max_size=60))
def test_no_text_of_signs_that_formulas_have_ends_in_anything_but_a_value_or_a_refusal(text):
    value = law = None
    with contextlib.suppress(InputError):
        value = ParsedFormula.read(text, NAMES, "It")({name: np.ones(2) for name in NAMES})
    with contextlib.suppress(InputError):
        law = read_law(text, "It")
    assert value is None or np.shape(value) in ((), (2,))
    assert law is None or isinstance(law, float) or hasattr(law, "rvs")


def test_arithmetic_is_in_floats_and_leaves_what_it_reads_alone():
    a = np.array([1, 2, 3])
    value = ParsedFormula.read("A ** 40 * 2 - A % 2", ("A",), "It")({"A": a})
    np.testing.assert_allclose(value, a.astype(float) ** 40 * 2 - a % 2)
    assert a.tolist() == [1, 2, 3]
    assert ParsedFormula.read("(A > 1) - (A > 2)", ("A",), "It")({"A": a}).tolist() == [0, 1, 0]


def test_text_may_be_compared_and_chosen():
    job = np.array(["cook", "nurse", "cook"], dtype=object)
    assert ParsedFormula.read("where(job == 'cook', 2, 1)", ("job",), "It")({"job": job}).tolist() == [2, 1, 2]
    chosen = ParsedFormula.read("where(u > 0, 'cook', 'nurse')", ("u",), "It")({"u": np.array([1.0, -1.0])})
    assert chosen.tolist() == ["cook", "nurse"]
    with pytest.raises(InputError, match="It cannot be computed"):
        ParsedFormula.read("job + 1", ("job",), "It")({"job": job})


@pytest.mark.parametrize("text", ["log(A)", "1 / A", "(A - 2) ** 0.5", "exp(A * 1000)"])
def test_value_that_is_not_finite_is_told_with_its_formula(text):
    with pytest.raises(InputError, match=r"It gives .* of 3 rows"):
        ParsedFormula.read(text, ("A",), "It")({"A": np.array([0.0, 1.0, 2.0])})


def test_laws():
    assert read_law(0, "It") == 0.0
    assert read_law("-1.5", "It") == -1.5
    assert read_law("normal(1, 2)", "It").mean() == 1
    assert read_law("uniform(-1, 3)", "It").support() == (-1, 3)
    assert read_law("bernoulli(0.25)", "It").mean() == 0.25
    assert read_law("logistic", "It").mean() == 0
    assert read_law("normal(0, sqrt(4))", "It").std() == 2
    impossible = ["normal(0, -1)", "normal(0, 0)", "uniform(1, 0)", "uniform(1, 1)", "bernoulli(2)", "exponential(0)"]
    no_numbers = ["'a'", "normal('a', 1)", "normal(0, 10**400)", "normal(A)", "A"]
    no_laws = ["cauchyish(1)", "normal(loc=1)", "normal(1, 2, 3, 4, 5)", "sin(1) + normal(0, 1)", "bernoulli()"]
    for wrong in (*impossible, *no_numbers, *no_laws):
        with pytest.raises(InputError):
            read_law(wrong, "It")
