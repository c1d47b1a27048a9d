"""The page in a notebook: state in step with Python."""

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import InputTypeError
from ciplearn.workbench import Workbench
from ciplearn.workbench.document import Document

GRAPH = CausalGraph.from_dagitty("dag { Z -> {A L Y} A [exposure] Y [outcome] A -> L -> Y A -> Y }")


@pytest.fixture
def sent(page, monkeypatch):
    """What a widget sends, instead of a notebook that receives it."""
    messages = []
    monkeypatch.setattr(Workbench, "send", lambda self, content, buffers=None: messages.append(content))
    return messages


def test_graph_roles_and_verdict_are_those_of_the_drawing(sent):
    w = Workbench(GRAPH)
    assert w.graph == GRAPH
    assert w.verdict.holds
    assert w.roles["protected"] == ("A",)
    assert Workbench().verdict is None
    assert Workbench().roles == {}


def test_what_is_drawn_reaches_python_and_the_answer_the_page(sent):
    w = Workbench(GRAPH)
    other = Document(CausalGraph.from_dagitty("dag { A [exposure] Y [outcome] A -> Y }"))
    message = {"do": "save", "document": other.to_dict(), "version": 0, "client": "page"}
    w._received(w, {"id": "7", "message": message}, [])
    assert w.graph == other.graph
    assert {"id": "7", "answer": {"version": 1}} in sent
    assert any(content.get("event") == "document" for content in sent)


def test_graph_that_python_sets_reaches_the_page(sent):
    w = Workbench()
    w.graph = GRAPH
    event = next(content for content in sent if content.get("event") == "document")
    assert Document.read(event["document"]).graph == GRAPH
    assert w.verdict.holds


def test_table_of_python_is_the_table_of_the_page(sent):
    rows = pd.DataFrame(np.arange(40.0).reshape(10, 4), columns=list("ALYZ"))
    w = Workbench(GRAPH, rows)
    found = w.desk.answer({"do": "describe", "document": Document(GRAPH).to_dict()})
    assert found["rows"] == 10
    assert found["without_column"] == []
    w._received(w, {"id": "1", "message": {"do": "table", "name": "b.csv"}}, [memoryview(b"A,B\n1,2\n")])
    assert sent[-1] == {"id": "1", "answer": {"table": {"name": "b.csv"}}}


def test_same_module_as_the_page(sent, page):
    w = Workbench()
    assert w._esm == (page / "workbench.js").read_text(encoding="utf-8")
    assert "render" in w._esm
    assert w._css == (page / "workbench.css").read_text(encoding="utf-8")


def test_what_is_no_graph_is_refused(sent):
    with pytest.raises(InputTypeError, match="CausalGraph"):
        Workbench("A -> Y")
    with pytest.raises(InputTypeError, match="CausalGraph"):
        Workbench().graph = "A -> Y"
