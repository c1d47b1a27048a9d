"""A model folder on the workbench."""

import pytest

from ciplearn import CIPRegressor
from ciplearn._core.errors import InputError
from ciplearn.cli.app import run
from ciplearn.repairing import load_model, save_model
from ciplearn.workbench.desk import opened
from tests.workbench.test_runs import GRAPH, rows, wait


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    table = rows()
    made = CIPRegressor(graph=GRAPH, gamma=0.5, epochs=2, inputs=["L", "Z"], random_state=0)
    return save_model(made.fit(table.drop(columns="Y"), table["Y"]), tmp_path_factory.mktemp("saved") / "model")


def test_drawing_and_roles_of_a_model_are_on_the_page(model, tmp_path):
    document = opened(tmp_path, model=model).document
    assert set(document.graph.directed) == set(GRAPH.directed)
    assert document.graph.exposures == ("A",)
    assert document.graph.outcomes == ("Y",)
    assert document.inputs == ("L", "Z")


def test_model_is_measured_on_a_table(model, tmp_path):
    rows().to_csv(tmp_path / "people.csv", index=False)
    desk = opened(tmp_path / "work", model=model, table=tmp_path / "people.csv")
    (name,) = desk.runs.known
    run = wait(desk, name, lambda run: run["status"] != "running")
    desk.close()
    assert run["status"] == "done", run["phase"]
    assert [(stop["name"], stop["vcf"] >= 0) for stop in run["stops"]] == [("gamma 0.5", True)]
    again = opened(tmp_path / "work", model=model, table=tmp_path / "people.csv")
    assert list(again.runs.known) == [name], "measured once"


def test_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"There is no table .*none\.csv"):
        opened(tmp_path, table=tmp_path / "none.csv")


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("words", [["none.csv"], ["--model", "none.csv"]])
def test_a_refused_call_leaves_no_folder(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["workbench", *words, "--no-browser", "--folder", "work"]) == 2
    assert "none.csv" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "route"),
    [
        pytest.param(["--route", "line", "--tolerance", "0.9"], "line", marks=pytest.mark.slow),
        (["--learner", "linear"], "repair"),
        (["--gamma", "0.5"], "independence"),
    ],
)
def test_stops_of_a_folder_stand_beside_the_unconstrained_one_and_its_model_is_the_chosen_stop(words, route, tmp_path):
    table, folder = tmp_path / "people.csv", tmp_path / "model"
    rows().to_csv(table, index=False)
    fit = ["fit", str(table), "--graph", GRAPH.to_dagitty(), "--epochs", "3", "--out", str(folder)]
    assert run([*fit, *words]) == 0
    assert load_model(folder).route_ == route, "the kept model is what the test is about"
    desk = opened(tmp_path / "work", model=folder, table=table)
    (name,) = desk.runs.known
    measured = wait(desk, name, lambda run: run["status"] != "running")
    assert measured["status"] == "done", measured["phase"]
    asked = {"run": name, "stop": measured["chosen"]}
    refused = desk.answer({"do": "download", **asked, "what": "script"})
    row = desk.answer({"do": "rows", **asked})["rows"][0]
    imagined = desk.answer({"do": "imagine", **asked, "row": row["row"], "values": {"A": row["values"]["A"]}})
    told = desk.answer({"do": "hello"})
    desk.close()
    stops = {stop["key"]: stop for stop in measured["stops"]}
    kept, free = (stops[measured[which]] for which in ("chosen", "free"))
    assert kept is not free
    assert free["free"]
    assert imagined["before"]["kept"] is not None
    assert "fit.json" in refused["error"]
    assert str(tmp_path) not in str(told["runs"])
