"""The sources of the page."""

from pathlib import Path

import pytest

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


def test_page_is_under_a_megabyte(page):
    assert sum(path.stat().st_size for path in page.iterdir()) < 1_000_000
