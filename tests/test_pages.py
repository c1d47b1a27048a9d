"""What the pages show runs, and what they link to exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [page for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "theory") for page in sorted(folder.glob("*.md"))]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documentation is not beside the tests")


def python_on(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def anchors(page):
    """The anchors that a reader of Markdown gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.filterwarnings("ignore:Even")
def test_readme_runs_from_the_graph_to_the_audit(capsys):
    predictor, sketch, counterfactuals = python_on("README.md")
    assert "for batch in batches" in sketch  # names what a reader brings along; the example it links to runs elsewhere
    shorter = predictor.replace("sample(1000", "sample(200").replace("gamma=0.5", "gamma=0.5, epochs=30")
    assert shorter.count("epochs=30") == shorter.count("sample(200") == 1
    names = {}
    exec(shorter + counterfactuals, names)
    printed = capsys.readouterr().out
    assert printed.startswith("Holds: Ŷ ⊥ {A, L} | {Z} makes the predictor counterfactually invariant in {A}")
    assert "VCF =" in printed
    assert names["search"].best_gamma_ in names["search"].models_


def test_page_on_graphs_says_what_it_shows(capsys):
    names = {}
    exec("\n".join(python_on("docs/graphs.md")), names)
    assert capsys.readouterr().out.startswith("Holds: Ŷ ⊥ {A, L} | {S} makes the predictor")
    assert str(names["verdict"].independence) == "Ŷ ⊥ {A, L} | {S}"


def test_page_on_training_imagines_rows():
    imagined, loop = python_on("docs/training.md")
    assert "DatasetRows.of(dataset" in loop  # names what a reader brings along; the example it links to runs elsewhere
    names = {}
    exec(imagined, names)
    assert names["model"].route_ == "counterfactual"
    assert names["model"].penalty_value(names["table"].drop(columns="Y")) > 0


def test_page_on_doubt_says_what_it_shows(capsys):
    names = {}
    exec("\n".join(python_on("docs/doubt.md")), names)
    printed = capsys.readouterr().out
    assert "P(Y = 0 had X been 0 | X = 1, Y = 1) lies in [0.5, 0.75]. Sharp, " in printed
    assert "The graph is refuted at the 5% level by Y ⊥ {S} | {L}" in printed
    assert "False False" in printed
    drawn, truth = names["swing"].table["vcf"]
    assert drawn == pytest.approx(0.5, abs=0.15)
    assert truth == pytest.approx(0, abs=1e-9)
    assert not names["swing"].table["refuted"].any()
    assert "S would correlate the noises of A and L" in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    broken = []
    for link in links:
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_references_are_those_of_the_code():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
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
    written = {str(page.relative_to(docs).with_suffix("")) for page in PAGES if docs in page.parents}
    assert reached == written
