"""``ciplearn demo``: the idea at work, no data needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ciplearn.cli.output import say, say_json


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report, the picture, the table and the graph.")] = Path(
        "ciplearn-demo"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a frontier on the paper's first synthetic case and measure its counterfactuals, in about a minute.

    Example:

      ciplearn demo --out demo-output
    """
    from ciplearn.experiments.demo import run_demo

    quiet = as_json or not sys.stderr.isatty()
    found = run_demo(out, say=(lambda text: None) if as_json else say, progress=not quiet)
    if as_json:
        answer = {
            "frontier": found.frontier.summary().to_dict(orient="records"),
            "chosen": found.chosen,
            "baselines": {name: {"vcf": vcf, "loss": loss} for name, (vcf, loss) in found.baselines.items()},
            "audit": found.audit.to_dict(),
            "verdict": found.verdict.to_dict(),
            "files": [str(path) for path in found.files],
        }
        say_json(answer)
        return
    say("\nWhat was seen")
    for number, sentence in enumerate(found.sentences(), start=1):
        say(f"  {number}. {sentence}")
    say("\nWritten: " + ", ".join(str(path) for path in found.files))
