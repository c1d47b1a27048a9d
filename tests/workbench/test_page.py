"""The page in a real browser: drawing and seeing, by hands and by keys."""

import time

import pytest

from ciplearn import CausalGraph
from tests.workbench.browser import needs_browser

pytestmark = needs_browser


def test_empty_page_teaches_and_has_an_example_one_click_away(web):
    web.wait(".empty h2")
    web.click(".empty .primary")
    web.wait(".headline.good")
    assert web.text(".statement") == "Ŷ ⊥ {hours, sex, training} | {age, region}"
    assert not web.find(".empty")[0].is_displayed()


def test_node_is_added_by_double_click_named_and_renamed(web):
    web.run("document.querySelector('.empty').hidden = true")
    web.tap((400, 500), times=2)
    web.wait(".rename input")
    web.keys("smoking", "\ue007")
    web.until(lambda: web.doc("editor.doc.nodes") == ["smoking"])
    web.tap(web.place("smoking"), times=2)
    web.wait(".rename input")
    web.keys("Tar & <b>smoke</b>", "\ue007")
    web.until(lambda: web.doc("editor.doc.nodes") == ["Tar & <b>smoke</b>"])
    assert not web.find(".cw b"), "a name never becomes markup"


def test_edges_are_drawn_by_dragging_and_nodes_are_moved(web):
    for name, spot in (("A", (300, 400)), ("Y", (600, 400))):
        web.add_node(name)
        web.drag(web.place(name), spot)
    assert abs(web.place("Y")[0] - 600) < 12
    web.click("[data-tool=directed]")
    web.drag(web.place("A"), web.place("Y"))
    web.until(lambda: web.edges() == {("A", "Y")})
    web.click("[data-tool=bidirected]")
    web.drag(web.place("A"), web.place("Y"))
    web.until(lambda: web.doc("editor.doc.bidirected") == [["A", "Y"]])
    web.click("[data-tool=select]")
    web.drag(web.place("Y"), (600, 600))
    assert abs(web.place("Y")[1] - 600) < 12
    web.click("[data-tool=undo]")
    web.until(lambda: abs(web.place("Y")[1] - 400) < 12)
    web.click("[data-tool=redo]")
    web.until(lambda: abs(web.place("Y")[1] - 600) < 12)


def test_everything_works_by_keyboard(web):
    control = "\ue009"
    for name in ("A", "L", "Y"):
        web.add_node(name)
    web.keys(".")  # A, after Y
    web.keys("a")
    web.until(lambda: web.doc("editor.doc.exposures") == ["A"])
    web.keys("e")
    web.wait("dialog select[aria-label=To]")
    web.keys("L", "\ue007")
    web.until(lambda: web.edges() == {("A", "L")})
    web.keys(".", "l")
    web.until(lambda: web.doc("editor.doc.latent") == ["L"])
    web.keys("l", "b")
    web.wait("dialog select[aria-label=To]")
    web.keys("Y", "\ue007")
    web.until(lambda: web.doc("editor.doc.bidirected") == [["L", "Y"]])
    web.keys(".", "y")
    web.until(lambda: web.doc("editor.doc.outcomes") == ["Y"])
    web.wait(".statement")
    web.keys(",", "s")
    web.until(lambda: web.doc("editor.doc.adjusted") == ["L"])
    web.keys("s", "c")
    web.until(lambda: web.doc("editor.doc.context") == ["A"])
    web.keys("c", "i")
    web.until(lambda: web.doc("editor.doc.inputs") == ["A"])
    web.keys("i")
    at = web.place("L")
    web.keys("\ue015", "\ue014")  # down and right
    assert web.place("L")[0] > at[0]
    assert web.place("L")[1] > at[1]
    web.keys("o", "0")
    wide = web.doc("canvas.cy.zoom()")
    web.keys("+")
    assert web.doc("canvas.cy.zoom()") > wide
    web.keys("-")
    assert web.doc("canvas.cy.zoom()") == pytest.approx(wide)
    for key, tool in (("d", "directed"), ("u", "bidirected"), ("v", "select")):
        web.keys(key)
        assert web.find(f"[data-tool={tool}][aria-pressed=true]"), tool
    web.keys(".", ".")
    web.keys("\ue032")  # F2
    web.wait(".rename input")
    web.keys("M", "\ue007")
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "M", "Y"])
    web.keys("\ue017")  # Delete
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "Y"])
    web.chord(control, "z")
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "M", "Y"])
    web.chord(control, "y")
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "Y"])
    web.keys("\ue00c", "?")
    web.wait("dialog .keys")
    web.keys("\ue00c")
    web.until(lambda: not web.find("dialog[open]"))
    assert web.doc("editor.doc.directed") == [], "what was deleted took its edges along"


