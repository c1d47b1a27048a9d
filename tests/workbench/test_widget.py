"""The page in a notebook: state in step with Python."""

import json
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph
from ciplearn._core.errors import InputTypeError
from ciplearn.workbench import Workbench
from ciplearn.workbench.document import Document
from tests.pages import python_on
from tests.workbench.browser import browsing, needs_browser

GRAPH = CausalGraph.from_dagitty("dag { Z -> {A L Y} A [exposure] Y [outcome] A -> L -> Y A -> Y }")


@pytest.fixture
def sent(page, monkeypatch):
    """What a widget sends, instead of a notebook that receives it."""
    messages = []
    monkeypatch.setattr(Workbench, "send", lambda self, content, buffers=None: messages.append(content))
    return messages


def test_blocks_of_the_page_about_the_workbench_run(sent):
    (block,) = python_on("docs/workbench.md")
    names = {}
    exec(block, names)
    assert names["w"].graph.to_edges() == "A -> Y, S -> A, S -> Y"


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


NOTEBOOK = """<!doctype html><link rel="icon" href="icon.svg">
<link rel="stylesheet" href="workbench.css"><div id="cell"></div><script type="module">
import widget from "./workbench.js";
const heard = [];
const model = {
  on: (name, call) => heard.push(call),
  off: () => {},
  send: async ({ id, message }) => {
    const response = await fetch("ask", { method: "POST", body: JSON.stringify(message) });
    const answer = await response.json();
    for (const call of heard) call({ id, answer });
  },
};
widget.render({ model, el: document.getElementById("cell") });
</script>"""


@needs_browser
def test_module_renders_in_a_cell_and_talks_through_the_model(sent, page, tmp_path):
    w = Workbench(GRAPH)

    class Notebook(SimpleHTTPRequestHandler):
        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(w.desk.answer(message)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    shutil.copytree(page, tmp_path / "site")
    (tmp_path / "site" / "cell.html").write_text(NOTEBOOK)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Notebook, directory=tmp_path / "site")) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with browsing(tmp_path / "browser") as web:
            web.open(f"http://127.0.0.1:{server.server_port}/cell.html")
            web.wait(".headline.good")
            web.run("document.querySelector('.cw').workbench.canvas.connect('bidirected', 'Z', 'Y')")
            web.until(lambda: w.graph.bidirected == (("Y", "Z"),))
            for colour, theme in (("oklch(0.2 0 0)", "dark"), ("#fffef8", "light")):
                web.run("document.body.style.background = arguments[0]", colour)
                web.until(lambda theme=theme: web.run("return document.querySelector('.cw').dataset.theme") == theme)
            assert web.complaints() == []
        server.shutdown()
