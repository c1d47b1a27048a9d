"""Messages and answers."""

import random
import subprocess
import sys
import time

import pytest

from ciplearn import CausalGraph, datasets
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.document import Document
from ciplearn.workbench.store import Store
from tests.workbench.graphs import twenty

DEMO, FIRST = ({"do": "example", "name": name} for name in ("demo", "first"))


def test_hello_has_the_drawing_the_examples_and_no_path(desk):
    hello = desk.answer({"do": "hello"})
    assert hello["document"]["graph"]["nodes"] == []
    assert hello["examples"][0]["name"] == "demo"
    assert str(desk.store.folder) not in str(hello)


def test_example_is_judged_to_hold_with_its_reasons(desk):
    answer = desk.answer({"do": "judge", "document": desk.answer(FIRST)["document"]})
    assert answer["holds"]
    assert answer["statement"] == "Ŷ ⊥ {A, L} | {Z}"
    assert answer["adjustment_sets"]["minimal"] == [["Z"]]
    assert [route["allowed"] for route in answer["routes"]] == [True] * 6


def test_demo_is_about_the_applicants_and_brings_those_of_the_command(desk):
    story = datasets.applicants()
    answer = desk.answer(DEMO)
    assert {tuple(edge) for edge in answer["document"]["graph"]["directed"]} == set(story.graph.directed)
    judged = desk.answer({"do": "judge", "document": answer["document"]})
    assert judged["statement"] == "Ŷ ⊥ {hours, sex, training} | {age, region}"
    assert desk.take_demo_table() == {"name": "people.csv"}
    assert desk.table.path.read_text() == story.sample(4000, random_state=0).round(1).to_csv(index=False)


def test_verdict_names_the_roles_that_are_missing(desk):
    graph = CausalGraph.from_edges("A -> Y")
    answer = desk.answer({"do": "judge", "document": Document(graph).to_dict()})
    assert answer == {"state": "roles", "missing": ["outcome", "protected"]}


def test_failing_drawing_comes_with_paths_to_light_up_and_repairs_that_hold(desk):
    document = Document(twenty()["M-bias"]).to_dict()
    assert desk.answer({"do": "judge", "document": document})["holds"] in (True, False)
    failing = {"graph": {"directed": [["L", "Y"], ["A", "L"]], "bidirected": [["A", "L"]], "exposures": ["A"],
                         "outcomes": ["Y"]}, "context": ["A"], "inputs": ["A", "L"]}  # fmt: skip
    answer = desk.answer({"do": "judge", "document": failing})
    against = [reason for reason in answer["reasons"] if not reason["holds"] and reason["condition"] != "paper"]
    assert not answer["holds"]
    assert any(path["edges"] for reason in against for path in reason["paths"])
    advice = desk.answer({"do": "advise", "document": failing})
    assert advice["repairs"]
    for repair in advice["repairs"]:
        assert desk.answer({"do": "judge", "document": repair["document"]})["holds"]


@pytest.mark.parametrize("notation", ["dagitty", "dot", "gml", "json", "edges"])
def test_graph_is_written_and_read_in_every_notation(desk, notation):
    graph = twenty()["figure d"]
    written = desk.answer({"do": "write", "format": notation, "document": Document(graph).to_dict()})
    again = Document.read(desk.answer({"do": "read", "text": written["text"]})["document"]).graph
    assert (again.nodes, again.directed, again.bidirected) == (graph.nodes, graph.directed, graph.bidirected)


def test_tiers_that_are_pasted_become_arrows(desk):
    read = desk.answer({"do": "read", "text": "sex, age | job | income"})["document"]["graph"]
    assert len(read["directed"]) == 5