def test_keys_are_heard_on_a_fresh_page_and_after_every_click(web):
    control = "\ue009"
    web.keys("?")
    web.wait("dialog .keys")
    web.keys("n")  # a window has the keys for itself
    web.keys("\ue00c")
    web.until(lambda: not web.find("dialog[open]"))
    web.add_node("A")
    web.example()
    web.tap(web.place("L"))
    web.keys("\ue017")  # Delete
    web.until(lambda: "L" not in web.doc("editor.doc.nodes"))
    web.tap((500, 700))  # bare ground
    web.chord(control, "z")
    web.until(lambda: "L" in web.doc("editor.doc.nodes"))
    web.drag(web.place("L"), (600, 700))
    web.chord(control, "z")
    web.until(lambda: web.place("L")[1] < 650)
    web.click("#cw-tab-outline")
    web.chord(control, "\ue008", "z")
    web.until(lambda: web.place("L")[1] > 650)
    web.keys("\ue014")  # an arrow on a tab moves to the next one, and not the drawing
    web.wait("#cw-panel-data")
    web.add_node("after a click on a tab")
    at = web.place("L")
    web.tap(at)
    web.keys("\ue014")
    assert web.place("L")[0] > at[0]
    web.click("[data-tool=fit]")
    web.keys("\ue007")  # Enter presses the button that has the focus, and renames nothing
    assert not web.find(".rename")


def test_open_puts_the_cursor_into_the_text(web):
    web.click("[data-opens=paste]")
    web.wait("dialog textarea")
    web.keys("S -> T", "\ue004", "\ue007")  # Tab, Enter
    web.until(lambda: web.doc("editor.doc.nodes") == ["S", "T"])


def test_roles_are_given_by_click_and_every_button_of_a_selection_works(web):
    web.example()
    web.tap(web.place("L"))
    for key, role in (("adjusted", "adjusted"), ("latent", "latent"), ("exposures", "exposures")):
        web.click(f".selection [data-key={key}]")
        web.until(lambda role=role: "L" in web.doc(f"editor.doc.{role}"))
    web.click(".selection [data-key=exposures]")
    for key in ("context", "inputs"):
        web.click(f".selection [data-key={key}]")
        web.until(lambda key=key: web.doc(f"editor.doc.{key}") == ["A", "Z"])
        web.click(f".selection [data-key={key}]")
        web.until(lambda key=key: web.doc(f"editor.doc.{key}") is None)
    web.click(".selection [data-key=outcomes]")
    web.until(lambda: web.doc("editor.doc.outcomes") == ["L"])
    web.click(".selection [data-key=rename]")
    web.wait(".rename input")
    web.keys("M", "\ue007")
    web.click(".selection [data-key=connect]")
    web.click("dialog.small [type=button]")
    web.click(".selection [data-key=delete]")
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "Y", "Z"])
    assert all("L" not in edge and "M" not in edge for edge in web.edges())


def test_edge_is_turned_around_changed_and_deleted(web):
    web.example()
    web.run("document.querySelector('.cw').workbench.canvas.selectEdge({kind: 'directed', from: 'L', to: 'Y'})")
    web.click(".selection [data-key=reverse]")
    web.until(lambda: ("Y", "L") in web.edges())
    web.click(".selection [data-key=bidirected]")
    web.until(lambda: web.doc("editor.doc.bidirected") == [["Y", "L"]])
    web.click(".selection [data-key=undirected]")
    web.until(lambda: web.doc("editor.doc.undirected") == [["Y", "L"]])
    web.click(".selection [data-key=directed]")
    web.until(lambda: ("Y", "L") in web.edges())
    web.click(".selection [data-key=delete]")
    web.until(lambda: ("Y", "L") not in web.edges())
    assert web.doc("editor.doc.bidirected") == web.doc("editor.doc.undirected") == []


