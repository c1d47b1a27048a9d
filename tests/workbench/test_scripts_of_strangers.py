"""Names, levels, file names and shared links that hold scripts, in a real browser: they are text, and nothing runs."""

import base64
import json
import zlib

import pytest

from tests.workbench.browser import needs_browser

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]

IMAGE = "<img src=x onerror=window.owned=1>"
SCRIPT = "</script><script>window.owned=1</script>"
SVG = "<svg onload=window.owned=1>"
LINK = "javascript:window.owned=1"
NAMES = (IMAGE, SCRIPT, SVG, LINK)
TABS = ("outline", "data", "train", "whatif", "verdict")


def link(address, content):
    """The address that Share would give for a drawing, or for whatever else."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(json.dumps(content).encode()) + packer.flush()
    return f"{address.partition('#')[0]}#g={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def drawing(names):
    first, *_, last = names
    graph = {"nodes": list(names), "directed": [[name, last] for name in names[:-1]]}
    return {"graph": {**graph, "exposures": [first], "outcomes": [last]}, "context": None, "inputs": None, "kinds": {}}


def opened(web, address):
    # The same page with another fragment would not be loaded anew.
    web.driver.get("about:blank")
    web.open(address)


def look_everywhere(web):
    for tab in TABS:
        if any(one.is_enabled() for one in web.find(f"#cw-tab-{tab}")):
            web.click(f"#cw-tab-{tab}")
    for what in ("export", "share"):
        web.click(f"[data-opens={what}]")
        web.wait("dialog textarea")
        web.click("dialog [aria-label=Close]")
    assert web.run("return window.owned ?? null") is None
    assert web.run("return document.querySelectorAll('.cw script, .cw img, .cw iframe, .cw [onload]').length") == 0
    links = web.run("return [...document.querySelectorAll('a')].map((one) => one.protocol)")
    assert "javascript:" not in links


def test_names_of_a_shared_link_run_nothing(web, address):
    opened(web, link(address, drawing(NAMES)))
    web.until(lambda: web.doc("editor.doc.nodes") == list(NAMES))
    web.wait(".headline")
    look_everywhere(web)
    assert IMAGE in web.text("#cw-panel-verdict")


def test_file_names_columns_and_levels_of_a_table_run_nothing(web, address):
    opened(web, link(address, drawing(NAMES)))
    web.until(lambda: web.doc("editor.doc.nodes") == list(NAMES))
    rows = [",".join(f'"{name}"' for name in NAMES), *(",".join([IMAGE, SCRIPT, SVG, str(row)]) for row in range(70))]
    web.click("#cw-tab-data")
    web.drop(".cw", f"{IMAGE}.csv", "\n".join(rows))
    web.until(lambda: "70 rows" in web.text("#cw-panel-data"))
    look_everywhere(web)
    web.click("#cw-tab-data")
    assert IMAGE in web.text("#cw-panel-data")
    # What is no table is refused with its name in the sentence.
    web.drop(".cw", f"{SVG}.parquet", "no table")
    web.until(lambda: SVG in web.text(".notices"))
    look_everywhere(web)


def test_link_to_what_is_no_drawing_is_left_out_and_said(web, address):
    contents = [
        {"graph": {"nodes": json.loads("[" * 900 + "]" * 900)}},
        {"graph": {"nodes": ["\ud800"]}},
        {"graph": {"nodes": [{"toString": IMAGE}]}},
        {"graph": {"nodes": ["A"], "positions": {"A": [1e308, "x"]}}},
        {"graph": None},
        [IMAGE],
        IMAGE,
    ]
    drawn = [f"N{place}" for place in range(len(contents))]
    for name, content in zip(drawn, contents, strict=True):
        opened(web, link(address, content))
        web.until(lambda: "The drawing of the address was left out" in web.text(".notices"))
        assert web.run("return window.owned ?? null") is None
        web.add_node(name)
        web.until(lambda: web.text(".status") == "Saved")
        # A refused message is a 400, which the browser notes by itself.
        assert all("400" in entry["message"] for entry in web.complaints())
    opened(web, address)
    web.until(lambda: set(drawn) <= set(web.doc("editor.doc.nodes")))
