"""What the page says in plain words, colours and folds; what a table and a reload leave."""

import itertools

from tests.workbench.browser import needs_browser

pytestmark = needs_browser


def test_verdict_is_in_words_first_explains_its_words_and_says_holds_once(web):
    web.example()
    card = web.run("return document.querySelector('.headline').textContent")
    words = "Among rows with the same Z, the prediction must tell nothing about A and L."
    assert card.index(words) < card.index("Ŷ ⊥ {A, L} | {Z}")
    assert card.count("Holds") == 1
    web.click(".headline [data-key='term|counterfactually invariant']")
    web.until(lambda: "A predictor whose answer is the same for every row" in web.text(".notices"))
    web.click("[data-key='section|Assumptions that data cannot show']")
    web.click("[data-key='to|data']")
    web.wait("#cw-panel-data")


def test_verdict_that_fails_begins_with_the_prediction_and_no_line_with_a_comma(web):
    web.example("loan")
    words = (
        "The prediction may still follow region, even if it tells nothing about region among rows with the same age."
    )
    web.until(lambda: web.text(".words") == words)
    held = "document.querySelector('.reason [data-key=\"term|latent\"]').parentNode"
    assert web.run(f"return [{held}.textContent, getComputedStyle({held}).whiteSpace]") == ["latent,", "nowrap"]


def test_what_is_selected_says_what_its_roles_mean(web):
    web.example()
    web.tap(web.place("A"))
    web.wait(".selection small")
    assert web.text(".selection small") == "What must not influence the prediction. The predictor sees it."
    assert "(key" not in web.text(".selection small")


def test_nothing_is_drawn_under_the_tools_or_the_roles_of_what_is_selected(web):
    web.look(820, 1100)
    web.example()
    web.tap(web.place("A"))
    web.wait(".selection small")

    def edge(of, side):
        return web.run(f"return document.querySelector(arguments[0]).getBoundingClientRect().{side}", of)

    heights = [web.place(name)[1] for name in ("Z", "A", "L", "Y")]
    assert edge(".tools", "bottom") < min(heights) < max(heights) < edge(".selection", "top")
    assert edge(".selection", "bottom") <= edge(".legend", "top")
    web.look(1440, 900)


def test_colours_are_explained_where_there_is_room_for_it(web):
    web.example()
    shown = {}
    for width, tab in ((1440, "data"), (820, "verdict"), (820, "data"), (390, "verdict")):
        web.look(width, 1100)
        web.click(f"#cw-tab-{tab}")
        shown[width, tab] = web.find(".legend")[0].is_displayed()
    assert shown == {(1440, "data"): True, (820, "verdict"): True, (820, "data"): False, (390, "verdict"): False}
    web.look(1440, 900)


def test_long_sets_are_folded_in_words_and_signs(web):
    names = [f"a_long_name_{place}" for place in range(9)]
    web.open_text(f"dag {{ A [exposure] Y [outcome] {' '.join(f'A -> {name} -> Y' for name in names)} }}")
    web.wait(".words")
    assert "A, a_long_name_0, a_long_name_1, a_long_name_2, a_long_name_3, a_long_name_4 and 4 more" in web.text(
        ".words"
    )
    assert names[-1] not in web.text(".headline")
    web.click(".words [data-key=unfold]")
    web.click(".statement [data-key=unfold]")
    web.until(lambda: web.text(".headline").count(names[-1]) == 2)


def test_causal_paths_open_paths_and_the_set_held_fixed_are_coloured(web):
    def coloured(kind):
        return set(web.doc(f"canvas.cy.edges('.{kind}').map((edge) => edge.data('from') + edge.data('to'))"))

    web.example()
    web.until(lambda: coloured("causal") == {"AL", "LY", "AY"})
    assert web.doc("canvas.cy.nodes('.given').map((node) => node.data('name'))") == ["Z"]
    assert coloured("biasing") == set()
    web.example("loan")
    web.until(lambda: coloured("biasing") == {"wealthregion", "wealthincome"})
    assert coloured("causal") == {"regionincome", "incomeloan"}


