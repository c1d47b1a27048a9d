"""Results of another drawing or table are not shown as if they were of this one; what is kept names the table."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.workbench.browser import browsing, needs_browser, served

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]

GRAPH = "region -> {age income}, sex -> {hours income}, age -> {hours income}, hours -> income"
APART = "#cw-panel-train [inert] .frontier"


def people(seed=0, n=150):
    chance = np.random.default_rng(seed)
    region, sex = chance.choice(["coast", "inland"], n), chance.choice(["f", "m"], n)
    age = 42.0 + 6 * (region == "inland") + chance.uniform(-20, 20, n)
    hours = 34 + 6 * (sex == "m") - 0.1 * (age - 42) + 4 * chance.normal(size=n)
    income = 0.8 * hours + 4 * (sex == "m") + 6 * (region == "coast") + 2 * chance.normal(size=n)
    return pd.DataFrame({"region": region, "sex": sex, "age": age, "hours": hours, "income": income})


def dropped(web, name, table):
    web.drop(".drawing", name, table.to_csv(index=False))
    web.until(lambda: web.find("#cw-panel-data h3") and web.text("#cw-panel-data h3") == name)
    web.click("#cw-tab-train")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A page on which the story was drawn, its table dropped, and a walk trained."""
    folder = tmp_path_factory.mktemp("story")
    with served(folder / "work") as (_, address), browsing(folder / "browser") as web:
        web.open(address)
        web.open_text(GRAPH)
        web.until(lambda: web.doc("editor.doc.nodes.length") == 5)
        for name, role in (("income", "outcomes"), ("sex", "exposures"), ("age", "exposures")):
            web.tap(web.place(name))
            web.click(f".selection [data-key={role}]")
        dropped(web, "applicants.csv", people())
        web.send("[data-key=learner]", "l")
        web.click("[data-key=train]")
        web.wait("[data-key=forget]", 150)
        yield web
        assert web.complaints() == []


def test_no_stop_lies_where_the_numbers_of_the_axis_stand(trained):
    web = trained
    web.click("#cw-tab-train")
    told = (
        "const { panels, runs } = document.querySelector('.cw').workbench; panels.train.told({ event: 'run', run: %s })"
    )
    none_left = "{ ...runs[0], stops: runs[0].stops.map((stop) => ({ ...stop, vcf: stop.free ? stop.vcf : 0 })) }"
    web.run(told % none_left)
    edge = "Math.{}(...[...document.querySelectorAll('.frontier {}')].map((one) => one.getBoundingClientRect().{}))"
    numbers, stops = edge.format("max", ".tick[text-anchor=end]", "right"), edge.format("min", "circle", "left")
    web.until(lambda: web.find(".frontier .halo"))
    assert web.run(f"return {numbers} <= {stops}")
    web.run(told % "runs[0]")


def test_amount_that_is_being_typed_outlives_what_a_training_says(trained):
    web = trained
    web.click("[data-key='section|What to ask']")
    web.click("[data-key='goal|vcf']")
    web.send("[data-key=amount]", "\ue009a\ue000", "0.0")
    web.run("const { panels, runs } = document.querySelector('.cw').workbench;"
            "panels.train.told({ event: 'run', run: runs[0] })")  # fmt: skip
    web.keys("7")
    web.until(lambda: web.doc("panels.train.choice.amount") == 0.07)
    web.click("[data-key='goal|limits']")
    web.click("[data-key='section|What to ask']")


def test_training_that_was_cancelled_before_its_start_was_answered_stays_away(trained):
    web = trained
    web.click("[data-key='section|What to ask']")
    app = "const app = document.querySelector('.cw').workbench;"
    web.run(
        f"{app} app.asked = app.ask; const held = new Promise((go) => {{ window.letGo = go; }});"
        "app.ask = async (message) => { const answer = await app.asked(message);"
        " if (message.do === 'train') await held; return answer; }"
    )
    web.click("[data-key=train]")
    web.click("[data-key=cancel]")
    web.wait("[data-key=forget]")
    web.run(f"{app} app.ask = app.asked; window.letGo()")
    web.until(lambda: not web.doc("panels.train.starting"))
    assert not web.find("progress")
    assert len(web.doc("runs")) == 1


