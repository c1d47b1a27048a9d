"""A row has the same digest however a file writes it; a copy is told from a row that agrees by chance."""

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.row_digests import copy_groups, row_digests

ALIKE = [
    (["1", "2"], ["1.0", "02"]),
    (["a", " b "], [" a", "b"]),
    (["-0", "+3"], ["0.00", "3."]),
    ([True, False], ["True", "False"]),
    ([0.1, -0.0], np.array([0.1, 0.0], dtype="float32")),
    ([1, 2], [1.0, 2.0]),
    ([1, None], [1.0, np.nan]),
    (["9007199254740993", "x"], ["9007199254740993.0", "x"]),
]
DIFFERENT = [("1", "2"), ("1", "-1"), ("1", "10"), ("1", "0.1"), ("9007199254740993", "9007199254740992"), (1.0, 1.001)]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_values_that_are_understood_alike_have_one_digest(first, second):
    tables = [pd.DataFrame({"c": values, "d": 1.5}) for values in (first, second)]
    assert row_digests(tables[0], ["c", "d"]).tolist() == row_digests(tables[1], ["c", "d"]).tolist()


@pytest.mark.parametrize("pair", DIFFERENT)
def test_other_values_have_other_digests(pair):
    assert len(set(row_digests(pd.DataFrame({"c": pair}), ["c"]))) == 2


def test_a_value_in_another_column_is_another_row():
    swapped = pd.DataFrame({"c": ["u", "v"], "d": ["v", "u"]})
    assert len(set(row_digests(swapped, ["c", "d"]))) == 2


def naive_groups(table, numbers):
    """The definition, row by row."""
    rows = [tuple(row) for row in table.to_numpy()]
    different = list(dict.fromkeys(rows))

    values = [[row[place] for row in different] for place in range(table.shape[1])]
    once = [sum(one.count(value) == 1 for value in one) for one in values]
    fine = [place for place in numbers if once[place] > 0.9 * len(different)]

    def is_distinctive(row):
        if len(different) < 20:
            return False
        others = [other for other in different if other != row]
        rare = any(all(other[place] != row[place] for other in others) for place in fine)
        near = any(sum(a != b for a, b in zip(row, other, strict=True)) == 1 for other in others)
        return rare or not near

    return [rows.index(row) if is_distinctive(row) else place for place, row in enumerate(rows)]


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 60))
    levels = [*rng.integers(2, 40, 2), 2 if seed % 2 else 20]
    levels[0] = 5000 if seed % 3 else levels[0]
    table = pd.DataFrame({f"c{place}": rng.integers(0, count, n) for place, count in enumerate(levels)})
    table["c2"] = table["c2"].map(lambda code: f"level {code}")
    table = pd.concat([table, table.sample(10, random_state=seed, replace=True)], ignore_index=True)
    assert copy_groups(table).tolist() == naive_groups(table, [0, 1])
