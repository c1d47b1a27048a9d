"""The sources of the page."""

import re
from pathlib import Path

import pytest

CONTROL = r'el\(\s*"(?:button|select|input|textarea|summary)'
COMMENT = r"(?s)/\*\*.*?\*/"
# What finds a control; a text that is only read needs none.
HANDLE = r'(?:"data-(?:key|tool|opens|do|format|example)"|readonly|\bid): (.*)'

SOURCES = Path(__file__).parents[2] / "workbench"
pytestmark = pytest.mark.skipif(not SOURCES.exists(), reason="the sources of the page are not beside the tests")


def files():
    return [path for path in (SOURCES / "src").rglob("*") if path.suffix in (".js", ".css", ".html")]


def test_no_file_is_longer_than_400_lines():
    assert [path.name for path in files() if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []


def test_no_text_becomes_markup():
    for path in files():
        text = path.read_text(encoding="utf-8")
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert way not in text, f"{path.name} uses {way}"


def test_nothing_is_fetched_from_elsewhere():
    for path in files():
        text = (
            path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "").replace("http://127.0.0.1/", "")
        )
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name


def test_every_control_has_a_handle_that_a_test_takes_hold_of():
    """A button without one could not be found, nor named by `test_every_control`, which uses them all."""
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    for path in (SOURCES / "src").rglob("*.js"):
        _, *controls = re.split(CONTROL, re.sub(COMMENT, "", path.read_text(encoding="utf-8")))
        for made in controls:
            handle = re.search(HANDLE, made)
            assert handle, f"{path.name}: this control has no data-key: {made[:120]}"
            literal = re.match(r'"([\w-]+)"', handle[1])
            assert literal is None or literal[1] in tests, f"{path.name}: no test takes hold of {literal[1]}"


def test_page_is_under_a_megabyte(page):
    assert sum(path.stat().st_size for path in page.iterdir()) < 1_000_000
