"""Every control of the page is used once by hand: what was seen and never used is named."""

import json
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest

from tests.workbench.browser import browsing, needs_browser, served
from tests.workbench.recorder import RECORDER

pytestmark = [needs_browser, pytest.mark.usefixtures("page"), pytest.mark.slow]


def recorded(web, which):
    return set(json.loads(web.run("return localStorage.getItem(arguments[0])", which) or "[]"))


def table(folder):
    chance = np.random.default_rng(0)
    n = 240
    z, b, u = chance.normal(size=n), chance.choice(["x", "y"], size=n), chance.normal(size=n)
    a = z + chance.normal(size=n)
    middle = a + chance.normal(size=n)
    y = z + a + middle + (b == "x") + 0.3 * chance.normal(size=n)
    path = folder / "people.csv"
    pd.DataFrame({"Z": z, "A": a, "L": middle, "B": b, "U": u, "Y": y}).to_csv(path, index=False)
    return path


GRAPH = "dag { A [exposure] B [exposure] Y [outcome] Z -> {A L Y} A -> L -> Y A -> Y B -> Y }"


def undo_all(web):
    while web.find("[data-tool=undo]:enabled"):
        web.click("[data-tool=undo]")


def opened(web, text):
    web.click("[data-opens=paste]")
    web.wait("dialog [data-key=graph-text]")
    web.send("dialog [data-key=graph-text]", text)
    web.click("dialog [data-do=read]")
    web.until(lambda: not web.find("dialog[open]"))


def begins(web):
    """An empty page, and every way out of it."""
    for tab in ("outline", "data", "train", "whatif"):
        web.click(f"#cw-tab-{tab}")
    web.click("[data-key=to-train]")
    web.click("#cw-tab-verdict")
    web.click(".empty [data-key=examples]")
    web.click("[data-example=mediator]")
    web.wait(".headline.good")
    web.click("#cw-tab-train")
    web.click("[data-key=to-data]")
    undo_all(web)
    web.click("#cw-panel-data [data-key=demo]")
    web.until(lambda: web.doc("table"), 60)
    for where, tab in ((".empty", "verdict"), ("#cw-panel-verdict", "verdict"), ("#cw-panel-train", "train")):
        undo_all(web)
        web.click(f"#cw-tab-{tab}")
        web.click(f"{where} [data-key=demo]")
        web.until(lambda: web.doc("editor.doc.nodes.length") == 6)
    undo_all(web)
    web.click(".empty [data-key=draw-columns]")
    web.until(lambda: web.doc("editor.doc.nodes.length") == 6)
    undo_all(web)
    for opener in (
        ".empty [data-key=paste]",
        *(f"[data-opens={name}]" for name in ("examples", "export", "share", "help")),
    ):
        web.click(opener)
        web.click("dialog [data-do=close]")
        web.until(lambda: not web.find("dialog[open]"))
    for _ in range(3):
        web.click("[data-key=theme]")


def draws(web, tmp_path):
    """Nodes and edges by mouse and by the outline."""
    web.click("#cw-tab-verdict")
    web.click("[data-tool=add]")
    web.wait(".rename input")
    web.keys("income", "\ue007")
    web.tap((700, 560), times=2)
    web.wait(".rename input")
    web.keys("loan", "\ue007")
    web.until(lambda: web.doc("editor.doc.nodes") == ["income", "loan"])
    # The panel may be drawn anew between the key and the change.
    web.until(lambda: web.doc("editor.doc.outcomes") == ["loan"] or web.send("[data-key=role-outcome]", "l"))
    web.send("[data-key=role-protected]", "i")
    web.until(lambda: web.doc("editor.doc.exposures") == ["income"])
    web.click("[data-tool=directed]")
    web.drag(web.place("income"), web.place("loan"))
    web.click("[data-tool=bidirected]")
    web.drag(web.place("income"), web.place("loan"))
    web.until(lambda: web.doc("editor.doc.bidirected.length") == 1)
    web.click("[data-tool=select]")
    for tool in ("undo", "redo", "layout", "in", "out", "fit"):
        web.click(f"[data-tool={tool}]")
    web.tap(web.place("loan"))
    for key in ("outcomes", "exposures", "adjusted", "latent", "latent", "context", "context", "inputs", "inputs"):
        web.click(f".selection [data-key={key}]")
    web.click(".selection [data-key=rename]")
    web.wait(".rename input")
    web.keys("credit", "\ue007")
    web.click(".selection [data-key=connect]")
    web.send("dialog [data-key=edge-kind]", "↔")
    web.click("dialog [data-do=connect]")
    web.click(".selection [data-key=connect]")
    web.click("dialog [data-do=cancel]")
    middle = [sum(pair) / 2 for pair in zip(web.place("income"), web.place("credit"), strict=True)]
    web.tap(middle)
    for key in ("reverse", "bidirected", "undirected", "directed", "delete"):
        web.click(f".selection [data-key={key}]")
    web.until(lambda: web.doc("editor.doc.directed.length") == 0)
    web.tap(web.place("credit"))
    web.click(".selection [data-key=delete]")
    web.until(lambda: web.doc("editor.doc.nodes") == ["income"])
    outlines(web)
    undo_all(web)
    hands_on(web, tmp_path)


