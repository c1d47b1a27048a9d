"""Commands on many files: the same numbers as on one, and a bad file is named."""

import json

import pandas as pd
import pytest

from ciplearn.cli.app import run
from ciplearn.cli.model_folder import ModelFolder
from tests.cli.conftest import QUICK
from tests.cli.people import GRAPH, people

ROWS = 600


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table of people in three files, and in one."""
    folder = tmp_path_factory.mktemp("files")
    table = people(ROWS)
    (folder / "rows").mkdir()
    for number in range(3):
        part = table.iloc[number * 200 : (number + 1) * 200]
        part.to_csv(folder / "rows" / f"{number}.csv", index=False)
    table.to_csv(folder / "all.csv", index=False)
    (folder / "graph.txt").write_text(GRAPH)
    return folder


@pytest.fixture(scope="module")
def model(files):
    out = files / "model"
    assert run(["fit", str(files / "rows" / "*.csv"), *described(files), "--out", str(out)]) == 0
    return out


def described(files):
    return ["--graph", str(files / "graph.txt"), *QUICK, "--tolerance", "0.3", "--seed", "1"]


def test_a_fit_on_a_pattern_sees_all_rows_but_those_for_the_audit(model):
    folder = ModelFolder.read(model)
    assert folder.training["table"]["rows"] == ROWS
    assert folder.training["understood"]["columns"][1]["kind"] == "category"
    assert len(folder.held_out) == round(0.2 * ROWS)
    assert folder.model.classes_.tolist() == ["<=50K", ">50K"]
    assert folder.training["scores"]["score"] > 0.7


def test_predictions_for_many_files_are_those_for_one(files, model, tmp_path):
    found = []
    for place, table in enumerate((files / "rows", files / "rows" / "*.csv", files / "all.csv")):
        out = tmp_path / f"{place}.csv"
        assert run(["predict", str(model), str(table), "--out", str(out), "--id", "id"]) == 0
        found.append(pd.read_csv(out))
    assert found[0]["id"].tolist() == people(ROWS)["id"].tolist()
    pd.testing.assert_frame_equal(found[0], found[2])
    pd.testing.assert_frame_equal(found[1], found[2])


def test_an_audit_of_a_pattern_judges_rows_that_training_never_saw(files, model, tmp_path, capsys):
    out = tmp_path / "report.html"
    arguments = ["audit", str(model), str(files / "rows" / "*.csv"), "--preset", "quick", "--points", "20"]
    assert run([*arguments, "--interventions", "2", "--draws", "2", "--no-gate", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(out)
    assert "complete rows of the training table that training never saw." in out.read_text()


REFUSED = {
    "no match": ("*.parquet", [], "No file matches"),
    "workers without engine": ("*.csv", ["--workers", "2"], "--workers is for --engine ray"),
    "unknown engine": ("*.csv", ["--engine", "spark"], "--engine must be one of ray"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_said_in_one_line(files, tmp_path, capsys, name):
    pattern, more, message = REFUSED[name]
    arguments = ["fit", str(files / "rows" / pattern), *described(files), "--out", str(tmp_path / "m"), *more]
    assert run(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("route", ["line", "counterfactual"])
def test_every_route_is_taken_on_all_rows(files, tmp_path, capsys, route):
    out = tmp_path / "model"
    arguments = ["fit", str(files / "rows"), *described(files), "--out", str(out), "--route", route, "--epochs", "1"]
    assert run([*arguments, "--batch-size=64", "--learning-rate=0.02", "--tolerance=0.9", "--json"]) == 0
    said = capsys.readouterr()
    folder, chosen = ModelFolder.read(out), json.loads(said.out)["comparison"]["chosen"]
    assert chosen.startswith(route)
    assert folder.model.route_ == route
    assert f"training on {ROWS} rows" in said.err
    assert folder.model.predict_proba(people(5)).shape == (5, 2)


def test_a_file_that_spoils_a_column_is_named(files, tmp_path, capsys):
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(3):
        part = people(400, seed=number)
        if number == 2:
            part["hours"] = part["hours"].astype(object)
            part.loc[17, "hours"] = "many"
        part.to_csv(folder / f"{number}.csv", index=False)
    assert run(["fit", str(folder), *described(files), "--out", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err
    assert "'hours' holds mostly numbers, but also cells like 'many' in" in said
    assert "2.csv" in said
