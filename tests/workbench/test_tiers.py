"""Graphs of many columns, written as tiers, in a real browser: legible, and in view whatever replaces the drawing."""

import pytest

from tests.workbench.browser import needs_browser

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]

TIERS = (
    ("birth_year", "gender", "origin", "parents_degree"),
    ("siblings", "school_type", "region_code"),
    ("grade_math", "grade_german"),
    ("degree", "work_years"),
    ("sector", "hours_week", "overtime"),
    ("commute_km", "savings"),
    ("rent",),
)
TEXT = " | ".join(", ".join(tier) for tier in TIERS)


def drawn(web, text):
    web.open_text(text)
    web.until(lambda: not web.find("dialog[open]"))


@pytest.fixture
def tiers(web):
    web.look(1280, 800)
    drawn(web, TEXT)
    web.until(lambda: web.doc("editor.doc.nodes.length") == 17)
    return web


def lettering(web):
    return web.doc("canvas.cy.zoom()") * 15


def boxes(web, selector):
    return web.doc(f"canvas.cy.nodes('{selector}').map((node) => node.renderedBoundingBox())")


def apart(one, other):
    return one["x2"] <= other["x1"] or other["x2"] <= one["x1"] or one["y2"] <= other["y1"] or other["y2"] <= one["y1"]


def in_view(web):
    wide, high = web.doc("canvas.cy.width()"), web.doc("canvas.cy.height()")
    whole = web.doc("canvas.cy.elements().renderedBoundingBox()")
    inside = whole["x1"] >= 0 and whole["y1"] >= 0 and whole["x2"] <= wide and whole["y2"] <= high
    return inside and max(whole["w"] / wide, whole["h"] / high) > 0.6


def test_seventeen_columns_are_legible_boxes_that_one_arrow_joins(tiers):
    web = tiers
    assert lettering(web) >= 11
    assert in_view(web)
    nodes, frames = boxes(web, "[name]"), boxes(web, ".tier")
    assert all(apart(one, other) for i, one in enumerate(nodes) for other in nodes[:i])
    assert len(frames) == 7
    assert all(apart(one, other) for i, one in enumerate(frames) for other in frames[:i])
    assert web.doc("canvas.cy.edges('.tier').length") == 6
    assert web.doc("canvas.cy.edges('.directed').map((edge) => edge.style('opacity')).every((one) => one < 0.3)")
    assert "acts on all that follow" in web.text(".legend")


def test_tiers_can_be_worked_on_like_any_drawing(tiers):
    web = tiers
    web.tap(web.place("gender"))
    web.click(".selection [data-key=exposures]")
    web.tap(web.place("rent"))
    web.click(".selection [data-key=outcomes]")
    web.wait(".statement")
    assert web.doc("canvas.selection.nodes") == ["rent"]
    # A node that leaves its tier takes the boxes with it: they would lie on each other.
    start, end = web.place("rent"), web.place("degree")
    web.drag(start, end)
    web.until(lambda: not boxes(web, ".tier"))
    assert "acts on all that follow" not in web.text(".legend")
    assert web.doc("canvas.cy.edges('.directed').every((edge) => edge.style('opacity') === '1')")
    web.click("[data-tool=undo]")
    web.until(lambda: len(boxes(web, ".tier")) == 7)
    # Without one arrow it is no drawing of tiers.
    web.run("const app = document.querySelector('.cw').workbench;"
            "app.canvas.selectEdge({ kind: 'directed', from: 'gender', to: 'rent' })")  # fmt: skip
    assert web.doc("canvas.cy.edges(':selected').style('opacity')") == "1"
    web.click(".selection [data-key=delete]")
    web.until(lambda: not boxes(web, ".tier"))


def test_drawing_that_is_replaced_as_a_whole_is_fitted_back_and_forth(web):
    web.look(1280, 800)
    web.example("demo")
    assert in_view(web)
    at_first = lettering(web)
    drawn(web, TEXT)
    web.until(lambda: web.doc("editor.doc.nodes.length") == 17)
    web.click("[data-tool=undo]")
    web.until(lambda: web.doc("editor.doc.nodes.length") == 6)
    assert lettering(web) == pytest.approx(at_first)
    assert in_view(web)
    web.click("[data-tool=redo]")
    web.until(lambda: web.doc("editor.doc.nodes.length") == 17)
    assert in_view(web)
    # A step within a drawing leaves the view where it is.
    web.click("[data-tool=in]")
    before = lettering(web)
    web.tap(web.place("degree"))
    web.click(".selection [data-key=exposures]")
    web.click("[data-tool=undo]")
    assert lettering(web) == before


@pytest.mark.parametrize("size", [(1280, 800), (820, 1000), (390, 844)])
def test_card_of_what_is_selected_covers_neither_the_legend_nor_its_own_sentence(web, size):
    web.look(*size)
    web.example("demo")
    web.tap(web.place("region"))
    web.wait(".selection small")
    card, legend = web.find(".selection")[0].rect, web.find(".legend")[0]
    assert legend.is_displayed() == (size[0] > 700)
    assert card["x"] >= 0
    assert card["x"] + card["width"] <= size[0]
    if legend.is_displayed():
        assert legend.rect["y"] >= card["y"] + card["height"]
    cut = "const one = document.querySelector('.selection small'); return one.scrollWidth > one.clientWidth"
    assert not web.run(cut)


def test_what_is_protected_is_not_said_to_stay_fixed(web):
    web.example("demo")
    web.tap(web.place("region"))
    web.until(lambda: "stays fixed" in web.text(".selection small"))
    web.tap(web.place("sex"))
    web.until(lambda: "must not influence" in web.text(".selection small"))
    assert "stays fixed" not in web.text(".selection small")
