"""Make the paper's tables and figures anew and judge its claims, from a checkout.

    python -m reproduction fig2-left --preset quick
    python -m reproduction dsprites --preset paper --device cuda --measure
    python -m reproduction judge

A run that was killed goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ciplearn._core.errors import CiplearnError
from ciplearn.cli.output import complain, prepare_streams, say, say_json
from reproduction.page import assemble
from reproduction.registry import find, names, order
from reproduction.runner import has_measured, judge, measure, reproduce

_PAGE, _JUDGE = "page", "judge"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and return the exit code; mistakes end in one line."""
    asked = _parser().parse_args(arguments)
    try:
        _run(asked)
    except CiplearnError as problem:
        complain(f"reproduction: {problem}")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "what",
        help=f"one of {', '.join(names())}; or page, to assemble the page of a folder, or judge, to judge what was "
        "measured there anew",
    )
    parser.add_argument("--preset", default="quick", help="quick: minutes on a CPU; paper: the paper's settings")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--out", type=Path, default=Path("reproduction-output"), help="where to write and to resume")
    parser.add_argument("--seed", type=_at_least(0), default=0, help="the first seed")
    parser.add_argument("--jobs", type=_at_least(1), default=os.cpu_count() or 1, help="processes on a CPU")
    parser.add_argument("--page", type=Path, help="where to write the page of all results; index.md in the folder")
    parser.add_argument("--data", help="a file or folder of data, for studies that read one")
    parser.add_argument("--measure", action="store_true", help="train and measure, and leave the judging for later")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        if int(text) < least:
            raise ValueError(text)
        return int(text)

    return number


def _run(asked: argparse.Namespace) -> None:
    page = asked.page or asked.out / "index.md"
    if asked.what in (_PAGE, _JUDGE):
        for study in (found for name in order() for found in find(name) if asked.what == _JUDGE):
            if has_measured(study, asked.out):
                judge(study, asked.out)
        count = assemble(asked.out, page)
        if asked.json:
            say_json({"page": str(page), "results": count})
        else:
            say(f"Written: {page}, {count} results")
        return
    how: dict[str, Any] = {
        "seed": asked.seed,
        "device": asked.device,
        "n_jobs": asked.jobs,
        "verbose": not asked.json and sys.stderr.isatty(),
        "options": {} if asked.data is None else {"data": asked.data},
    }
    results = []
    for study in find(asked.what):
        if asked.measure:
            measure(study, asked.preset, asked.out, **how)
            say(f"Measured: {asked.out / study.name}")
            continue
        results.append(reproduce(study, asked.preset, asked.out, **how))
        if not asked.json:
            _tell(results[-1], asked.out / study.name)
    if asked.measure:
        return
    assemble(asked.out, page)
    if asked.json:
        say_json(results)
    else:
        say(f"Written: {page}")


def _tell(result: dict[str, Any], folder: Path) -> None:
    say(f"{result['title']} ({result['seconds']:.0f} s): {folder}")
    for claim in result["claims"]:
        mark = "✓" if claim["holds"] else "✗"
        who = f" [{claim['method']}]" if claim["method"] else ""
        say(f"  {mark} {claim['claim']}{who}: {claim['statistic']}")


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
