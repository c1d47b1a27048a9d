"""What the pages show as printed is what is printed: the words exactly, figures of trainings to a tenth."""

import os
import re
import shutil
from pathlib import Path

import pytest

from ciplearn.cli.app import run
from tests.datasets.adult_sample import FULL
from tests.pages import ROOT, blocks, commands_on, python_on

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documentation is not beside the tests")
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


def parted(text):
    """The words of a text with # for each number, and the numbers."""
    text = " ".join(text.split())
    return re.sub(_NUMBER, "#", text), [float(number) for number in re.findall(_NUMBER, text)]


def assert_printed(block, printed):
    """A block stands in what was printed, with figures that differ by a tenth at most."""
    (words, figures), (said, others) = parted(block), parted(printed)
    start = said.find(words)
    assert start >= 0, f"{block}\nis not printed. This is:\n{printed}"
    first = said[:start].count("#")
    assert figures == pytest.approx(others[first : first + len(figures)], rel=0.1, abs=0.02)


def outputs(page):
    return [block.text for block in blocks(page, "text") if not block.caption]


def walk(page, said):
    """Type what stands on a page; returns what was printed."""
    for words in commands_on(page):
        if words[0] == "ciplearn":
            assert run(words[1:]) in (0, 1), words
    return said.readouterr().out


def test_table_of_the_start_page_is_the_one_that_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(python_on("docs/start.md")), {})
    assert outputs("docs/start.md")[0] in capsys.readouterr().out


def test_readme_tells_the_story_of_the_start_page():
    (readme, *_), (start, *_) = python_on("README.md"), python_on("docs/start.md")
    assert set(start.splitlines()) - {"print(people.head(3))"} <= set(readme.splitlines())
    assert commands_on("docs/start.md")[1:] == [words for words in commands_on("README.md") if words[0] == "ciplearn"]


@pytest.mark.slow
def test_figures_of_the_start_page_are_those_of_its_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(python_on("docs/start.md")), {})
    (graph,) = (block for block in blocks("docs/start.md", "text") if block.caption)
    Path(graph.caption).write_text(graph.text)
    printed = walk("docs/start.md", capsys)
    assert "Passes: " in printed
    for block in (*outputs("docs/start.md")[1:], *outputs("README.md")):
        assert_printed(block, printed)
    report = re.sub(r"<[^>]+>", " ", Path("report.html").read_text(encoding="utf-8"))
    _, measured = parted(report)
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    pieces = page[page.index("## How to read this report") : page.index("Below that, the page shows")]
    for figure in parted(pieces)[1]:
        assert any(figure == pytest.approx(other, rel=0.1) for other in measured), figure


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Column .* holds levels that training never saw")
@pytest.mark.skipif(FULL is None, reason="the Adult files are not in the folder of CIPLEARN_DATA")
def test_figures_of_the_page_on_adult_are_those_of_its_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    os.symlink(FULL / "adult.data", "adult.data")
    printed = walk("docs/adult.md", capsys)
    for block in outputs("docs/adult.md"):
        assert_printed(block, printed)