def stale(web, what="another drawing"):
    return bool(web.find(APART)) and f"Trained for {what}: show it" in web.text("#cw-panel-train")


def test_results_of_another_drawing_say_so_and_lead_back(trained):
    web = trained
    assert not web.find(APART)
    web.click("[data-opens=examples]")
    web.click("[data-example=mbias]")
    web.until(lambda: stale(web))
    assert any("kept for audits" in words.text for words in web.find("#cw-panel-train [inert] p"))
    assert not web.find("#cw-panel-train .card.good")
    web.click("#cw-tab-whatif")
    web.until(lambda: "Trained for another drawing" in web.text("#cw-panel-whatif"))
    web.click("#cw-panel-whatif [data-key=show-trained]")
    web.wait(".pair", 60)
    assert not web.find("#cw-panel-whatif [inert]")
    web.click("#cw-tab-train")
    web.wait(".frontier")
    assert not web.find(APART)
    assert web.doc("editor.doc.nodes.length") == 5


def test_deleted_arrow_changed_role_and_another_table_dim_the_walk_and_undo_brings_it_back(trained):
    web = trained
    web.click("#cw-tab-train")
    web.tap(web.place("hours"))
    for key, what in (("context", "other roles"), ("adjusted", "other roles"), ("delete", "another drawing")):
        web.click(f".selection [data-key={key}]")
        web.until(lambda what=what: stale(web, what))
        web.click("[data-tool=undo]")
        web.until(lambda: not web.find(APART))
        web.tap(web.place("hours"))
    web.drag(web.place("hours"), (300, 600))
    web.wait(".frontier")
    assert not web.find(APART), "where a node stands changes nothing"
    dropped(web, "others.csv", people(seed=1))
    web.until(lambda: stale(web, "another table"))
    web.tap(web.place("hours"))
    web.click(".selection [data-key=delete]")
    web.until(lambda: stale(web, "another drawing and another table"))
    web.click("[data-tool=undo]")
    dropped(web, "applicants.csv", people())
    web.until(lambda: not web.find(APART))


def test_train_again_trains_for_what_is_drawn(trained):
    web = trained
    web.click("#cw-tab-train")
    web.tap(web.place("hours"))
    web.click(".selection [data-key=inputs]")
    web.until(lambda: stale(web, "other roles"))
    for tab in ("train", "whatif"):
        web.click(f"#cw-tab-{tab}")
        web.click(f"#cw-panel-{tab} [data-key=train-again]")
        web.wait("progress")
        assert "Trained for another" not in web.text("#cw-panel-train"), "what is at work is for this drawing"
        web.click("[data-key=cancel]")
        web.until(lambda: stale(web, "other roles"))
    web.click("[data-tool=undo]")
    web.until(lambda: not web.find(APART))


def test_knob_that_was_clicked_or_dragged_is_moved_by_keys(trained):
    web = trained
    web.click("#cw-tab-train")
    web.until(lambda: web.find("[data-key=walk]"))
    web.run("document.querySelector('[data-key=walk]').scrollIntoView({ block: 'center' })")
    box = web.find("[data-key=walk]")[0].rect

    def at(share):
        return box["x"] + share * box["width"], box["y"] + box["height"] / 2

    def stop():
        return int(web.run("return document.querySelector('[data-key=walk]').value"))

    def focused():
        return web.run("return document.activeElement.dataset.key ?? document.activeElement.tagName")

    web.run("window.scrollTo(0, 0)")
    web.tap(at(0.5))
    assert focused() == "walk"
    clicked = stop()
    web.keys("\ue012")  # left
    assert stop() == clicked - 1
    web.until(lambda: f"Stop {clicked} of" in web.text(".walk"))
    web.drag(at(clicked / int(web.run("return document.querySelector('[data-key=walk]').max"))), at(0.98), steps=6)
    assert stop() > clicked + 1, "the knob stays in the hand that drags it"
    assert focused() == "walk"
    web.keys("\ue011")  # home
    web.until(lambda: "Stop 1 of" in web.text(".walk"))
    key = web.run("return document.querySelector('.stop:not(.current)').dataset.stop")
    web.run("document.querySelector('.frontier').scrollIntoView()")
    web.click(f"[data-stop={key}] .dot")
    assert focused() == f"stop|{key}"


