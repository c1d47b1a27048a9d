"""A fit on files equals a fit on the same rows in memory, within what shuffles leave open."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph, CIPClassifier, CIPRegressor
from ciplearn._core.errors import InputError
from ciplearn._core.workers import OneProcess
from ciplearn.estimators import streaming
from ciplearn.estimators.streaming import prepare_stream
from ciplearn.sources import TableFiles

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

GRAPH = CausalGraph.from_text("S -> A, A -> L, S -> L, L -> Y, A -> Y, S -> Y")
SETTINGS = {"graph": GRAPH, "outcome": "Y", "protected": ["A"], "random_state": 0, "device": "cpu"}


def table(n=4000, seed=0):
    generator = np.random.default_rng(seed)
    s, u = generator.normal(size=(2, n))
    a = 0.7 * s + generator.normal(size=n)
    level = a + s + 0.3 * generator.normal(size=n)
    y = level - 0.5 * a + s + 0.3 * u
    return pd.DataFrame({"S": s, "A": a, "L": level, "Y": y})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    frame = table()
    for number, start in enumerate(range(0, len(frame), 1000)):
        part = frame.iloc[start : start + 1000]
        part.to_parquet(place / f"{number}.parquet", index=False)
        part.to_csv(place / f"{number}.csv", index=False)
    return place


def r2(model, frame):
    return model.score(frame.drop(columns="Y"), frame["Y"])


@pytest.fixture(scope="module")
def memory():
    frame = table()
    return CIPRegressor(**SETTINGS, gamma=1.0, epochs=25).fit(frame.drop(columns="Y"), frame["Y"])


@pytest.mark.parametrize("ending", ["parquet", pytest.param("csv", marks=pytest.mark.slow)])
def test_a_fit_on_files_learns_what_a_fit_in_memory_learns(folder, memory, ending):
    fresh = table(1000, seed=1)
    streamed = CIPRegressor(**SETTINGS, gamma=1.0, epochs=25).fit(str(folder / f"*.{ending}"))
    assert streamed.encoding_.names == memory.encoding_.names
    for own, other in zip(streamed.encoding_.columns, memory.encoding_.columns, strict=True):
        assert (own.low, own.high) == pytest.approx((other.low, other.high))
    assert streamed.target_spread_ == pytest.approx(memory.target_spread_)
    assert streamed.gamma_scale_ == pytest.approx(memory.gamma_scale_, rel=0.1)
    error, other = 1 - r2(streamed, fresh), 1 - r2(memory, fresh)
    assert error == pytest.approx(other, rel=0.05)
    value, same = (model.penalty_value(fresh.drop(columns="Y")) for model in (streamed, memory))
    assert value == pytest.approx(same, rel=0.3)


def test_the_same_files_give_the_same_model(folder):
    first, second = (
        CIPRegressor(**SETTINGS, gamma=1.0, epochs=2, early_stopping=True).fit(folder / "*.parquet") for _ in range(2)
    )
    fresh = table(50, seed=2).drop(columns="Y")
    np.testing.assert_array_equal(first.predict(fresh), second.predict(fresh))
    for ending in ("parquet", "csv"):
        streamed = first.predict(folder / f"*.{ending}")
        np.testing.assert_allclose(streamed, first.predict(table().drop(columns="Y")), rtol=1e-4, atol=1e-4)
    assert "validation" in first.history_[0]


def test_rows_left_out_or_held_out_are_not_stored(folder, tmp_path):
    model = CIPRegressor(**SETTINGS, early_stopping=True, validation_fraction=0.1)
    prepared = prepare_stream(
        model, TableFiles.matching(folder / "*.parquet"), None, OneProcess(), tmp_path, np.arange(3500, 4000)
    )
    assert len(prepared.splits[0].validation.rows) == 400
    assert len(prepared.rows) == 4000 - 400 - 500
    assert prepared.invariance.n_rows == len(prepared.rows)


def test_classes_are_read_off_all_files(tmp_path):
    frame = table(1500)
    labels = pd.cut(frame["Y"], 3, labels=["low", "middle", "high"]).astype(str)
    frame["L"] = np.where(frame["L"] > 0, "up", "down")
    for number in range(3):
        part = frame.assign(Y=labels).iloc[number * 500 : (number + 1) * 500]
        part.sort_values("Y").to_csv(tmp_path / f"{number}.csv", index=False)
    model = CIPClassifier(**SETTINGS, gamma=0.0, epochs=20).fit(tmp_path)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert model.score(frame.drop(columns="Y"), labels) > 0.7


def test_gaps_are_dropped_filled_or_named(folder, tmp_path):
    frame = table(1000)
    frame.loc[5, "L"] = np.nan
    frame.iloc[:500].to_csv(tmp_path / "0.csv", index=False)
    frame.iloc[500:].to_csv(tmp_path / "1.csv", index=False)
    with pytest.raises(InputError, match=r"0\.csv misses a value of 'L' in row 6"):
        CIPRegressor(**SETTINGS, epochs=1).fit(tmp_path)
    for policy, kept in (("drop", 999), ("impute", 1000)):
        (tmp_path / policy).mkdir()
        model = CIPRegressor(**SETTINGS, missing=policy)
        source = TableFiles.matching(tmp_path / "*.csv")
        prepared = prepare_stream(model, source, None, OneProcess(), tmp_path / policy)
        assert len(prepared.rows) == kept
    median = {column.name: column.median for column in model.encoding_.columns}["L"]
    assert abs((frame["L"] < median).mean() - 0.5) < 0.01


REFUSED = {
    "no outcome": (lambda place: CIPRegressor().fit(place), "y names the outcome.s column"),
    "unknown outcome": (lambda place: CIPRegressor(**SETTINGS).fit(place, "income"), "no column of the table"),
    "weights": (lambda place: CIPRegressor(**SETTINGS).fit(place, sample_weight=[1.0]), "without sample_weight"),
    "each batch": (lambda place: CIPRegressor(**SETTINGS, prepare_once=False).fit(place), "prepared once"),
    "a negative share": (
        lambda place: CIPRegressor(**SETTINGS, early_stopping=True, validation_fraction=-5).fit(place),
        "validation_fraction must be above zero",
    ),
    "a share of all": (
        lambda place: CIPRegressor(**SETTINGS, early_stopping=True, validation_fraction=1).fit(place),
        "validation_fraction must be below 1",
    ),
    "no such file": (lambda place: CIPRegressor(**SETTINGS).fit(str(place) + "x"), "There is no file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_stream_is_refused_in_one_sentence(folder, name):
    call, message = REFUSED[name]
    if name != "no such file":
        (only,) = list(folder.glob("0.parquet"))
        folder = only
    with pytest.raises(InputError, match=message):
        call(folder)


@pytest.mark.parametrize("outcome", [["high", "low"] * 10, [*map(str, range(19)), "high"]], ids=["labels", "a cell"])
def test_a_number_is_not_learnt_from_text(tmp_path, outcome):
    table(20).assign(Y=outcome).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InputError, match=r"'Y' cannot be used: .*rows\.csv holds 'high'.*or use CIPClassifier"):
        CIPRegressor(epochs=1).fit(tmp_path / "rows.csv", "Y")


def test_too_few_rows_to_stop_by_are_refused(tmp_path):
    for n in (2, 3):
        table(n).to_csv(tmp_path / "rows.csv", index=False)
        with pytest.raises(InputError, match=f"holds out 2 of {n} rows, which leaves {n - 2} to train on"):
            CIPRegressor(epochs=1, early_stopping=True).fit(tmp_path / "rows.csv", "Y")


def test_a_file_of_which_no_row_is_trained_on_is_passed_over(tmp_path):
    frame = table(40)
    frame[:5].to_csv(tmp_path / "a.csv", index=False)
    frame[5:].to_csv(tmp_path / "b.csv", index=False)
    model, source = CIPRegressor(**SETTINGS), TableFiles.matching(tmp_path / "*.csv")
    prepared = prepare_stream(model, source, None, OneProcess(), tmp_path, np.arange(5))
    assert len(prepared.rows) == 35


@pytest.mark.parametrize("kind", [CIPRegressor, CIPClassifier])
def test_a_file_without_rows_has_no_predictions(tmp_path, kind):
    frame = table(40).assign(S=["u", "v"] * 20)
    model = kind(epochs=1, random_state=0).fit(frame.drop(columns="Y"), frame["Y"] > 0)
    frame[:0].to_csv(tmp_path / "none.csv", index=False)
    assert model.predict(tmp_path / "none.csv").shape == model.predict(frame[:0]).shape == (0,)
    frame[["S"]][:0].to_csv(tmp_path / "none.csv", index=False)
    with pytest.raises(InputError, match="lacks the column 'A', which is needed; it has"):
        model.predict(tmp_path / "none.csv")


def test_files_that_change_between_the_passes_are_refused(tmp_path, monkeypatch):
    table(200).to_csv(tmp_path / "rows.csv", index=False)
    second = streaming.Encoder.written

    def meanwhile(*arguments):
        table(100).to_csv(tmp_path / "rows.csv", index=False)
        return second(*arguments)

    monkeypatch.setattr(streaming.Encoder, "written", meanwhile)
    with pytest.raises(InputError, match=r"rows\.csv was changed while it was read"):
        CIPRegressor(**SETTINGS, gamma=1.0, epochs=1).fit(tmp_path / "rows.csv")


def test_text_among_the_numbers_of_a_file_to_predict_is_named(folder, tmp_path):
    model = CIPRegressor(**SETTINGS, gamma=1.0, epochs=1).fit(folder / "*.csv")
    table(10).astype({"L": object}).replace({"L": {table(10)["L"][3]: "many"}}).to_csv(tmp_path / "new.csv")
    with pytest.raises(InputError, match=r"Column 'L' of .*new\.csv held numbers in training, got 'many' in row 4"):
        model.predict(tmp_path / "new.csv")