def outlines(web):
    web.click("#cw-tab-outline")
    web.send("[data-key=new-node]", "loan")
    web.click("#cw-panel-outline [data-key=add]")
    web.until(lambda: web.doc("editor.doc.nodes") == ["income", "loan"])
    web.send("#cw-panel-outline [data-key=from]", "l")
    web.send("#cw-panel-outline [data-key=to]", "i")
    web.send("#cw-panel-outline [data-key=edge-kind]", "\ue015")
    web.send("#cw-panel-outline [data-key=edge-kind]", "\ue013")
    web.click("#cw-panel-outline [data-key=connect]")
    web.until(lambda: web.doc("editor.doc.directed") == [["loan", "income"]])
    web.click("[data-key='reverse|loan → income']")
    web.send("[data-key='kind|income → loan']", "↔")
    web.click("[data-key='delete|income ↔ loan']")
    for label in ("Outcome", "Protected", "Adjust for", "Latent", "Latent", "In context", "Input"):
        web.click(f"[data-key='{label}|loan']")
    web.send("[data-key='name|loan']", "s", "\ue007")
    web.until(lambda: "loans" in web.doc("editor.doc.nodes"))
    web.click("[data-key='Delete|loans']")
    web.until(lambda: web.doc("editor.doc.nodes") == ["income"])


def hands_on(web, tmp_path):
    """Graphs from files, and into every notation."""
    opened(web, "S -> T")
    (tmp_path / "graph.txt").write_text(GRAPH)
    web.click("[data-opens=paste]")
    web.wait("dialog [data-key=graph-file]")
    web.send("dialog [data-key=graph-file]", str(tmp_path / "graph.txt"))
    web.until(lambda: web.run("return document.querySelector('dialog textarea').value") == GRAPH)
    web.click("dialog [data-do=read]")
    web.until(lambda: web.doc("editor.doc.nodes.length") == 5)
    web.click("[data-opens=export]")
    for notation in ("dot", "gml", "json", "edges", "svg", "dagitty"):
        web.click(f"dialog [data-format={notation}]")
    web.click("dialog [data-do=copy]")
    web.click("dialog [data-do=download]")
    web.downloaded("graph.txt")
    web.click("dialog [data-do=picture]")
    web.downloaded("graph.png")
    web.click("dialog [data-do=close]")
    web.click("[data-opens=share]")
    web.click("dialog [data-do=copy]")
    web.click("dialog [data-do=close]")
    web.click("[data-opens=help]")
    web.click("dialog [data-do=close]")


