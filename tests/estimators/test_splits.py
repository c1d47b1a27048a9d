"""Copies of a row stay on one side of every split; rows that agree by chance do not have to."""

import numpy as np
import pandas as pd
import pytest

from ciplearn.estimators.criteria import judging_splits, split_rows


def numbers(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 2, n)}), rng.normal(size=n)


def five_times(X, y):
    return pd.concat([X] * 5, ignore_index=True), np.tile(y, 5)


@pytest.mark.parametrize("folds", [1, 4])
@pytest.mark.parametrize("kind", [pd.DataFrame, np.asarray, lambda X: X.astype({"b": str})])
def test_copies_are_on_one_side(folds, kind):
    X, y = five_times(*numbers())
    with pytest.warns(UserWarning, match="160 of 200 rows are copies of others; copies stay on one side"):
        splits = judging_splits(kind(X), y, 0.25, 0, None, folds, 5)
    assert len(splits) == folds
    for train, judge in splits:
        assert not set(train % 40) & set(judge % 40)
        assert sorted([*train, *judge]) == list(range(200))
        assert len(judge) == 50


@pytest.mark.parametrize("folds", [1, 4])
def test_copies_of_labelled_rows_are_on_one_side_in_equal_parts_of_each_label(folds):
    X, _ = numbers()
    X, y = five_times(X, np.arange(40) % 2)
    with pytest.warns(UserWarning, match="copies"):
        splits = judging_splits(X, y, 0.25, 0, y, folds, 5)
    for train, judge in splits:
        assert not set(train % 40) & set(judge % 40)
        assert y[judge].mean() == pytest.approx(0.5, abs=0.11)


def test_without_copies_rows_are_split_as_scikit_learn_splits_them():
    from sklearn.model_selection import KFold, train_test_split

    X, y = numbers()
    expected = train_test_split(np.arange(40), test_size=0.25, random_state=3)
    assert [part.tolist() for part in split_rows(X, y, 0.25, 3)] == [part.tolist() for part in expected]
    folds = KFold(4, shuffle=True, random_state=3).split(X)
    found = judging_splits(X, y, 0.25, 3, None, 4, 5)
    assert [judge.tolist() for _, judge in found] == [judge.tolist() for _, judge in folds]


@pytest.mark.parametrize("n", [30, 300])
def test_rows_that_agree_by_chance_are_no_copies(n):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 4, n), "b": rng.choice(["u", "v", "w"], n)})
    y = rng.integers(0, 2, n)
    train, judge = split_rows(X, y, 0.2, 0, y)
    assert len(judge) == n // 5
    assert set(map(tuple, X.iloc[train].to_numpy())) & set(map(tuple, X.iloc[judge].to_numpy()))


def test_odd_columns_do_not_stop_a_split():
    X, y = numbers()
    X["day"], X["list"] = pd.date_range("2020-01-01", periods=40), [[place] for place in range(40)]
    assert len(split_rows(X, y, 0.25, 0)[1]) == 10
    assert len(split_rows(X, pd.DataFrame({"u": y, "v": y}), 0.25, 0)[1]) == 10
    assert len(split_rows(list(X["a"]), list(y), 0.25, 0)[1]) == 10
