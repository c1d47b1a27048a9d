"""Values, columns and tables that nobody would pass with care, for hypothesis to draw from."""

import datetime
import decimal

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st

NAMES = ["S", "A", "L", "Y", "", " ", "a,b", "Ŷ", "p['A']", "\x1b[31m", "<script>", "A\nB", "u", "None", "x" * 300]

NUMBERS = [-1, 0, 1, 2, 3, -1.5, 0.3, 1e-320, 1e300, 10**19, 10**400, float("nan"), float("inf"), True, 2j]
OBJECTS = [
    None,
    [],
    (),
    {},
    set(),
    b"bytes",
    ["A"],
    ["A", "A"],
    ["A", "L"],
    [["A"]],
    [1, 2],
    [None],
    {"A": 1},
    {"A": "x"},
    {"Y": 0, "A": 1},
    {1: 2},
    {"A": [1, 2]},
    np.zeros(0),
    np.zeros((3, 2)),
    torch.ones(3),
    pd.Series([1, 2]),
    datetime.date(2020, 1, 1),
    decimal.Decimal("0.1"),
    object(),
    object,
    len,
    np.float32(0.5),
    np.int64(1),
    np.array(3.0),
    np.array("A"),
    np.array(["A", "L"]),
    pd.NA,
]
numbers, objects = st.sampled_from(NUMBERS), st.sampled_from(OBJECTS)
words = st.one_of(st.sampled_from(NAMES), st.text(max_size=5))
anything = st.one_of(numbers, words, objects)

# What a column may be replaced by, as functions of its length.
COLUMNS = {
    "constant": lambda n: [1.0] * n,
    "missing": lambda n: [None] * n,
    "nan": lambda n: [float("nan")] * n,
    "one missing": lambda n: [None, *range(n)][:n],
    "infinite": lambda n: [float("inf"), *range(n)][:n],
    "huge": lambda n: [1e300 * (-1) ** place for place in range(n)],
    "tiny": lambda n: [1e-310 * place for place in range(n)],
    "far off": lambda n: [1e15 + place for place in range(n)],
    "beyond doubles": lambda n: [2**53 + place for place in range(n)],
    "beyond the machine": lambda n: [10**30 + place for place in range(n)],
    "words": lambda n: [("a", "b", "c")[place % 3] for place in range(n)],
    "names": lambda n: [f"name {place}" for place in range(n)],
    "booleans": lambda n: [place % 2 == 0 for place in range(n)],
    "codes": lambda n: pd.Categorical([place % 3 for place in range(n)]),
    "unused level": lambda n: pd.Categorical(["a"] * n, categories=["a", "b"]),
    "once": lambda n: ["rare", *["often", "also"] * n][:n],
    "dates": lambda n: pd.date_range("2020", periods=n),
    "durations": lambda n: pd.to_timedelta(range(n), unit="D"),
    "lists": lambda n: [[place] for place in range(n)],
    "dictionaries": lambda n: [{"x": place} for place in range(n)],
    "bytes": lambda n: [b"a"] * n,
    "mixed": lambda n: [(1, "a", None, 2.5)[place % 4] for place in range(n)],
    "decimals": lambda n: [decimal.Decimal(place) for place in range(n)],
    "complex": lambda n: [place + 1j for place in range(n)],
    "nullable": lambda n: pd.array([None, *range(n)][:n], dtype="Int64"),
    "strings": lambda n: pd.array([str(place) for place in range(n)], dtype="string"),
    "single precision": lambda n: np.linspace(0, 1, n).astype("float32"),
    "whole": lambda n: np.arange(n) % 4,
    "empty text": lambda n: [""] * n,
    "sparse": lambda n: pd.arrays.SparseArray(np.arange(n) % 2),
    "intervals": lambda n: pd.interval_range(0, n, periods=n) if n else [],
}


@st.composite
def columns(draw, length):
    return COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))](length)


@st.composite
def tables(draw, good):
    """A table like a good one that is cut, filled, renamed or doubled; sometimes no table at all."""
    if draw(st.integers(0, 15)) == 0:
        return draw(anything)
    table = good.copy()
    for _ in range(draw(st.integers(0, 3))):
        change = draw(st.sampled_from(["rows", "fill", "fill", "fill", "rename", "drop", "double", "index", "scale"]))
        place = draw(st.integers(0, max(0, table.shape[1] - 1)))
        if change == "rows":
            table = table.head(draw(st.sampled_from([0, 1, 2, 3, 10])))
        elif change == "fill" and table.shape[1]:
            kept = [table.iloc[:, other] for other in range(table.shape[1])]
            kept[place] = pd.Series(draw(columns(len(table))), index=table.index, name=table.columns[place])
            table = pd.concat(kept, axis=1)
        elif change == "rename":
            fresh = list(table.columns)
            fresh[place : place + 1] = [draw(st.one_of(words, st.sampled_from([0, 1, None, ("A", "B"), 1.5])))]
            table = table.set_axis(pd.Index(fresh, tupleize_cols=False), axis=1) if table.shape[1] else table
        elif change == "drop" and table.shape[1]:
            table = table.iloc[:, [other for other in range(table.shape[1]) if other != place]]
        elif change == "double":
            table = pd.concat([table, table.iloc[:, place : place + 1]], axis=1)
        elif change == "index":
            table = table.set_axis(draw(st.sampled_from([["i"] * len(table), [1.5] * len(table)])))
        elif change == "scale":
            factor = draw(st.sampled_from([0, -1, 1e-200, 1e30, 1e160]))
            kinds = [
                kind for kind in table.select_dtypes("number", exclude="timedelta").columns if isinstance(kind, str)
            ]
            if table.columns.is_unique:
                table = table.assign(**{name: table[name] * factor for name in kinds})
    return table


def spoilt(good):
    """Iterate over tables like a good one with one thing wrong, and over what is wrong."""
    columns = [good.iloc[:, place] for place in range(good.shape[1])]

    def instead(place, *others):
        return pd.concat([*columns[:place], *others, *columns[place + 1 :]], axis=1)

    for place, column in enumerate(columns):
        for what, fill in COLUMNS.items():
            yield f"{what} in {place}", instead(place, pd.Series(fill(len(good)), index=good.index, name=column.name))
        yield f"without {place}", instead(place)
        yield f"{place} twice", instead(place, column, column)
        for name in ("", "A\nB", 0, None, ("A", "B"), 1.5, "Y"):
            names = [name if other == place else known for other, known in enumerate(good.columns)]
            yield f"{place} named {name!r}", good.set_axis(pd.Index(names, tupleize_cols=False), axis=1)
    for count in (0, 1, 2, 3, 10):
        yield f"{count} rows", good.head(count)
    for factor in (0, -1, 1e-200, 1e30, 1e160):
        yield f"times {factor}", good.assign(**{name: good[name] * factor for name in good.select_dtypes("number")})
    yield "one index", good.set_axis(["i"] * len(good))