def judges(web):
    """Sets, reasons, paths and repairs."""
    web.click("#cw-tab-verdict")
    web.run("document.querySelector('.cw').workbench.canvas.connect('directed', 'Y', 'Z')")
    web.click("#cw-panel-verdict [data-key=undo]")
    web.wait(".headline.good")
    web.click("[data-key='section|Adjustment sets']")
    web.click("[data-key^='set|{']")
    web.click("[data-key='set|optimal']")
    web.click("[data-key='set|any']")
    web.run("document.querySelector('.cw').workbench.canvas.connect('bidirected', 'A', 'L')")
    web.tap(web.place("L"))
    web.click(".selection [data-key=connect]")
    web.send("dialog [data-key=to]", "\ue015")
    web.click("dialog [data-do=cancel]")
    web.click(".selection [data-key=context]")
    web.wait(".headline.bad")
    web.click("[data-key^='path|']")
    web.wait("[data-key^='repair|']")
    for title in recorded_titles(web):
        web.click(f'[data-key="section|{title}"]')
        web.click(f'[data-key="section|{title}"]')
    web.click(".headline [data-key^='term|']")
    web.click(".notice [data-key=dismiss]")
    web.click("[data-key='section|Assumptions that data cannot show']")
    web.click("#cw-panel-verdict [data-key='to|outline']")
    web.click("#cw-tab-verdict")


def recorded_titles(web):
    shown = "return [...document.querySelectorAll('#cw-panel-verdict summary')].map((one) => one.textContent)"
    return web.run(shown)


def enforces(web):
    """A statement that the graph does not certify is enforced only if one says so."""
    web.click("#cw-tab-train")
    assert not web.find("[data-key=anyway]")
    web.click("[data-key='goal|tolerance']")
    web.click("[data-key=anyway]")
    web.click("[data-key=train]")
    web.wait("progress")
    web.click("[data-key=cancel]")
    web.until(lambda: not web.find("progress"))
    web.click("[data-key='goal|limits']")
    web.click("#cw-tab-verdict")
    web.click("[data-key^='repair|']")
    web.wait(".headline.good")
    web.click("[data-tool=undo]")
    web.wait(".headline.bad")
    web.click("[data-tool=undo]")
    web.click("[data-tool=undo]")
    web.wait(".headline.good")


def checks(web, path):
    """A table by its file, its columns, and what it says of the drawing."""
    web.click("#cw-tab-data")
    web.wait("[data-key=table-file]")
    web.send("[data-key=table-file]", str(path))
    web.click("[data-key='add|U']")
    web.until(lambda: "U" in web.doc("editor.doc.nodes"))
    web.tap(web.place("U"))
    web.click(".selection [data-key=latent]")
    web.click("[data-key='observe|U']")
    web.until(lambda: web.doc("editor.doc.latent") == [])
    web.tap(web.place("U"))
    web.click(".selection [data-key=delete]")
    web.click("[data-tool=add]")
    web.wait(".rename input")
    web.keys("wealth", "\ue007")
    web.click("[data-key='latent|wealth']")
    web.until(lambda: web.doc("editor.doc.latent") == ["wealth"])
    web.click(".selection [data-key=delete]")
    web.until(lambda: "wealth" not in web.doc("editor.doc.nodes"))
    web.until(lambda: not web.find("[data-key^='latent|']"))
    web.click("[data-key=falsify]")
    web.until(lambda: web.find("#cw-panel-data .card:is(.good, .bad, .warn)"), 90)
    web.send("[data-key='kind|Z']", "c")
    web.until(lambda: web.doc("editor.doc.kinds.get('Z')") == "category")
    web.click("[data-tool=undo]")


def trains(web, folder):
    """Goal, learner and effort; a walk; a stop that is kept, cancelled, kept again and taken along."""
    web.click("#cw-tab-train")
    for goal in ("strict", "tolerance", "vcf"):
        web.click(f"[data-key='goal|{goal}']")
    web.send("[data-key=learner]", "l")
    web.until(lambda: web.doc("panels.train.choice.learner") == "linear")
    web.send("[data-key=preset]", "\ue015")  # down, and up again
    web.send("[data-key=preset]", "\ue013")
    web.send("[data-key=amount]", "\ue010", "1", "\ue004")  # 0.051
    web.until(lambda: web.doc("panels.train.choice.amount") == 0.051)
    web.click("[data-key=train]")
    web.wait("[data-key=forget]", 150)
    web.send("[data-key=walk]", "\ue012")
    web.until(lambda: web.find("[data-stop=s04]"))
    web.click("[data-stop=s04]")
    web.until(lambda: "strength 0.778" in web.text("#cw-panel-train .walk"))
    web.click("#cw-panel-train [data-key='term|VCF']")
    web.click(".notice [data-key=dismiss]")
    web.click("[data-key='section|What to ask']")
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    web.click("[data-key=keep]")
    web.click("[data-key=cancel-keep]", 60)
    web.wait("[data-key=keep]:enabled", 60)
    assert sorted(path.relative_to(folder) for path in folder.rglob("*") if path.name != "kept") == before
    web.click("[data-key=keep]")
    web.wait("[data-key='get|model']:enabled", 150)
    web.click("[data-key='section|By group, with 95 % intervals']")
    for what, name in (
        ("model", "model.zip"),
        ("report", "report.html"),
        ("command", "train.sh"),
        ("script", "train.py"),
    ):
        web.click(f"[data-key='get|{what}']")
        web.downloaded(name)


