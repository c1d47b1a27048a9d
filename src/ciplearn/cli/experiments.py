"""``ciplearn demo`` and ``bench``: the idea at work, and what a penalty costs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ciplearn.cli.output import say, say_json


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report, the picture, the tables and the graph.")] = Path(
        "ciplearn-demo"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict the income of a bank's applicants so that sex has no influence, and audit that, in half a minute.

    For example:
      ciplearn demo --out demo-output
    """
    from ciplearn.experiments.demo import run_demo

    quiet = as_json or not sys.stderr.isatty()
    found = run_demo(out, say=(lambda text: None) if as_json else say, verbose=not quiet)
    if as_json:
        answer = {
            "sentences": found.sentences(),
            "comparison": found.comparison.to_dict(),
            "audit": found.report.audit.to_dict(),
            "verdict": found.report.audit.verdict.to_dict(),
            "truth": found.truth,
            "files": [str(path) for path in found.files],
        }
        say_json(answer)
        return
    say("\nWhat was seen")
    for number, sentence in enumerate(found.sentences(), start=1):
        say(f"  {number}. {sentence}")
    say("\nWritten: " + ", ".join(str(path) for path in found.files))


def bench(
    large: Annotated[
        bool, typer.Option("--large", help="Add the preparation on a million rows, about a minute.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what a penalty costs: ratios of times taken in turns, in one run, on one thread.

    For example:
      ciplearn bench --large
    """
    import torch

    from ciplearn.experiments.speed import measurements

    torch.set_num_threads(1)
    found = []
    for measurement in measurements(large=large):
        found.append(asdict(measurement))
        if not as_json:
            say(f"{measurement.name}: {measurement.ratio:.2f} × (goal {measurement.goal}; {measurement.detail})")
    if as_json:
        say_json(found)
