"""Categories are coded by their distinct values; every cell counts as if it had been read on its own."""

import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn.estimators.encoding import CategoryColumn, NumberColumn, TableEncoding


class Colour(enum.StrEnum):
    RED = "red"

    def __str__(self) -> str:
        return "Colour.RED"


def objects(*values):
    return pd.Series(values, dtype=object)


COLUMNS = {
    "text": pd.Series(["b", "a", "b", "c"]),
    "text with gaps": pd.Series(["b", None, "b", np.nan]),
    "python text": pd.Series(["b", pd.NA, "b", "a"], dtype=pd.StringDtype("python")),
    "text objects": objects("b", None, "b", np.nan, pd.NA, "nan", "None"),
    "bool beside int beside float": objects(True, 1, 1.0, "1", False, 0, 0.0, "True", None, np.nan),
    "float beside text": objects(3.0, "3", "3.0", -0.0, 0.0, 2.5, np.inf, np.nan),
    "numpy scalars": objects(np.int64(1), np.float32(1), np.float64(1), np.True_, 1, Decimal(1), Decimal("1.0")),
    "enum beside text": objects("red", Colour.RED, "Colour.RED"),
    "no instants": objects("a", pd.NaT, None, "a"),
    "tuples": objects((1, 2), (1, 2), (1.0, 2)),
    "lists": objects([1], [1], "[1]"),
    "bool": pd.Series([True, False, True]),
    "nullable bool": pd.Series([True, None, False, True], dtype="boolean"),
    "int": pd.Series([3, 1, 3], index=[7, 7, 7]),
    "nullable int": pd.Series([3, None, 2**53 + 1, 3], dtype="Int64"),
    "large int": pd.Series([2**53, 2**53 + 1, 2**53]),
    "float": pd.Series([3.0, -0.0, 0.0, 2.5, np.nan, np.inf]),
    "short float": pd.Series([3.0, -0.0, 0.1, np.nan], dtype=np.float32),
    "nullable short float": pd.Series([3.0, -0.0, 0.0, None], dtype="Float32"),
    "long float": pd.Series([3.0, -0.0, 0.0], dtype=np.longdouble),
    "category of text": pd.Series(["b", "a", None, "b"], dtype=pd.CategoricalDtype(["unused", "b", "a"])),
    "category of int": pd.Series([3, 1, 3]).astype("category"),
    "category of int with gaps": pd.Series([3, 2**53 + 1, None, 3], dtype=pd.CategoricalDtype([3, 2**53 + 1])),
    "category of float": pd.Series([3.0, 0.5, np.nan, -0.0]).astype("category"),
    "category of bool": pd.Series([True, None, False], dtype=object).astype("category"),
    "category of objects": pd.Series(pd.Categorical.from_codes([0, 1, -1, 2], categories=["1", 1, 2.0])),
    "many categories": pd.Series([f"level {i % 300}" for i in range(900)]).astype("category"),
    "empty text": pd.Series([], dtype="str"),
    "empty category": pd.Series([], dtype=pd.CategoricalDtype(["a"])),
    "empty objects": objects(),
    "gaps only": objects(None, np.nan),
}


def label(value):
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def labels_cell_by_cell(column):
    return ["\0missing" if gap else label(value) for value, gap in zip(column, column.isna(), strict=True)]


@pytest.mark.parametrize("kind", [kind for kind, column in COLUMNS.items() if not column.isna().all()])
def test_levels_are_those_of_the_cells(kind):
    column = COLUMNS[kind].rename("A")
    assert CategoryColumn.of(column).levels == tuple(sorted(set(labels_cell_by_cell(column))))


@pytest.mark.parametrize("kind", COLUMNS)
def test_codes_are_those_of_the_cells(kind):
    column = COLUMNS[kind].rename("A")
    cells = labels_cell_by_cell(column)
    # Every second level is known, so that both known and unknown ones occur.
    levels = tuple(sorted(set(cells)))[::2]
    known = {level: code for code, level in enumerate(levels)}
    expected = [known.get(cell, len(levels)) for cell in cells]
    coded = CategoryColumn("A", levels)
    assert coded.numbers(column).dtype == np.float64
    assert coded.numbers(column).tolist() == expected
    inputs = np.zeros((len(column), len(levels)), dtype=np.float32)
    coded.write_features(column, inputs)
    assert inputs.tolist() == [[float(code == place) for place in range(len(levels))] for code in expected]


def test_network_inputs_stand_side_by_side_in_single_precision():
    table = pd.DataFrame({"n": [0.1, 0.7, 1 / 3], "a": ["x", "new", "y"], "m": [1e-3, 5.0, 2.0]})
    columns = (NumberColumn("n", 0.1, 0.8, 0.2), CategoryColumn("a", ("x", "y")), NumberColumn("m", 0.0, 3.0, 1.0))
    inputs = TableEncoding(columns).features(table)
    scaled_n, scaled_m = ((table["n"] - 0.1) / (0.8 - 0.1)).to_numpy(), (table["m"] / 3).to_numpy()
    expected = np.stack([scaled_n, [1, 0, 0], [0, 0, 1], scaled_m], axis=1).astype(np.float32)
    assert inputs.dtype == torch.float32
    assert np.array_equal(inputs.numpy(), expected)
