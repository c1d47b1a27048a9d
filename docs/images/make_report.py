"""Draw the report of the start page: report_pieces.png with a number beside each piece, report.png in two columns.

Run: python docs/images/make_report.py (needs chromium; a few minutes). It prints the figures that the start page
quotes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from ciplearn import datasets

HERE = Path(__file__).parent
GRAPH = """
region -> {age training income}
sex -> {training hours income}
age -> {training hours income}
training -> income
hours -> income
"""
# What each number of the page's list stands beside, and where.
PIECES = {
    ".band .state": (-34, 2),
    ".checks li:nth-child(1)": (-34, 2),
    ".checks li:nth-child(2)": (-34, 2),
    ".checks li:nth-child(3)": (-34, 2),
    ".band .rests": (-34, 2),
    ".tiles .tile:nth-child(2)": (-12, -12),
    "section:first-of-type .keys + .wide tbody tr:first-child th:first-child": (-30, 10),
}
STYLE = "main { padding-left: 44px } .wide { overflow: visible }" + "".join(
    f"{place} {{ position: relative }} {place}::before {{ content: '{number}'; position: absolute; left: {left}px; "
    f"top: {top}px; width: 24px; height: 24px; border-radius: 12px; background: #1b5fa8; color: white; "
    "font: 600 14px/24px sans-serif; text-align: center; z-index: 9 }"
    for number, (place, (left, top)) in enumerate(PIECES.items(), start=1)
)


# The left column ends with what changing sex does.
FIRST = "main > section:nth-of-type(n+2) { display: none !important }"
# The right column: who is predicted too high or too low, what it costs, how wrong it may be, and the appendix.
FURTHER = "main > *:not(section:nth-of-type(n+2)) { display: none !important }"


def photographed(page, style, size):
    """Return a picture of the page, with a style of its own, as an image."""
    shown, shot = page.with_name("shown.html"), page.with_name("shot.png")
    text = page.read_text(encoding="utf-8").replace("</head>", f"<style>{style}</style></head>")
    shown.write_text(text, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size}"]
    subprocess.run(["chromium", *options, f"--screenshot={shot}", shown.as_uri()], check=True, capture_output=True)
    return Image.open(shot).convert("RGB")


def save(image, name):
    """Write a picture small enough for a page."""
    image.quantize(256, Image.Quantize.MAXCOVERAGE).save(HERE / name, optimize=True)


def main():
    """Fit, audit, mark and photograph."""
    with tempfile.TemporaryDirectory() as folder:
        people = datasets.applicants().sample(4000, random_state=0).round(1)
        people.to_csv(f"{folder}/people.csv", index=False)
        Path(folder, "graph.txt").write_text(GRAPH)
        fit = "fit people.csv --graph graph.txt --outcome income --protected sex --out model"
        for command in (fit, "audit model people.csv --out report.html"):
            script = "import sys; from ciplearn.cli import main; sys.exit(main())"
            subprocess.run([sys.executable, "-c", script, *command.split()], cwd=folder, check=True)
        draw(Path(folder, "report.html"))


def draw(page):
    """Photograph a report."""
    save(photographed(page, STYLE, "1000,1330"), "report_pieces.png")
    beside = Image.new("RGB", (1440, 900))
    for place, style in ((0, FIRST), (720, FURTHER)):
        half = photographed(page, style, "1000,1250").resize((720, 900), Image.Resampling.LANCZOS)
        beside.paste(half, (place, 0))
    save(beside, "report.png")


if __name__ == "__main__":
    main()
