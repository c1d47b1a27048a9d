"""A model folder on the workbench."""

import pytest

from ciplearn import CIPRegressor
from ciplearn._core.errors import InputError
from ciplearn.saving import save_model
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
