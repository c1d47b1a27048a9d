"""What the pages show runs, and what they link to exists."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from ciplearn import CausalGraph, __version__
from tests.datasets.adult_sample import write_files
from tests.pages import PAGES, ROOT, blocks, python_on
from tests.test_page_commands import OTHERS, STORY

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documentation is not beside the tests")


def anchors(page):
    """The anchors that a reader of Markdown gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_repairs_a_model_that_passes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec("\n".join(python_on("README.md")), names)
    assert "moves the prediction for the same row by no more than is allowed" in capsys.readouterr().out
    drawn = [block.text for block in blocks("docs/start.md", "text") if block.caption]
    assert [CausalGraph.from_edges(text) for text in drawn] == [names["graph"]]


def test_citations_are_of_the_same_paper_and_version():
    (entry,) = (block.text for block in blocks("README.md", "bibtex"))
    cited = pytest.importorskip("yaml").safe_load((ROOT / "CITATION.cff").read_text())
    paper = cited["preferred-citation"]
    fields = dict(re.findall(r"(\w+) += \{(.*)\}", entry))
    authors = " and ".join(f"{one['family-names']}, {one['given-names']}" for one in paper["authors"])
    assert fields == {**{name: str(paper[name]) for name in ("title", "journal", "year", "url")}, "author": authors}
    assert cited["version"] == __version__


def test_page_on_graphs_says_what_it_shows(capsys):
    names = {}
    exec("\n".join(python_on("docs/graphs.md")), names)
    assert capsys.readouterr().out.startswith(
        "Holds: a prediction that tells nothing about age and hours among rows with the same region"
    )
    assert str(names["verdict"].independence) == "Ŷ ⊥ {age, hours} | {region}"


def test_page_on_training_imagines_rows(capsys):
    scikit_learn, imagined, loop = python_on("docs/training.md")
    names = {}
    exec(scikit_learn, names)
    assert len(capsys.readouterr().out.split()) == 2
    exec(imagined, names)
    values = torch.randn(40, 2)
    dataset = [((row,), row.sum(0, keepdim=True), row[:1], row[1:]) for row in values]
    here = loop.replace(', device="cuda", workers=4', "").replace(", mixed_precision=True", "")
    assert len(here) < len(loop) - 30
    exec(here, {"dataset": dataset, "network": nn.Linear(2, 1)})
    assert names["model"].route_ == "counterfactual"
    assert names["model"].penalty_value(names["table"].drop(columns="Y")) > 0


def test_page_on_doubt_says_what_it_shows(capsys):
    names = {}
    exec("\n".join(python_on("docs/doubt.md")), names)
    printed = capsys.readouterr().out
    assert "P(Y = 0 had X been 0 | X = 1, Y = 1) lies in [0.5, 0.75]. Sharp, " in printed
    assert "The graph is refuted at the 5% level by income ⊥ {region} | {hours}" in printed
    assert "False False" in printed
    drawn, truth = names["swing"].table["vcf"]
    assert drawn == pytest.approx(0.5, abs=0.15)
    assert truth == pytest.approx(0, abs=1e-9)
    assert not names["swing"].table["refuted"].any()
    assert "region would correlate the noises of age and hours" in printed
    assert "2 ('S',) (4, 2)" in printed


