"""A newcomer's path in a real browser: from an empty page to a model and a report, by clicks and keys alone."""

import io
import re
import zipfile

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
        web.wait("[aria-label='Kind of sex']")
        web.click("[data-key=falsify]")
        web.until(lambda: web.find("#cw-panel-data .card:is(.good, .bad, .warn)"), 90)
        web.click("#cw-tab-train")
        web.click("[data-key=train]")
        web.wait("progress")
        web.wait("[data-key=forget]", 240)
        assert "Meets the limits" in web.text("#cw-panel-train")
        assert "Audited on 800 rows that no training has seen" in web.text("#cw-panel-train")
        # Walk by key, and by click on the drawing.
        for key, stop in (("\ue010", "Stop 17 of 17"), ("\ue012", "Stop 16 of 17")):  # End, Left
            web.send("[data-key=walk]", key)
            web.until(lambda stop=stop: stop in web.text("#cw-panel-train .walk"))
        web.send("[data-key=walk]", "\ue011" + "\ue014" * 8)  # Home, Right
        web.until(lambda: "strength 3" in web.text("#cw-panel-train .walk"))
        assert "without a constraint" in web.text(".figures")
        web.click("[data-key='get|command']")
        assert b"--strength=3" in web.downloaded("train.sh")
        web.click("[data-key='get|script']")
        assert b"CIPRegressor" in web.downloaded("train.py")
        web.click("[data-key=keep]")
        web.click("[data-key='get|model']", 120)
        names = zipfile.ZipFile(io.BytesIO(web.downloaded("model.zip"))).namelist()
        assert {"model/repaired.json", "model/training.json", "model/fit.json"} <= set(names)
        assert len(re.findall(r"\(.* to .*\)", web.text("#cw-panel-train"))) >= 2, "figures have intervals"
        web.click("[data-key='get|report']")
        assert b"<html" in web.downloaded("report.html")[:400].lower()
        web.click("#cw-tab-whatif")
        web.wait(".pair", 60)
        web.click("[data-key=reset]")
        web.until(lambda: not web.find("tr.moved"))
        before = web.text(".pair")
        now = web.run("return document.querySelector(\"[data-key='set|sex']\").value")
        web.send("[data-key='set|sex']", "m" if now == "f" else "f")
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
    table = tmp_path / "people.csv"
    rows = "\n".join(f"{place % 2},{place % 3},{place}" for place in range(80))
    table.write_text(f"sex,<b>job</b>,pay\n{rows}\n")
    with served(tmp_path / "work") as (_, address), browsing(tmp_path / "browser") as web:
        web.open(address)
        web.click("#cw-tab-data")
        web.wait("[data-key=table-file]")
        web.send("[data-key=table-file]", str(table))
        web.wait("[aria-label='Kind of sex']")
        for name in ("sex", "<b>job</b>", "pay"):
            web.click(f"[aria-label='Add {name} to the drawing']")
            web.until(lambda name=name: name in web.doc("editor.doc.nodes"))

        # The list is drawn anew after each node: the key may go to one that is gone before it changes anything.
        kind = "editor.doc.kinds.get('sex')"
        web.until(lambda: web.doc(kind) == "category" or web.send("[aria-label='Kind of sex']", "c"))
        web.click("#cw-tab-data")
        web.add_node("wealth")
        web.click("[data-key='latent|wealth']")
        web.until(lambda: web.doc("editor.doc.latent") == ["wealth"])
        web.until(lambda: web.doc("editor.doc.nodes.length") == 4)
        web.send("[data-key=table-file]", __file__)
        web.until(lambda: "no table" in web.text(".notices"))
        assert web.run("return document.querySelectorAll('.cw table b').length") == 0
        assert web.complaints() == []
