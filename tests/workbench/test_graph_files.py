"""Graphs that go into the page and come out of it: notations, files, addresses, and names that mean harm."""

import pytest

from ciplearn import CausalGraph
from tests.workbench.browser import browsing, needs_browser, served
from tests.workbench.graphs import HOSTILE, twenty

pytestmark = needs_browser


def test_graphs_and_tables_are_dropped_by_mouse(web):
    rows = "S,T\n1,2\n3,4\n"
    web.drop(".drawing", "graph.txt", "dag { S -> T }")
    web.until(lambda: web.doc("editor.doc.nodes") == ["S", "T"])
    web.drop(".drawing", "people.csv", rows)
    web.wait("[data-key='kind|S']")
    assert "2 rows, all complete" in web.text("#cw-panel-data")
    web.drop(".drop", "others.txt", rows.replace("T", "U"))
    web.until(lambda: web.find("[data-key='add|U']"))
    web.click("[data-opens=paste]")
    web.wait("dialog textarea")
    web.drop("dialog textarea", "other.dot", "digraph { A -> B -> C }")
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "B", "C"])
    web.until(lambda: not web.find("dialog[open]"))
    web.drop(".drawing", "broken.json", "{")
    web.until(lambda: "broken.json" in web.text(".notices"))
    assert web.doc("editor.doc.nodes") == ["A", "B", "C"], "the drawing is as it was"
    web.click(".notice.warn [data-key=dismiss]")
    web.until(lambda: not web.find(".notice.warn"))


HARD = {"figure d", "napkin", "partial", "hostile names", "one node"}


@pytest.mark.parametrize(
    "names", [pytest.param(set(twenty()), marks=pytest.mark.slow, id="twenty"), pytest.param(HARD, id="five")]
)
def test_graphs_go_through_the_page_without_loss(names, web):
    for name, graph in twenty().items():
        if name not in names:
            continue
        web.open_text(graph.to_json())
        web.until(lambda graph=graph: sorted(web.doc("editor.doc.nodes")) == sorted(graph.nodes), what=name)
        back = CausalGraph.from_json(web.export("json"))
        assert back == graph, name
        for node, spot in graph.positions.items():
            assert back.positions[node] == pytest.approx(spot), name


@pytest.mark.parametrize(
    "notation", ["dot", *(pytest.param(one, marks=pytest.mark.slow) for one in ("dagitty", "gml", "edges"))]
)
def test_every_notation_goes_out_and_in(web, notation):
    web.example("mbias")
    text = web.export(notation)
    web.open_text("S -> T")
    web.until(lambda: web.doc("editor.doc.nodes") == ["S", "T"])
    web.open_text(text)
    web.until(lambda: web.doc("editor.doc.nodes.length") == 5)
    assert web.doc("editor.doc.directed.length") == 5


def test_unreadable_text_is_answered_in_the_window(web):
    web.open_text("dag { A -> ")
    web.until(lambda: "line" in web.text("dialog .problem"))
    web.keys("\ue00c")
    web.until(lambda: not web.find("dialog[open]"))
    assert web.doc("editor.doc.nodes") == [], "the drawing is as it was"


def test_copy_download_and_share(web):
    web.example()
    web.click("[data-opens=export]")
    web.until(lambda: "dag" in web.run("return document.querySelector('dialog textarea').value"))
    web.click("dialog [data-do=copy]")
    web.wait("dialog .said")
    web.click("dialog [data-do=download]")
    assert b"dag" in web.downloaded("graph.txt")
    assert "graph.txt was downloaded" in web.text("dialog .said")
    web.click("dialog [data-do=picture]")
    assert web.downloaded("graph.png").startswith(b"\x89PNG")
    web.click("dialog [data-format=svg]")
    web.until(lambda: "<svg" in web.run("return document.querySelector('dialog textarea').value"))
    web.click("dialog [data-do=download]")
    assert b"<svg" in web.downloaded("graph.svg")
    web.click("dialog [aria-label=Close]")
    web.click("[data-opens=share]")
    web.until(lambda: "#g=" in web.run("return document.querySelector('dialog textarea').value"))
    shared = web.run("return document.querySelector('dialog textarea').value")
    assert "token" not in shared
    web.click("dialog [data-do=copy]")
    web.click("dialog [aria-label=Close]")
    web.open_text("S -> T")
    web.until(lambda: web.doc("editor.doc.nodes") == ["S", "T"])
    web.open_text(shared)
    web.until(lambda: web.doc("editor.doc.exposures") == ["A"])