# Pages whose blocks simply run, from the first to the last, with what is to be printed.
RUN_HERE = {
    "docs/start.md": "region sex  training",
    "docs/asked.md": "False True",
    "docs/guide/question.md": "coast",
    "docs/guide/graph.md": "The graph is not refuted",
    "docs/guide/verdict.md": "Ŷ ⊥ {age, hours, sex, training} | {region}",
    "docs/guide/routes.md": "Taken: ",
    "docs/guide/how-much.md": "gamma",
    "docs/guide/measure.md": "gamma 1",
    "docs/guide/doubt.md": "The graph is refuted",
    "docs/guide/report.md": "True",
    "docs/guide/networks.md": "",
    "docs/guide/scale.md": "rows",
    "docs/scale.md": "[",
    "docs/theory/definitions.md": "",
    "docs/theory/repair.md": ".",
    "docs/theory/counterexamples.md": "True False\n0.0\n2.0\nTrue False\nFalse\n",
    "docs/theory/penalties.md": "",
    "docs/theory/small-values.md": "VCF 1.0",
    "docs/theory/vcf.md": "0.05",
    "docs/theory/identification.md": "lies in [0.5, 0.75]. Sharp",
}
# Who runs the blocks of one language on a page: all of them, in the order in which they stand.
RUN_BY = {
    "python": {
        **dict.fromkeys(RUN_HERE, "test_pages.py"),
        "README.md": "test_pages.py",
        "docs/adult.md": "test_pages.py",
        "docs/baselines.md": "baselines/test_baselines_page.py",
        "docs/counterfactuals.md": "evaluation/test_counterfactuals_page.py",
        "docs/doubt.md": "test_pages.py",
        "docs/graphs.md": "test_pages.py",
        "docs/images.md": "reproduction/sprites/test_images_page.py",
        "docs/routes.md": "routes/test_routes_page.py",
        "docs/training.md": "test_pages.py",
        "docs/workbench.md": "workbench/test_widget.py",
    },
    "shell": {
        **dict.fromkeys((*STORY, *OTHERS, "CONTRIBUTING.md"), "test_page_commands.py"),
        "docs/workbench.md": "workbench/test_command.py",
    },
    "yaml": {"docs/command-line.md": "test_page_commands.py"},
    "text": dict.fromkeys(("README.md", "docs/start.md", "docs/adult.md"), "test_shown_figures.py"),
    "bibtex": {"README.md": "test_pages.py"},
}


# Pages that train for long.
LONG = {"docs/asked.md", "docs/guide/routes.md", "docs/guide/doubt.md", "docs/theory/identification.md"}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if page in LONG else []) for page in RUN_HERE]
)
def test_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(python_on(page)), {})
    assert RUN_HERE[page] in capsys.readouterr().out


def test_page_on_adult_reads_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("CIPLEARN_DATA", str(write_files(tmp_path)))
    names = {}
    exec("\n".join(python_on("docs/adult.md")), names)
    assert "income" in names["adult"].train


def test_every_block_of_every_page_is_run_by_a_test():
    standing = {(block.language, block.page) for page in PAGES for block in blocks(page)}
    assert standing == {(language, page) for language, pages in RUN_BY.items() for page in pages}
    for test, page in {(test, page) for pages in RUN_BY.values() for page, test in pages.items()}:
        assert Path(page).name in (ROOT / "tests" / test).read_text(encoding="utf-8"), f"{test} does not name {page}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    page = ROOT / page
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    broken = []
    for link in links:
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        if target.parent.name == "auto_gallery":  # written while the site is built
            target = ROOT / "docs" / "gallery" / {"index": "README.rst"}.get(target.stem, f"{target.stem}.py")
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_pictures_say_in_words_what_they_show(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    said = re.findall(r"!\[(.*?)\]\(", text) + re.findall(r'<img [^>]*alt="(.*?)"', text)
    assert len(said) == len(re.findall(r"!\[|<img ", text))
    assert [words for words in said if len(words.split()) < 4] == []


def test_examples_of_the_gallery_are_short():
    gallery = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
    assert gallery
    assert {path.name: n for path in gallery if (n := len(path.read_text(encoding="utf-8").splitlines())) > 80} == {}


def test_references_are_those_of_the_code_and_the_pages():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py"), *(ROOT / page for page in PAGES)]
    sources = "".join(path.read_text(encoding="utf-8") for path in files if path.name != "references.md")
    citations = re.findall(r"\[((?:[a-z]+[12]\d{3}(?:, )?)+)\]", sources)
    page = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\* `(\w+)`", page, re.MULTILINE))
    assert {key for keys in citations for key in keys.split(", ")} == listed


def test_every_page_is_reached_from_the_first():
    """By the lists of pages (toctrees) that Sphinx makes the navigation of, and by them alone."""
    docs, reached, waiting = ROOT / "docs", set(), ["index"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.startswith("auto_gallery"):  # written while the site is built
            continue
        reached.add(page)
        for block in re.findall(r"```\{toctree\}\n(.*?)```", (docs / f"{page}.md").read_text(), re.DOTALL):
            entries = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")]
            waiting += [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
    written = {page.removeprefix("docs/").removesuffix(".md") for page in PAGES if page.startswith("docs/")}
    assert reached == written
