"""Whole numbers beyond 2**53 stay exact where they are labels, and are refused where they are numbers."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CIPClassifier, CIPRegressor, Independence
from ciplearn._core.errors import InputError
from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder

EDGE = 2**53
FIT = ["--outcome=y", "--protected=a", "--gamma=1", "--no-compare", "--epochs=2", "--preset=quick"]


def table(n=120, **columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.choice(["u", "v"], n), "x": rng.normal(size=n), "y": rng.normal(size=n)} | columns)


def written(place, frame, kind):
    path = place / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


def fit(path, *more, graph="a -> x -> y, a -> y"):
    return run(["fit", str(path), "--graph", graph, *FIT, "--out", str(path.parent / "m"), *more])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_amount_that_no_float_is_equal_to_is_refused(kind, tmp_path, capsys):
    path = written(tmp_path, table(x=EDGE + np.arange(120)), kind)
    assert fit(path) == 2
    error = capsys.readouterr().err
    assert "Column 'x' holds 9007199254740993, and numbers beyond 2**53 are not told from their neighbours" in error
    assert "pass --categories x where they are labels" in error


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("gaps", [False, True])
def test_labels_stay_exact(kind, gaps, tmp_path):
    codes = pd.Series([EDGE, EDGE + 1, EDGE + 2] * 40, dtype="Int64")
    if gaps:
        codes[::10] = pd.NA
    path = written(tmp_path, table(x=codes), kind)
    assert fit(path, "--categories=x") == 0
    column = ModelFolder.read(tmp_path / "m").model.encoding_.only(["x"]).columns[0]
    assert column.levels == (str(EDGE), str(EDGE + 1), str(EDGE + 2))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("gaps", [False, True])
def test_two_outcomes_stay_two(kind, gaps, tmp_path):
    outcome = pd.Series([EDGE, EDGE + 1] * 60, dtype="Int64")
    if gaps:
        outcome[::10] = pd.NA
    path = written(tmp_path, table(y=outcome), kind)
    assert fit(path) == 0
    model = ModelFolder.read(tmp_path / "m").model
    assert model.classes_.tolist() == [str(EDGE), str(EDGE + 1)]
    assert run(["predict", str(tmp_path / "m"), str(path), "--out", str(tmp_path / "p.csv")]) == 0
    assert set(pd.read_csv(tmp_path / "p.csv", dtype=str)["prediction"]) <= {str(EDGE), str(EDGE + 1)}


def test_an_outcome_of_many_such_numbers_is_refused(tmp_path, capsys):
    assert fit(written(tmp_path, table(y=EDGE + np.arange(120)), "csv")) == 2
    assert "pass --task classification where they are labels" in capsys.readouterr().err


def test_such_a_number_to_predict_is_refused_with_its_row(tmp_path, capsys):
    assert fit(written(tmp_path, table(x=np.arange(120)), "csv")) == 0
    new = written(tmp_path, table(x=[5] * 50 + [EDGE + 1] * 70), "csv")
    assert run(["predict", str(tmp_path / "m"), str(new)]) == 2
    assert "got '9007199254740993' in row 51" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_that_streams_is_refused_or_exact(kind, tmp_path, capsys):
    (tmp_path / "rows").mkdir()
    written(tmp_path / "rows", table(x=EDGE + np.arange(120)), kind)
    assert fit(tmp_path / "rows") == 2
    assert "9007199254740993" in capsys.readouterr().err
    written(tmp_path / "rows", table(x=[EDGE, EDGE + 1] * 60), kind)
    assert fit(tmp_path / "rows", "--categories=x") == 0
    column = ModelFolder.read(tmp_path / "m").model.encoding_.only(["x"]).columns[0]
    assert column.levels == (str(EDGE), str(EDGE + 1))


@pytest.mark.parametrize("numbers", [[1e300, 1.5], [2**60, 3], [EDGE, EDGE + 2], ["1e300", "18014398509481984"]])
def test_large_numbers_that_a_float_holds_are_numbers(numbers, tmp_path):
    assert fit(written(tmp_path, table(x=pd.Series(numbers * 60, dtype=object)), "csv")) == 0
    assert ModelFolder.read(tmp_path / "m").kinds["x"] == "number"


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64", object])
def test_library_refuses_such_numbers_and_keeps_such_labels(dtype):
    X = table()[["a", "x"]]
    many = pd.Series(EDGE + np.arange(120), dtype=dtype)
    with pytest.raises(InputError, match=r"Column 'x' holds 9007199254740993, and numbers beyond 2\*\*53"):
        CIPRegressor(inputs=["x", "a"], independence=Independence(["a"]), epochs=1).fit(X.assign(x=many), table()["y"])
    model = CIPClassifier(inputs=["x", "a"], independence=Independence(["a"]), epochs=1)
    assert model.fit(X, pd.Series([EDGE, EDGE + 1] * 60, dtype=dtype)).classes_.tolist() == [EDGE, EDGE + 1]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_library_refuses_a_target_of_such_numbers(dtype):
    model = CIPRegressor(inputs=["x", "a"], independence=Independence(["a"]), epochs=1)
    with pytest.raises(InputError, match="holds 9007199254740993"):
        model.fit(table()[["a", "x"]], (EDGE + np.arange(120)).astype(dtype))
