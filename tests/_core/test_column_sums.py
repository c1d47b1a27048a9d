"""What columns hold, block by block, is what they hold as a whole."""

import itertools

import numpy as np
import pandas as pd
import pytest

from ciplearn._core.column_sums import TableSums
from ciplearn._core.columns import MISSING
from ciplearn._core.encoding import column_of
from ciplearn._core.errors import InputError


def table(n=4000):
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "amount": generator.normal(size=n),
            "code": generator.integers(0, 3, n),
            "text": generator.choice(["red", "green", " blue "], n),
            "written": generator.integers(0, 50, n).astype(str),
        }
    )


def summed(frame, cuts, **options):
    total = TableSums(frame.columns, **options)
    ends = [0, *cuts, len(frame)]
    for a, b in itertools.pairwise(ends):
        part = TableSums(frame.columns, **options)
        part.update(frame.iloc[a:b], where=f"file {a}")
        total.merge(part)
    return total.finalise()


def test_encodings_are_those_of_the_whole_table():
    frame = table()
    found = summed(frame, (1, 1500))
    for name in ("amount", "code", "text"):
        whole, own = column_of(frame[name]), found[name].encoding()
        assert own.kind == whole.kind
        if own.kind == "number":
            assert (own.low, own.high) == (whole.low, whole.high)
        else:
            assert own.levels == whole.levels == ("blue", "green", "red")
    assert found["code"].values == {0.0, 1.0, 2.0}
    assert found["written"].kind == "number"


def test_medians_are_near_those_of_the_whole_table():
    frame = table()
    frame.loc[:2000, "amount"] += 5
    found = summed(frame, (700, 2500), medians=True)["amount"]
    below = (frame["amount"] < found.median()).mean()
    assert abs(below - 0.5) < 0.005


def test_labels_in_one_block_make_a_category_and_say_where():
    frame = table().astype({"code": str})
    frame.loc[3000, "code"] = "none"
    found = summed(frame, (1500,))["code"]
    assert found.kind == "category"
    assert found.stray == ("none", "file 1500")
    assert found.encoding().levels == ("0", "1", "2", "none")


def test_gaps_are_counted_and_may_be_a_level():
    frame = table()
    frame.loc[:9, "text"] = None
    found = summed(frame, (5,))["text"]
    assert found.known == len(frame) - 10
    assert MISSING in found.encoding(with_missing=True).levels
    assert MISSING not in found.encoding().levels


def test_names_of_people_are_no_category():
    frame = pd.DataFrame({"name": [f"p{place}" for place in range(3000)]})
    with pytest.raises(InputError, match="looks like free text"):
        summed(frame, (1000,))["name"].encoding()
