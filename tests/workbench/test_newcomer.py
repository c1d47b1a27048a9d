"""A newcomer's path in a real browser: from an empty page to a model and a report, by clicks and keys alone."""

import io
import re
import zipfile
from contextlib import suppress

import pytest

from tests.workbench.browser import browsing, needs_browser, served

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]


@pytest.mark.slow
def test_newcomer_goes_from_an_empty_page_to_a_model_and_a_report(tmp_path):
    with served(tmp_path / "work") as (_, address), browsing(tmp_path / "browser") as web:
        web.open(address)
        web.click(".empty .primary")
        web.wait(".headline.good")
        web.click("#cw-tab-data")
        web.wait("[aria-label='Kind of A']")
        web.click("[data-key=falsify]")
        web.until(lambda: "cannot be judged" in web.text("#cw-panel-data"), 60)
        web.click("#cw-tab-train")
        web.click("[data-key=train]")
        web.wait("progress")
        web.wait("[data-key=forget]", 120)
        assert len(web.find("[data-stop]")) == 6
        # Walk by key, and by click on the drawing.
        for key, stop in (("\ue010", "stop 6 of 6"), ("\ue012", "stop 5 of 6")):  # End, Left
            web.find("[data-key=walk]")[0].send_keys(key)
            web.until(lambda stop=stop: stop in web.text("#cw-panel-train .walk"))
        web.run("document.querySelectorAll('[data-stop]')[3].dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        web.until(lambda: "gamma 0.3" in web.text("#cw-panel-train .walk"))
        figures = web.text(".figures")
        assert len(re.findall(r"\(.* to .*\)", figures)) >= 4
        web.click("[data-key='get|command']")
        assert b"--gamma=0.3" in web.downloaded("train.sh")
        web.click("[data-key='get|script']")
        assert b"CIPRegressor" in web.downloaded("train.py")
        web.click("[data-key=keep]")
        web.click("[data-key='get|model']", 120)
        names = zipfile.ZipFile(io.BytesIO(web.downloaded("model.zip"))).namelist()
        assert {"model/model.json", "model/weights.safetensors", "model/training.json"} <= set(names)
        web.click("[data-key='get|report']")
        assert b"<html" in web.downloaded("report.html")[:400].lower()
        web.click("#cw-tab-whatif")
        web.wait(".pair", 60)
        before = web.text(".pair")
        web.find("[data-key='set|A']")[0].send_keys("\ue014" * 10)
        web.until(lambda: web.text(".pair") != before)
        web.click("[data-key=reset]")
        web.until(lambda: web.text(".pair") == before)
        web.click("#cw-tab-train")
        web.click("[data-key=forget]")
        web.until(lambda: not web.find("[data-stop]"))
        assert web.complaints() == []


def test_cancel_leaves_the_page_ready_for_another_training(tmp_path):
    with served(tmp_path / "work", "--demo") as (_, address), browsing(tmp_path / "browser") as web:
        web.open(address)
        web.click("#cw-tab-train")
        web.click("[data-key=train]")
        web.click("[data-key=cancel]")
        web.until(lambda: not web.find("progress"))
        web.until(lambda: list((tmp_path / "work" / "runs").iterdir()) == [])
        assert web.find("[data-key=train]")[0].is_enabled()
        assert web.complaints() == []


def test_table_is_dropped_matched_and_its_kinds_are_changed(tmp_path):
    from selenium.common.exceptions import WebDriverException

    table = tmp_path / "people.csv"
    rows = "\n".join(f"{place % 2},{place % 3},{place}" for place in range(80))
    table.write_text(f"sex,<b>job</b>,pay\n{rows}\n")
    with served(tmp_path / "work") as (_, address), browsing(tmp_path / "browser") as web:
        web.open(address)
        web.click("#cw-tab-data")
        web.wait("[data-key=table-file]")
        web.find("[data-key=table-file]")[0].send_keys(str(table))
        web.wait("[aria-label='Kind of sex']")
        for name in ("sex", "<b>job</b>", "pay"):
            web.click(f"[aria-label='Add {name} to the drawing']")
            web.until(lambda name=name: name in web.doc("editor.doc.nodes"))

        def typed():
            # The list is drawn anew after each node: what was found a moment ago may be gone.
            with suppress(WebDriverException):
                web.find("[aria-label='Kind of sex']")[0].send_keys("c")
            return web.doc("editor.doc.kinds.get('sex')") == "category"

        web.until(typed)
        web.click("#cw-tab-data")
        web.add_node("wealth")
        web.click("[data-key='latent|wealth']")
        web.until(lambda: web.doc("editor.doc.latent") == ["wealth"])
        web.until(lambda: web.doc("editor.doc.nodes.length") == 4)
        web.find("[data-key=table-file]")[0].send_keys(__file__)
        web.until(lambda: "no table" in web.text(".notices"))
        assert web.run("return document.querySelectorAll('.cw table b').length") == 0
        assert web.complaints() == []
