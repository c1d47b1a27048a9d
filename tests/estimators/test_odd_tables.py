"""Columns, labels and weights as they come from real life: read rightly, or refused in one sentence."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn import CIPClassifier, CIPRegressor
from ciplearn._core.errors import InputError

QUICK = {"epochs": 2, "random_state": 0}
N = 60
DAYS = [datetime.date(2020, 1, 1 + i % 28) for i in range(N)]


@pytest.fixture(scope="module")
def X():
    draw = np.random.default_rng(0)
    return pd.DataFrame({"S": draw.normal(size=N), "A": draw.normal(size=N)})


@pytest.fixture(scope="module")
def y(X):
    return X["S"] + X["A"]


def answer(X, y, new=None, **settings):
    return CIPRegressor(**QUICK, **settings).fit(X, y).predict(X if new is None else new)


def test_numbers_that_came_as_objects_are_numbers(X, y):
    for kind in (lambda value: value, Decimal, lambda value: np.float64(value)):
        objects = X.assign(A=pd.Series([kind(float(value)) for value in X["A"]], dtype=object))
        assert np.allclose(answer(objects, y), answer(X, y))
    assert np.allclose(answer(X, y, X.astype(object)), answer(X, y))


def test_missing_number_in_a_single_row_is_imputed(X, y):
    model = CIPRegressor(**QUICK, missing="impute").fit(X, y)
    row = pd.DataFrame({"S": [0.3], "A": [None]})
    assert np.allclose(model.predict(row), model.predict(row.assign(A=X["A"].median())))


def test_missing_entries_of_an_array_follow_the_policy(X, y):
    gaps = X.to_numpy().copy()
    gaps[:5, 1] = np.nan
    masked = np.ma.masked_array(X.to_numpy(), mask=np.isnan(gaps))
    for policy in ("drop", "impute"):
        expected = answer(gaps, y, X.to_numpy(), missing=policy)
        assert np.allclose(answer(masked, y, X.to_numpy(), missing=policy), expected)
    for array in (gaps, masked):
        with pytest.raises(InputError, match="5 of 60 rows miss a value"):
            answer(array, y)


def test_table_after_an_array_is_read_by_names(X, y):
    model = CIPRegressor(**QUICK).fit(X.to_numpy(), y)
    model.fit(X, y)
    assert np.array_equal(model.predict(X[["A", "S"]]), model.predict(X))


@pytest.mark.parametrize("values", [DAYS, pd.to_timedelta(range(N), unit="D"), pd.period_range("2020", periods=N)])
def test_every_kind_of_time_is_refused(values, X, y):
    with pytest.raises(InputError, match="holds dates"):
        answer(X.assign(A=values), y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X + 1j, "complex numbers"),
        (lambda X: X.assign(A=[-1.7e308, 1.7e308] * 30), "too far to be scaled"),
        (lambda X: X.to_numpy()[:, 0], "X cannot be used: Expected 2D array"),
        (lambda X: X.to_numpy() + 1j, "X cannot be used: Complex data"),
        (lambda X: X.to_numpy().astype(str), "X cannot be used"),
        (lambda X: X.assign(A=[[1, 2]] * N), "Column 'A' holds lists or the like"),
        (lambda X: X.assign(S=[{"a": 1}] * N), "Column 'S' holds lists or the like"),
        (lambda X: None, "X cannot be used"),
        (lambda X: {"a": 1}, "X cannot be used"),
    ],
)
def test_table_that_cannot_be_read_is_one_sentence(change, words, X, y):
    with pytest.raises(InputError, match=words) as refusal:
        answer(change(X), y)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_columns_of_lists_that_are_not_used_do_no_harm(X, y):
    assert np.isfinite(answer(X.assign(L=[[1, 2]] * N), y, inputs=["S", "A"])).all()


@pytest.mark.parametrize("first", [2**53 + 1, 2**63, 10**30])
def test_whole_numbers_beyond_double_precision_are_refused(first, X, y):
    far = X.assign(A=pd.Series([first + place for place in range(N)], dtype=object))
    with pytest.raises(InputError, match=r"Column 'A' holds \d+, and numbers beyond 2\*\*53 are not told"):
        answer(far, y)


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_a_column_of_another_unit_is_named(factor, X, y):
    model = CIPRegressor(**QUICK).fit(X.assign(A=X["A"] * 1e3 / factor), y)
    with pytest.warns(UserWarning, match=r"Column 'A' lies far outside .* in \d+ rows, .* for example; check its unit"):
        model.predict(X.assign(A=X["A"] * 1e6 / factor))
    model.predict(X.assign(A=X["A"] * 3e3 / factor))


def test_value_far_outside_the_training_rows_is_refused(X, y):
    with pytest.warns(UserWarning, match="lies far outside the training rows"):
        assert np.isfinite(answer(X, y, X * 1e30)).all()
    for factor in (1e40, 1e300):
        with pytest.raises(InputError, match="too far from the training rows"):
            answer(X, y, X * factor)


def test_level_reads_the_same_as_float_and_as_whole_number(X, y):
    codes = (X["A"] > 0).astype(int)
    model = CIPRegressor(**QUICK).fit(X.assign(A=pd.Categorical(codes)), y)
    expected = model.predict(X.assign(A=pd.Categorical(codes)))
    for same in (codes, codes.astype(float), codes.astype(str), pd.Categorical(codes.astype(float))):
        assert np.array_equal(model.predict(X.assign(A=same)), expected)


def test_numbers_where_training_had_words_or_booleans_are_refused(X, y):
    for levels in (X["A"] > 0, np.where(X["A"] > 0, "m", "f")):
        model = CIPRegressor(**QUICK).fit(X.assign(A=levels), y)
        with pytest.raises(InputError, match="held categories such as"):
            model.predict(X.assign(A=(X["A"] > 0).astype(int)))


def test_number_that_is_a_name_and_a_position_is_refused(X, y):
    swapped = X.set_axis([1, 0], axis=1)
    with pytest.raises(InputError, match="may be the column '1' or the one at that position, '0'"):
        CIPRegressor(**QUICK, protected=[1]).fit(swapped, y)
    assert CIPRegressor(**QUICK, protected=["1"]).fit(swapped, y).independence_.right == ("1",)
    plain = X.set_axis([0, 1], axis=1)
    assert CIPRegressor(**QUICK, protected=np.array([1])).fit(plain, y).independence_.right == ("1",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: 3, "The target cannot be used"),
        (lambda y: y + 1j, "The target cannot be used: Complex data"),
        (lambda y: pd.date_range("2020", periods=N), "holds dates"),
        (lambda y: torch.tensor(y.to_numpy(), requires_grad=True), "The target cannot be used"),
        (lambda y: np.r_[1.7e308, -1.7e308, np.zeros(N - 2)], "too far for squared errors"),
        (lambda y: y * 1e200, "too far for squared errors"),
        (lambda y: [10**400] * N, "The target cannot be used: int too large"),
    ],
)
def test_target_that_cannot_be_used_is_one_sentence(change, words, X, y):
    with pytest.raises(InputError, match=words) as refusal:
        answer(X, change(y))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "object", "string", "category", bool])
def test_labels_come_back_as_the_kind_they_were(kind, X):
    plain = np.array(["a", "b"] if kind in ("string", "category") else [True, False] if kind == "boolean" else [1, 0])
    y = pd.Series(plain[np.arange(N) % 2]).astype(kind)
    model = CIPClassifier(**QUICK).fit(X, y)
    expected = sorted(set(y.tolist()))
    assert model.classes_.tolist() == expected
    assert [type(label) for label in model.classes_.tolist()] == [type(label) for label in expected]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a", None, "b"] * 20, "20 of 60 labels are missing"),
        ([1.0, np.nan, 0.0] * 20, "20 of 60 labels are missing"),
        ([1, "a"] * 30, "mixes labels of the kinds int, str"),
        (np.linspace(0, 1, N), "use CIPRegressor"),
        (np.zeros((N, 2)), "The target cannot be used"),
        ([b"a", b"b"] * 30, "The target cannot be used"),
    ],
)
def test_labels_that_cannot_be_used_are_one_sentence(labels, words, X):
    with pytest.raises(InputError, match=words):
        CIPClassifier(**QUICK).fit(X, labels)


@pytest.mark.parametrize("scale", [1e300, 1e-320])
def test_only_ratios_of_weights_count(scale, X, y):
    weights = np.arange(N) % 3
    expected = CIPRegressor(**QUICK).fit(X, y, sample_weight=weights).predict(X)
    assert np.allclose(CIPRegressor(**QUICK).fit(X, y, sample_weight=weights * scale).predict(X), expected)


def test_batches_of_rows_without_weight_teach_nothing(X, y):
    weights = np.r_[1.0, np.zeros(N - 1)]
    model = CIPRegressor(**QUICK, batch_size=8).fit(X, y, sample_weight=weights)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("weights", [np.zeros(N), -np.ones(N), np.full(N, np.nan), np.ones(3), "a", np.ones((N, 2))])
def test_weights_that_cannot_be_used_are_one_sentence(weights, X, y):
    with pytest.raises(InputError, match="sample_weight cannot be used"):
        CIPRegressor(**QUICK).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(("scale", "far"), [(1e-200, "too little"), (1e200, "too far")])
def test_an_outcome_whose_squares_are_no_numbers_is_refused(X, y, scale, far):
    with pytest.raises(InputError, match=f"{far} for squared errors; rescale it"):
        CIPRegressor(**QUICK).fit(X, y * scale)