def test_every_stop_says_whether_it_passes(trained):
    web = trained
    web.click("#cw-tab-train")
    run = web.doc("runs[0]")

    def said():
        return web.text("#cw-panel-train .card.verdict")

    states = {"passes": "Passes", "fails": "Fails", "useless": "Useless", "cannot be told": "Cannot be told"}
    web.send("[data-key=walk]", "\ue011")  # home: the predictor without a constraint
    web.until(lambda: said().startswith("Fails\nThis stop does not keep the limits: effect up to"))
    chosen = next(stop for stop in run["stops"] if stop["key"] == run["chosen"])
    web.click(f"[data-stop={chosen['key']}] .dot")
    web.until(lambda: said().startswith(states[run["audit"]["conclusion"]["state"]]))
    assert "rows that no training has seen" in said()
    figures = web.run("return document.querySelector('.figures').textContent")
    assert not re.search(r"\de[-+]?\d", figures)


def test_small_and_large_figures_are_written_for_people(trained):
    web = trained
    told = (
        "const { panels, runs } = document.querySelector('.cw').workbench; panels.train.told({ event: 'run', run: %s })"
    )
    web.click("#cw-tab-train")
    web.run(told % "{ ...runs[0], stops: runs[0].stops.map((stop) => ({ ...stop, vcf: 0.000513, loss: 1234567 })) }")
    web.until(lambda: "0.00051" in web.text(".figures"))
    assert "1\u202f234\u202f567" in web.text(".figures")
    web.run(told % "runs[0]")


def test_what_if_opens_on_another_value_than_the_rows_own(trained):
    web = trained
    web.click("#cw-tab-whatif")
    web.wait(".pair", 60)
    web.send("[data-key=row]", "\ue015")  # down: another row
    web.until(lambda: web.find("tr.moved"))
    for name in [row.find_element("css selector", "th").text.split("\n")[0] for row in web.find("tr.moved")]:
        row = next(row.text for row in web.find("#cw-panel-whatif tbody tr") if row.text.startswith(name))
        assert row.replace("protected", "").split()[1] != row.replace("protected", "").split()[2]
    before, after = web.text(".pair .free .big").split(" → ")
    assert before != after


def test_what_if_marks_only_what_would_have_been_otherwise(trained):
    web = trained
    web.click("#cw-tab-whatif")
    web.wait(".pair", 60)
    web.click("#cw-panel-whatif [data-key=reset]")

    def moved():
        return {row.find_element("css selector", "th").text.split("\n")[0] for row in web.find("tr.moved")}

    web.until(lambda: moved() == set())
    now = web.run("return document.querySelector(\"[data-key='set|sex']\").value")
    web.send("[data-key='set|sex']", "m" if now == "f" else "f")
    web.until(lambda: moved() == {"sex", "hours"})
    region = next(row.text for row in web.find("#cw-panel-whatif tbody tr") if row.text.startswith("region"))
    assert region.split()[1] == region.split()[2]
    assert len(region.split()) == 3


def test_kept_report_names_the_file_that_was_chosen(trained):
    web = trained
    web.click("#cw-tab-train")
    web.click("[data-key=keep]")
    web.click("[data-key='get|report']", 150)
    report = web.downloaded("report.html").decode()
    assert "ciplearn fit applicants.csv" in report
    assert "ciplearn audit model applicants.csv" in report