def test_latent_node_with_a_column_is_observed_and_not_added_twice(web):
    web.open_text("dag { A -> U U [latent] }")
    web.drop(".drawing", "people.csv", "A,U\n1,2\n3,4\n")
    web.click("[data-key='observe|U']")
    web.until(lambda: web.doc("editor.doc.latent") == [])
    assert web.doc("editor.doc.nodes") == ["A", "U"]


# Points along every edge that lie inside a third node.
BEHIND = """
const { cy } = document.querySelector('.cw').workbench.canvas;
const found = [];
for (const edge of cy.edges('.directed')) {
  const [s, t, c] = [edge.sourceEndpoint(), edge.targetEndpoint(), edge.controlPoints()?.[0]];
  const bow = c ?? { x: (s.x + t.x) / 2, y: (s.y + t.y) / 2 };
  for (const node of cy.nodes().not(edge.connectedNodes())) {
    const box = node.boundingBox();
    for (let u = 0; u <= 1; u += 0.02) {
      const [x, y] = ['x', 'y'].map((k) => (1 - u) ** 2 * s[k] + 2 * u * (1 - u) * bow[k] + u * u * t[k]);
      if (x > box.x1 && x < box.x2 && y > box.y1 && y < box.y2)
        found.push(`${edge.data('from')} → ${edge.data('to')} behind ${node.data('name')}`);
    }
  }
}
return found;
"""


@pytest.mark.parametrize("name", ["loan", "adult", "mbias", "mediator"])
def test_no_edge_runs_behind_a_third_node(web, name):
    web.example(name)
    assert web.doc("canvas.cy.edges('.bent').length") > 0
    assert web.run(BEHIND) == []


def test_what_the_table_said_of_another_drawing_is_not_shown(web):
    web.drop(".drawing", "graph.json", CausalGraph.from_edges("A -> B, B -> C").to_json())
    rows = "\n".join(f"{n % 7},{n % 5},{n % 7 + 0.1 * (n % 3)}" for n in range(200))
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "B", "C"])
    web.drop(".drawing", "people.csv", f"A,B,C\n{rows}\n")
    web.click("[data-key=falsify]")
    web.until(lambda: web.find("tr.refuted"), 60)
    assert web.doc("canvas.cy.edges('.ghost-refuted').length") == 1
    web.run("document.querySelector('.cw').workbench.canvas.connect('directed', 'A', 'C')")
    web.until(lambda: not web.find("tr.refuted"))
    assert web.doc("canvas.cy.edges('.ghost-refuted').length") == 0
    web.click("[data-tool=undo]")
    web.until(lambda: web.find("tr.refuted"))
    assert web.doc("canvas.cy.edges('.ghost-refuted').length") == 1


def test_cycle_is_named_and_undone_by_one_click(web):
    web.example()
    web.run("document.querySelector('.cw').workbench.canvas.connect('directed', 'Y', 'Z')")
    web.wait(".card.bad [data-key], .card.bad button")
    assert "cycle" in web.text(".card.bad")
    web.click(".card.bad button")
    web.wait(".headline.good")


def test_open_path_lights_up_and_a_repair_is_applied_and_undone(web):
    web.example("loan")
    web.wait(".headline.bad")
    web.click(".against button.path")
    assert web.doc("canvas.cy.edges('.lit').length") == 3
    assert web.doc("canvas.cy.nodes('.ghost').length") == 1, "Ŷ is drawn for the while"
    web.click(".against button.path")
    assert web.doc("canvas.cy.elements('.lit, .ghost').length") == 0
    web.click(".row .primary")
    web.wait(".headline.good")
    web.click("[data-tool=undo]")
    web.wait(".headline.bad")


