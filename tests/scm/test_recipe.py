import numpy as np
import pandas as pd
import pytest

from ciplearn._core.errors import InputError
from ciplearn.scm.kinds import Categories, Scalar, Vector
from ciplearn.scm.mechanism import Design
from ciplearn.scm.networks import Scaler

KINDS = {"x": Scalar(), "t": Categories(["low", "mid", "high"]), "v": Vector(2), "u": Categories([1, "1", 2.5])}
DESIGN = Design(("x", "t", "v", "u"), KINDS)


@pytest.fixture(scope="module")
def values():
    draw = np.random.default_rng(0)
    labels = {node: KINDS[node].labels[draw.integers(3, size=50)] for node in ("t", "u")}
    return {"x": draw.normal(size=50) * 1e6, "v": draw.normal(size=(50, 2)), **labels}


def matrix_cell_by_cell(values):
    rows = []
    for row in range(50):
        t = [float(values["t"][row] == level) for level in KINDS["t"].levels[1:]]
        u = [float(values["u"][row] == level) for level in KINDS["u"].levels[1:]]
        rows.append([values["x"][row], *t, *values["v"][row], *u])
    return np.array(rows)


def test_matrix_has_numbers_as_they_are_and_a_column_for_each_level_but_the_first(values):
    assert DESIGN.width == 7
    assert np.array_equal(DESIGN(values), matrix_cell_by_cell(values))


def test_standardised_rows_are_to_the_last_bit_those_of_the_matrix(values):
    matrix = matrix_cell_by_cell(values)
    scaler = Scaler.of(matrix)
    assert np.array_equal(scaler.inputs(DESIGN, DESIGN.parts(values)).numpy(), scaler.tensor(matrix).numpy())
    some = [part[10:20] for part in DESIGN.parts(values)]
    assert np.array_equal(scaler.inputs(DESIGN, some).numpy(), scaler.tensor(matrix[10:20]).numpy())


def test_no_rows_have_a_matrix():
    empty = {node: np.zeros((0, 2)) if node == "v" else np.zeros(0, dtype=object) for node in DESIGN.nodes}
    assert DESIGN(empty).shape == (0, 7)


@pytest.mark.parametrize(
    "values",
    [
        ["mid", "low", "mid"],
        np.array(["mid", "low"]),
        pd.Series(["high", "low"]),
        pd.Series(["high", "low"], dtype="category"),
        pd.Series(["high", "low"], dtype="string"),
        [np.str_("mid")],
        [],
    ],
)
def test_codes_are_places_among_the_levels_however_the_text_is_kept(values):
    levels = KINDS["t"].levels
    assert KINDS["t"].codes(values, "t").tolist() == [levels.index(value) for value in values]


@pytest.mark.parametrize("bad", [None, np.nan, 1, True, "Mid", b"mid"])
def test_label_that_is_none_of_the_levels_is_named(bad):
    with pytest.raises(InputError, match=r"t cannot be .* use one of 'low', 'mid', 'high'"):
        KINDS["t"].codes(["low", bad], "t")
