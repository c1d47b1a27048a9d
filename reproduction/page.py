"""The page of all results in a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn._core.files import make_folder, write_file
from reproduction.markdown import claims_table, section, table
from reproduction.registry import find, order
from reproduction.statistics import RULE

_INTRODUCTION = """# The paper's tables and figures

This page is written by the program, from results that the program has written. In a checkout of the repository
`python -m reproduction NAME` makes one of them, `python -m reproduction all` every synthetic one; `--preset quick`
takes minutes on a laptop, `--preset paper` has the paper's settings and wants a GPU. A run that was killed goes on
where it was.

*Printed* is what the paper prints. *Paper's penalty* is what comes out with the paper's penalty, network, training and
scale; *default* is what ciplearn does when nothing but the graph, the roles, the batches and the length of training are
said. Gamma is the plain weight of the penalty in both (`gamma_scale=1.0`; see `docs/training.md`); routes on Adult and
dSprites that say so count it relative. Times are of the run that wrote the result: trainings that
another study has left behind are not counted. Every claim is judged by the program, by the statistic shown, with the
threshold fixed in the code; one that does not hold is reported as such. What is corrected in the paper's equations is
in `docs/errata.md`.

"""
_INTRODUCTION += f"{RULE} What could explain them is computed in the last section."


def assemble(folder: Path, page: Path) -> int:
    """Write the page of all results found in a folder and return how many there are."""
    results = [found for name in order() if (found := _read(folder / name / "result.json")) is not None]
    if not results:
        raise InputError(f"{folder} holds no results; run python -m reproduction NAME --out {folder} first.")
    make_folder(page.parent)
    base = Path(os.path.relpath(folder, page.parent))
    blocks = [_INTRODUCTION, "## Overview", _overview(results), _failures(results)]
    for result in results:
        remarks = find(result["study"])[0].remarks
        blocks.append(section(result, remarks, f"{(base / result['study']).as_posix()}/", level=2))
    write_file(page, "\n\n".join(block.strip() for block in blocks if block) + "\n")
    return len(results)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        return None
    except ValueError as error:
        raise InputError(f"{path} is not a result: {error}; delete it and run the study again.") from error


def _overview(results: list[dict[str, Any]]) -> str:
    rows = []
    for result in results:
        held = sum(claim["holds"] for claim in result["claims"])
        link = f"[{result['title']}](#{_anchor(result['title'])})"
        share = f"{held} of {len(result['claims'])}" if result["claims"] else "—"
        took = f"{result['seconds']:.0f} s"
        if result.get("reused"):
            took += ", resumed"
        rows.append((f"`{result['study']}`", link, result["preset"], share, took))
    return table(["name", "result", "preset", "claims that hold", "time"], rows)


def _failures(results: list[dict[str, Any]]) -> str:
    failed = [claim for result in results for claim in result["claims"] if not claim["holds"]]
    return f"Claims that do not hold:\n\n{claims_table(failed)}" if failed else ""


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")