@pytest.mark.parametrize("columns", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_of_a_table_of_thousands_of_columns_those_of_the_drawing_and_the_first_are_read(columns, desk):
    names, last = [f"c{i}" for i in range(columns)], f"c{columns - 1}"
    rows = "\n".join([",".join(names), *[",".join([str(row % 7)] * len(names)) for row in range(70)]])
    before = time.process_time()
    assert "error" not in desk.answer({"do": "table", "name": "wide.csv", "content": rows.encode()})
    graph = {"directed": [[last, "c3"], ["gone", "c3"]]}
    found = desk.answer({"do": "describe", "document": {"graph": graph}})
    # Of 20 000 it took 33 s.
    assert time.process_time() - before < 20
    assert [column["name"] for column in found["columns"]] == [*names[:500], last]
    assert found["columns"][-1]["values"] == "0 to 6"
    assert found["columns_left_out"] == columns - 501
    assert found["without_column"] == ["gone"]
    assert found["complete"] == 70


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {"do": "fly"},
        {"do": "judge"},
        {"do": "read", "text": "A ->"},
        {"do": "read", "text": 3},
        {"do": "write", "format": "../../x", "document": {"graph": {}}},
        {"do": "example", "name": "none"},
        {"do": "save", "document": 3, "version": 0},
        {"do": "describe", "document": {"graph": {}}},
        {"do": "train", "document": {"graph": {}}, "goal": "tolerance"},
        {"do": "cancel", "run": "../.."},
        {"do": "download", "run": "../..", "stop": "x", "what": "model"},
        {"do": "keep", "run": ["a"], "stop": None},
        {"do": "rows", "run": {}, "stop": {}},
        {"do": "table", "name": "x.csv", "content": "text"},
    ],
)
def test_mistake_is_answered_with_one_sentence(desk, message):
    answer = desk.answer(message)
    assert list(answer) == ["error"]
    assert "\n" not in answer["error"]


def test_saved_drawing_is_there_after_a_restart(desk):
    document = Document(twenty()["figure d"]).to_dict()
    assert desk.answer({"do": "save", "document": document, "version": 0}) == {"version": 1}
    desk.close()
    again = Desk(Store(desk.store.folder)).answer({"do": "hello"})
    assert (again["document"], again["version"], again["found_saved"]) == (document, 1, True)
    assert again["instance"] != desk.instance


def test_second_page_learns_of_a_save_and_does_not_overwrite_it(desk):
    told = []
    desk.subscribe(told.append)
    first, second = (Document(twenty()[name]).to_dict() for name in ("figure a", "figure d"))
    desk.answer({"do": "save", "document": first, "version": 0, "client": "one"})
    assert told[-1]["event"] == "document"
    assert told[-1]["client"] == "one"
    clash = desk.answer({"do": "save", "document": second, "version": 0, "client": "two"})
    assert clash["conflict"]
    assert clash["document"] == first
    assert desk.document.graph == twenty()["figure a"]
    assert desk.answer({"do": "save", "document": second, "version": 0, "anyway": True}) == {"version": 2}
    assert desk.document.graph == twenty()["figure d"]


def test_clash_names_who_saved_and_the_same_drawing_is_no_clash(desk):
    first, second = (Document(twenty()[name]).to_dict() for name in ("figure a", "figure d"))
    desk.answer({"do": "save", "document": first, "version": 0, "client": "python"})
    assert desk.answer({"do": "save", "document": second, "version": 0})["client"] == "python"
    assert desk.answer({"do": "save", "document": first, "version": 0}) == {"version": 1}


def test_drawing_with_a_cycle_is_kept_although_it_cannot_be_judged(desk):
    cycle = {"graph": {"directed": [["A", "B"], ["B", "A"]]}, "context": None, "inputs": None, "kinds": {}}
    assert desk.answer({"do": "save", "document": cycle, "version": 0}) == {"version": 1}
    assert "cycle" in desk.answer({"do": "judge", "document": cycle})["error"]
    desk.close()
    assert Desk(Store(desk.store.folder)).answer({"do": "hello"})["document"] == cycle


def test_verdict_at_fifty_nodes_has_all_its_parts(desk):
    chance = random.Random(0)
    names = [f"v{place}" for place in range(50)]
    edges = {tuple(sorted(chance.sample(range(50), 2))) for _ in range(130)}
    graph = {"nodes": names, "directed": [[names[a], names[b]] for a, b in sorted(edges)][:120],
             "exposures": ["v5"], "outcomes": ["v49"]}  # fmt: skip
    answer = desk.answer({"do": "judge", "document": {"graph": graph}})
    assert answer["state"] == "judged"
    assert len(answer["routes"]) == 6


def test_page_is_greeted_without_loading_what_trains(tmp_path):
    """Torch takes seconds, and the page waits for the first answer."""
    code = (
        "import sys; from pathlib import Path; from ciplearn.workbench.desk import Desk; "
        "from ciplearn.workbench.store import Store; desk = Desk(Store(Path(sys.argv[1]))); "
        "desk.answer({'do': 'table', 'name': 't.csv', 'content': b'A,Y\\n1,2\\n3,4\\n'}); "
        "said = desk.answer({'do': 'hello'}); print('runs' in said, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
