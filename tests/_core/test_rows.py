"""Rows in blocks; the same digest however a file writes a row; copies; random states."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import check_random_state

from ciplearn._core.errors import InputTypeError
from ciplearn._core.rows import (
    RARE,
    alike,
    as_generator,
    as_seed,
    chance_repeats,
    column_digests,
    copy_groups,
    row_blocks,
    row_digests,
)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 48, 49, 64, 95, 1000])
def test_blocks_hold_every_row_once_in_order_and_none_is_small(n):
    blocks = row_blocks(n, 32)
    assert np.concatenate([np.arange(n)[block] for block in blocks]).tolist() == list(range(n))
    sizes = [block.stop - block.start for block in blocks]
    assert all(size == 32 for size in sizes[:-1])
    assert sizes[-1] == n or 16 <= sizes[-1] <= 48


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


def naive_repeats(table):
    """The definition, row by row."""
    rows = [tuple(row) for row in table.to_numpy()]
    different = list(dict.fromkeys(rows))

    def expected(row, place):
        others = [other for other in different if sum(a != b for a, b in zip(row, other, strict=True)) == 1]
        held = [other[place] for other in different]
        once, twice = (sum(held.count(value) == count for value in set(held)) for count in (1, 2))
        frequency = max(held.count(row[place]) - 1, min(1, 2 * twice / max(1, once))) / len(different)
        return frequency * sum(other[place] != row[place] for other in others)

    return [max(expected(row, place) for place in range(len(row))) if len(different) >= 20 else np.inf for row in rows]


@pytest.mark.parametrize("seed", range(12))
def test_what_chance_repeats_is_as_defined(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 60))
    table = pd.DataFrame({f"c{place}": rng.integers(0, count, n) for place, count in enumerate(rng.integers(2, 40, 3))})
    table["c2"] = table["c2"].map(lambda code: f"level {code}")
    table = pd.concat([table, table.sample(10, random_state=seed, replace=True)], ignore_index=True)
    found = chance_repeats(column_digests(table, list(table.columns)))
    assert found == pytest.approx(naive_repeats(table))


@pytest.mark.parametrize("levels", [(3, 3, 4), (2, 3, 20, 10), (6, 6, 6, 6, 6), (2, 10**6), (40, 40, 40)])
def test_what_chance_repeats_is_what_fresh_rows_bring(levels):
    rng = np.random.default_rng(0)
    n = 2000
    both = pd.DataFrame({f"c{place}": rng.integers(0, count, 2 * n) for place, count in enumerate(levels)})
    cells = column_digests(both, list(both.columns))
    first, fresh = cells[:n], cells[n:].sum(axis=1)
    totals, places = np.unique(first.sum(axis=1), return_index=True)
    brought = np.array([np.sum(fresh == total) for total in totals])
    expected = chance_repeats(first)[places]
    rare = expected < RARE
    assert brought[rare].sum() <= 2 * expected[rare].sum() + 3 * np.sqrt(expected[rare].sum()) + n / 500
    assert brought.sum() >= expected.sum() / 4


def copied(kind, n=300, times=5):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 90, n), "y": rng.integers(0, 2, n)})
    if kind == "amounts":
        table["amount"] = np.round(rng.lognormal(8, 1, n), 2)
    elif kind == "many":
        table = table.assign(**{f"c{place}": rng.integers(0, 6, n) for place in range(6)})
    return pd.concat([table] * times, ignore_index=True)


@pytest.mark.parametrize(("kind", "share"), [("amounts", 1.0), ("many", 0.99)])
def test_copies_are_found(kind, share):
    groups = copy_groups(copied(kind))
    assert np.mean(groups == np.arange(1500) % 300) >= share


def test_rows_that_agree_by_chance_are_no_copies():
    assert copy_groups(copied("few", times=1)).tolist() == list(range(300))
    assert copy_groups(pd.DataFrame({"x": [1, 2, 3] * 50, "y": [2, 4, 6] * 50})).tolist() == list(range(150))


def test_a_table_without_rows_or_columns_has_no_copies():
    assert copy_groups(pd.DataFrame({"a": []})).tolist() == []
    assert copy_groups(pd.DataFrame(index=range(3))).tolist() == [0, 1, 2]


KINDS = {
    "int": lambda: 7,
    "numpy int": lambda: np.int64(7),
    "large int": lambda: 2**40,
    "Generator": lambda: np.random.default_rng(7),
    "RandomState": lambda: np.random.RandomState(7),
}


@pytest.mark.parametrize("kind", KINDS)
def test_equal_states_give_equal_numbers(kind):
    first, second = (as_generator(KINDS[kind]()).random(5) for _ in range(2))
    assert (first == second).all()
    assert as_seed(KINDS[kind]()) == as_seed(KINDS[kind]())
    assert 0 <= as_seed(KINDS[kind]()) < 2**31


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_a_state_that_is_drawn_from_gives_other_numbers_the_next_time(kind):
    state = KINDS[kind]()
    assert as_generator(state).random() != as_generator(state).random()
    assert as_seed(state) != as_seed(state)


def test_none_is_fresh_each_time():
    assert as_generator(None).random() != as_generator(None).random()
    assert as_seed(None) != as_seed(None)


def test_numpys_global_state_is_neither_read_nor_changed():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the state that must stay
    for make in (*KINDS.values(), lambda: None):
        as_generator(make()).random()
        as_seed(make())
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_whole_numbers_seed_as_numpy_and_scikit_learn_do():
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_seed(3) == check_random_state(3).randint(2**31 - 1)


def test_a_generator_is_used_itself():
    state = np.random.default_rng(7)
    assert as_generator(state) is state


@pytest.mark.parametrize("bad", [-1, True, "a", 0.5])
@pytest.mark.parametrize("reader", [as_generator, as_seed])
def test_anything_else_is_refused_in_one_sentence(reader, bad):
    with pytest.raises(InputTypeError, match=r"^random_state must be None, a whole number .* got .*; pass"):
        reader(bad)


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_alike_are_those_of_one_kind_and_the_first_of_them_is_named(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 80))
    columns = [draw.integers(0, 3, n).astype(float), draw.choice(list("ab"), n), draw.integers(0, 2, (n, 2))]
    columns[0][draw.random(n) < 0.2] = np.nan
    first, kinds = alike(columns, n)
    rows = [tuple(map(str, row)) for row in zip(columns[0], columns[1], *columns[2].T, strict=True)]
    assert [rows[place] for place in first[kinds]] == rows
    assert len(first) == len(set(rows))
    assert all(rows.index(rows[place]) == place for place in first)


def test_no_rows_are_of_no_kind():
    assert [each.tolist() for each in alike([np.empty(0), np.empty((0, 2))], 0)] == [[], []]


def test_rows_without_columns_are_all_alike():
    assert [each.tolist() for each in alike([], 3)] == [[0], [0, 0, 0]]