def imagines(web):
    web.click("#cw-tab-whatif")
    web.wait(".pair", 90)
    web.send("#cw-panel-whatif [data-key=row]", "\ue015")
    web.send("#cw-panel-whatif [data-key='set|A']", "\ue014\ue014")
    web.send("#cw-panel-whatif [data-key='set|B']", "\ue015")
    web.send("#cw-panel-whatif [data-key='set|B']", "\ue013")
    web.click("#cw-panel-whatif [data-key=reset]")
    web.tap(web.place("L"))
    web.click(".selection [data-key=inputs]")
    for tab, other in (("train", "whatif"), ("whatif", "train")):
        web.click(f"#cw-tab-{tab}")
        web.click(f"#cw-panel-{tab} [data-key=train-again]")
        web.click("#cw-panel-train [data-key=cancel]")
        web.click(f"#cw-tab-{other}")
        web.click(f"#cw-panel-{other} [data-key=show-trained]")
        web.until(lambda other=other: not web.find(f"#cw-panel-{other} [data-key=show-trained]"))
        web.click("[data-tool=undo]")
    web.click("[data-tool=redo]")
    web.click("#cw-tab-train")
    web.click("[data-key=forget]")
    web.until(lambda: not web.find("[data-stop]"))


def clashes(web, address):
    """Another page saves while this one is not saved."""
    root, _, token = address.partition("?token=")
    headers = {"content-type": "application/json", "x-token": token}
    app = "const app = document.querySelector('.cw').workbench;"
    for choice, name in (("Take theirs", "N"), ("Keep mine", "M")):
        web.run(f"{app} app.asked = app.ask; app.ask = (m) => m.do === 'save' ? {{ error: 'held' }} : app.asked(m)")
        web.click("[data-tool=layout]")
        web.until(lambda: web.text(".status") == "Not saved")
        graph = {"nodes": [name], "directed": []}
        content = {"graph": graph, "context": None, "inputs": None, "kinds": {}}
        message = {"do": "save", "document": content, "anyway": True, "client": "another"}
        urlopen(Request(f"{root}message", json.dumps(message).encode(), headers), timeout=20).close()
        web.wait(f"[data-key='{choice}']")
        web.run(f"{app} app.ask = app.asked")
        web.click(f"[data-key='{choice}']")
        web.until(lambda: web.text(".status") == "Saved")
    assert web.doc("editor.doc.nodes") == ["N"], "theirs was taken, and later mine was kept"


def test_every_control_that_can_be_seen_is_used(tmp_path):
    work = tmp_path / "work"
    with served(work) as (_, address), browsing(tmp_path / "browser") as web:
        web.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": RECORDER})
        web.open(address)
        begins(web)
        draws(web, tmp_path)
        judges(web)
        path = table(tmp_path)
        web.click("#cw-tab-data")
        web.wait("[data-key=table-file]")
        web.send("[data-key=table-file]", str(path))
        web.until(lambda: web.doc("table.name") == "people.csv")
        web.click("#cw-panel-data [data-key=draw-columns]")
        web.until(lambda: "U" in web.doc("editor.doc.nodes"))
        web.click("[data-tool=undo]")
        enforces(web)
        checks(web, path)
        trains(web, work)
        imagines(web)
        clashes(web, address)
        assert recorded(web, "seen") - recorded(web, "used") == set()
        assert len(recorded(web, "used")) > 100
        assert web.complaints() == []
