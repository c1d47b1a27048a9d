"""A model folder on the workbench."""

import pytest

from ciplearn import CIPRegressor
from ciplearn._core.errors import InputError
from ciplearn.cli.app import run
from ciplearn.saving import load_model, save_model
from ciplearn.workbench.opening import opened
from ciplearn.workbench.store import Store
from tests.workbench.test_runs import GRAPH, rows, wait


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    table = rows()
    made = CIPRegressor(graph=GRAPH, gamma=0.5, epochs=2, inputs=["L", "Z"], random_state=0)
    return save_model(made.fit(table.drop(columns="Y"), table["Y"]), tmp_path_factory.mktemp("saved") / "model")


def test_drawing_and_roles_of_a_model_are_on_the_page(model, tmp_path):
    document = opened(Store(tmp_path), model=model).document
    assert set(document.graph.directed) == set(GRAPH.directed)
    assert document.graph.exposures == ("A",)
    assert document.graph.outcomes == ("Y",)
    assert document.inputs == ("L", "Z")


def test_model_is_measured_on_a_table(model, tmp_path):
    rows().to_csv(tmp_path / "people.csv", index=False)
    desk = opened(Store(tmp_path / "work"), model=model, table=tmp_path / "people.csv")
    (name,) = desk.runs.known
    run = wait(desk, name, lambda run: run["status"] != "running")
    desk.close()
    assert run["status"] == "done", run["phase"]
    assert [(stop["gamma"], stop["vcf"]["value"] >= 0) for stop in run["stops"]] == [(0.5, True)]
    again = opened(Store(tmp_path / "work"), model=model, table=tmp_path / "people.csv")
    assert list(again.runs.known) == [name], "measured once"


def test_table_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"There is no table .*none\.csv"):
        opened(Store(tmp_path), table=tmp_path / "none.csv")


@pytest.mark.parametrize("route", ["line", "left-out"])
def test_model_without_a_gamma_stands_beside_the_unconstrained_one_and_is_the_chosen_stop(route, tmp_path):
    table, folder = tmp_path / "people.csv", tmp_path / "model"
    rows().to_csv(table, index=False)
    fit = ["fit", str(table), "--graph", GRAPH.to_dagitty(), "--route", route, "--epochs", "3", "--out", str(folder)]
    assert run([*fit, "--tolerance", "0.9"]) == 0
    assert load_model(folder).route_ == route, "the kept model is what the test is about"
    desk = opened(Store(tmp_path / "work"), model=folder, table=table)
    (name,) = desk.runs.known
    measured = wait(desk, name, lambda run: run["status"] != "running")
    free = desk.runs.free_model(name)
    refused = desk.answer({"do": "download", "run": name, "stop": measured["chosen"], "what": "script"})
    desk.close()
    assert measured["status"] == "done", measured["phase"]
    kept = next(stop for stop in measured["stops"] if stop["key"] == measured["chosen"])
    assert kept["route"] == route
    assert len(measured["stops"]) == 2
    assert load_model(free).route_ != route
    assert "fit.json" in refused["error"]