def test_number_of_a_test_stands_on_one_line(web):
    web.look(1280, 900)
    rows = "".join(f"{place % 7},{place % 5},{place % 3}\n" for place in range(105))
    web.drop(".empty", "people.csv", f"region,training,hours_of_work\n{rows}")
    web.click(".empty [data-key=draw-columns]")
    web.until(lambda: len(web.doc("editor.doc.nodes")) == 3)
    web.click("#cw-tab-data")
    web.click("[data-key=falsify]")
    web.wait("table.tests", 120)
    lines = web.run(
        "return [...document.querySelectorAll('table.tests td:nth-child(2)')].map((cell) => {"
        "  const text = document.createRange(); text.selectNodeContents(cell); return text.getClientRects().length })"
    )
    assert lines == [1, 1, 1]
    web.look(1440, 900)


def test_table_says_that_it_is_loaded_and_becomes_a_drawing_in_one_click(web):
    web.drop(".empty", "people.csv", "sex,age,pay\n1,2,3\n3,4,5\n")
    web.until(lambda: "people.csv is loaded" in web.text(".notices"))
    assert "people.csv is loaded" in web.text(".empty")
    web.click(".empty [data-key=draw-columns]")
    web.until(lambda: web.doc("editor.doc.nodes") == ["sex", "age", "pay"])
    web.click("[data-tool=undo]")
    web.click("#cw-panel-data [data-key=draw-columns]")
    web.until(lambda: web.doc("editor.doc.nodes") == ["sex", "age", "pay"])
    web.until(lambda: not web.find("#cw-panel-data [data-key=draw-columns]"))


def test_undo_survives_a_reload(web):
    web.add_node("A")
    web.add_node("B")
    web.click("[data-tool=undo]")  # B is V1 again
    web.until(lambda: web.text(".status") == "Saved")
    web.driver.refresh()
    web.wait("[data-tool=undo]:enabled")
    web.chord("\ue009", "y")
    web.until(lambda: web.doc("editor.doc.nodes") == ["A", "B"])
    for left in (["A", "V1"], ["A"]):
        web.click("[data-tool=undo]")
        web.until(lambda left=left: web.doc("editor.doc.nodes") == left)


def test_seventeen_columns_in_tiers_can_be_read(web):
    tiers = "a1, a2, a3 | b1, b2, b3, b4 | c1, c2, c3, c4, c5 | d1, d2, d3, d4 | bad"
    web.open_text(tiers)
    web.until(lambda: len(web.doc("editor.doc.nodes")) == 17)
    assert len(web.edges()) == 111
    boxes = web.run(
        "const { canvas, editor } = document.querySelector('.cw').workbench;"
        "const box = (name) => canvas.boxOf(name);"
        "return editor.doc.nodes.map((name) => [name, box(name).x1, box(name).y2 - box(name).y1])"
    )
    assert min(height for _, _, height in boxes) > 24
    left = {name: x for name, x, _ in boxes}
    columns = [[left[name] for name in tier.split(", ")] for tier in tiers.split(" | ")]
    assert all(max(column) < min(later) for column, later in itertools.pairwise(columns))


def test_notice_is_one_line_with_its_cross_beside_it_and_a_number_keeps_its_sign(web):
    web.run("document.querySelector('.cw').workbench.notices.show('a', 'Keeps 10 % of it.')")
    text, cross = ".notice span", ".notice [aria-label=Dismiss]"
    assert (
        web.run("return document.querySelector(arguments[0]).textContent", text) == "Keeps 10\N{NO-BREAK SPACE}% of it."
    )
    places = [web.find(selector)[0].rect for selector in (text, cross)]
    middles = [place["y"] + place["height"] / 2 for place in places]
    assert abs(middles[0] - middles[1]) < 8
    assert places[0]["x"] + places[0]["width"] <= places[1]["x"]
    web.click(cross)