def test_adjustment_set_is_used_and_given_back(web):
    web.example()
    web.click("[data-key='section|Adjustment sets']")
    web.click("[data-key='set|{ Z }']")
    web.until(lambda: web.doc("editor.doc.adjusted") == ["Z"])
    web.click("[data-key='set|any']")  # the section is still open
    web.until(lambda: web.doc("editor.doc.adjusted") == [])
    web.until(lambda: web.text(".statement") != "")
    assert web.text(".statement") == "Ŷ ⊥ {A, L} | {Z}", "chosen anew, and the same"


def test_outline_edits_everything_with_ordinary_controls(web):
    web.click("#cw-tab-outline")
    for name in ("A", "Y"):
        web.wait("[data-key=new-node]")
        web.send("[data-key=new-node]", name, "\ue007")
        web.until(lambda name=name: name in web.doc("editor.doc.nodes"))
    web.click("[data-key='Protected|A']")
    web.click("[data-key='Outcome|Y']")
    web.click("#cw-panel-outline [data-key=connect]")
    web.until(lambda: web.edges() == {("A", "Y")})
    web.click("[aria-label='Reverse A → Y']")
    web.until(lambda: web.edges() == {("Y", "A")})
    web.click("[aria-label='Delete Y → A']")
    web.until(lambda: web.edges() == set())
    web.click("[aria-label='Delete A']")
    web.until(lambda: web.doc("editor.doc.nodes") == ["Y"])
    web.send("#cw-tab-outline", "\ue012")
    web.wait("#cw-panel-verdict")
    assert web.doc("editor.doc.outcomes") == ["Y"]
    assert web.doc("editor.doc.exposures") == []


def test_zoom_layout_and_themes(web):
    web.example()
    before = web.doc("canvas.cy.zoom()")
    web.click("[data-tool=in]")
    assert web.doc("canvas.cy.zoom()") > before
    web.click("[data-tool=out]")
    web.click("[data-tool=fit]")
    places = web.doc("canvas.cy.nodes().map((node) => node.position('x'))")
    web.click("[data-tool=layout]")
    web.until(lambda: web.doc("canvas.cy.nodes().map((node) => node.position('x'))") != places)
    seen = []
    for _ in range(3):
        seen.append(web.run("return document.querySelector('.cw').dataset.theme"))
        web.click("header .icon[aria-label^=Colours]")
    assert seen == ["auto", "light", "dark"]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_on_desk_and_phone_light_and_dark(web, width, height, dark):
    web.look(width, height, dark)
    try:
        web.example("loan")
        for tab in ("verdict", "outline", "data", "train", "whatif"):
            web.click(f"#cw-tab-{tab}")
            assert web.run("return document.documentElement.scrollWidth") <= width
            wide = "const p = document.querySelector('.panel:not([hidden])'); return p.scrollWidth - p.clientWidth"
            assert web.run(wide) <= 0, tab
        lightness = web.run(
            "return getComputedStyle(document.querySelector('.cw')).backgroundColor.match(/[0-9]+/g).map(Number)"
        )
        assert (sum(lightness) < 200) == dark
    finally:
        web.look(1440, 900)


def test_a_question_that_a_newer_one_replaces_is_never_asked(web):
    web.example("mediator")  # which has no table that judges anew
    web.run(
        """const sent = window.fetch; window.judged = []; window.underWay = 0; window.most = 0;
        window.fetch = async (path, options) => {
          const judges = typeof options?.body === "string" && JSON.parse(options.body).do === "judge";
          if (judges) { window.judged.push(1); window.most = Math.max(window.most, (window.underWay += 1)); }
          if (judges) await new Promise((done) => setTimeout(done, 400));
          const answer = await sent(path, options);
          if (judges) window.underWay -= 1;
          return answer;
        }"""
    )
    for name in ("P", "Q", "R", "T"):
        web.run("document.querySelector('.cw').workbench.canvas.connect('directed', arguments[0], 'Y')", name)
    web.until(lambda: web.run("return window.judged.length > 0 && window.underWay === 0"))
    # Between two questions none is under way, either.
    time.sleep(1)
    web.until(lambda: web.run("return window.underWay === 0"))
    assert web.run("return window.most") == 1
    assert web.run("return window.judged.length") <= 2, "at most the first drawing and the last"
