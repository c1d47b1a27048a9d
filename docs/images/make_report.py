"""Draw docs/images/report_pieces.png: the report of the start page with a number beside each piece.

Run: python docs/images/make_report.py (needs chromium; about two minutes)
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


def main():
    """Fit, audit, mark and photograph."""
    with tempfile.TemporaryDirectory() as folder:
        people = datasets.applicants().sample(2000, random_state=0).round(1)
        people.to_csv(f"{folder}/people.csv", index=False)
        Path(folder, "graph.txt").write_text(GRAPH)
        fit = "fit people.csv --graph graph.txt --outcome income --protected sex,age --out model"
        for command in (fit, "audit model people.csv --out report.html"):
            script = "import sys; from ciplearn.cli import main; sys.exit(main())"
            subprocess.run([sys.executable, "-c", script, *command.split()], cwd=folder, check=False)
        page = Path(folder, "report.html")
        marks = f"<style>{STYLE}</style></head>"
        page.write_text(page.read_text(encoding="utf-8").replace("</head>", marks), encoding="utf-8")
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1180"]
        shot = Path(folder, "shot.png")
        subprocess.run(["chromium", *options, f"--screenshot={shot}", page.as_uri()], check=True)
        Image.open(shot).convert("RGB").quantize(128).save(HERE / "report_pieces.png", optimize=True)


if __name__ == "__main__":
    main()