def test_download_waits_for_the_notation_that_was_chosen(web):
    """Until the answer came, the one before was downloaded."""
    web.example()
    web.click("[data-opens=export]")
    web.until(lambda: "dag" in web.run("return document.querySelector('dialog textarea').value"))
    web.run(
        "const app = document.querySelector('.cw').workbench; const ask = app.ask;"
        "const held = new Promise((go) => { window.letGo = go; });"
        "app.ask = async (message) => { await held; return ask(message); }"
    )
    web.click("dialog [data-format=dot]")
    web.click("dialog [data-do=download]")
    web.run("window.letGo()")
    assert b"digraph" in web.downloaded("graph.dot")
    assert list(web.downloads.iterdir()) == []


def test_address_holds_the_drawing(web, address, tmp_path):
    web.until(lambda: "#g=" in web.driver.current_url)
    before = web.driver.current_url
    web.example()
    web.until(lambda: web.driver.current_url != before)
    fragment = web.driver.current_url.partition("#")[2]
    with served(tmp_path) as (_, other), browsing(tmp_path / "other") as second:
        second.open(f"{other}#{fragment}")
        second.until(lambda: second.doc("editor.doc.exposures") == ["A"])
        second.wait(".headline.good")
        assert second.doc("editor.doc.nodes") == web.doc("editor.doc.nodes")


def test_shared_link_opens_where_the_workbench_is_open_and_says_what_to_do_elsewhere(web, address, tmp_path):
    web.example()
    web.click("[data-opens=share]")
    web.until(lambda: "#g=" in web.run("return document.querySelector('dialog textarea').value"))
    shared = web.run("return document.querySelector('dialog textarea').value")
    web.until(lambda: "#g=" in web.driver.current_url)
    assert "token" not in web.driver.current_url, "what people copy from the address bar holds no secret"
    web.click("dialog [aria-label=Close]")
    web.open_text("S -> T")
    web.until(lambda: web.doc("editor.doc.nodes") == ["S", "T"])
    web.driver.get("about:blank")
    web.open(shared)
    web.until(lambda: web.doc("editor.doc.exposures") == ["A"])
    with browsing(tmp_path) as stranger:
        stranger.driver.get(shared)
        stranger.wait(".door h2")
        assert "ciplearn workbench" in stranger.text(".door")
        assert not stranger.find(".drawing")
        stranger.keys(shared, "\ue007")
        stranger.until(lambda: "not the whole address" in stranger.text(".door"))
        stranger.chord("\ue009", "a")
        stranger.keys(address)
        stranger.click(".door [data-key=open-address]")
        stranger.wait(".headline.good")
        assert stranger.doc("editor.doc.exposures") == ["A"]
        stranger.driver.refresh()
        stranger.wait(".headline.good")
        assert stranger.complaints() == []


def test_hostile_names_are_text_and_run_nothing(web):
    for graph in (twenty()["hostile names"], twenty()["hostile roles"]):
        web.open_text(graph.to_json())
        web.until(lambda graph=graph: web.doc("editor.doc.nodes.length") == len(graph.nodes))
        for tab in ("outline", "data", "train", "verdict"):
            web.click(f"#cw-tab-{tab}")
    web.until(lambda: HOSTILE[0] in web.text("#cw-panel-verdict"))
    assert web.run("return document.querySelectorAll('.cw script, .cw img').length") == 0
