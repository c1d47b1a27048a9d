"""Values that stand for the law of what is protected."""

import numpy as np
import pandas as pd
import pytest

from ciplearn.repairing.ratio import Levels


def people(n=2000):
    draw = np.random.default_rng(0)
    sex = draw.choice(["f", "m"], n, p=[0.3, 0.7])
    return pd.DataFrame({"age": np.where(sex == "f", draw.normal(30, 5, n), draw.normal(60, 5, n)), "sex": sex})


def test_a_number_beside_a_label_is_shown_by_quantiles_within_each_label():
    table = people()
    levels = Levels.of(table, np.random.default_rng(0))
    assert not levels.listed
    assert levels.shares.sum() == pytest.approx(1)
    for label, rows in table.groupby("sex"):
        here = (levels.values["sex"] == label).to_numpy()
        assert levels.shares[here].sum() == pytest.approx(len(rows) / len(table))
        mean = np.average(levels.values["age"][here], weights=levels.shares[here])
        assert mean == pytest.approx(rows["age"].mean(), abs=0.2)


def test_some_of_the_values_keep_the_shares_of_the_labels_in_proportion():
    levels = Levels.of(people(), np.random.default_rng(0))
    few = levels.some(8)
    assert len(few) == 8
    assert few.shares.sum() == pytest.approx(1)
    assert few.shares[(few.values["sex"] == "m").to_numpy()].sum() == pytest.approx(0.7, abs=0.03)


def test_several_numbers_are_drawn_together():
    table = people().assign(height=np.arange(2000.0))
    levels = Levels.of(table, np.random.default_rng(0))
    drawn = levels.values.merge(table, how="left", indicator=True)
    assert (drawn["_merge"] == "both").all()
