"""``ciplearn demo``, ``bench`` and ``reproduce``: the idea at work, what a penalty costs, the paper's results."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ciplearn.cli.output import say, say_json
from ciplearn.experiments.reproduction.registry import names

_PAGE, _JUDGE = "page", "judge"


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
    found = run_demo(out, say=(lambda text: None) if as_json else say, verbose=not quiet)
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


def bench(
    large: Annotated[
        bool, typer.Option("--large", help="Add the preparation on a million rows, about a minute.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what a penalty costs: ratios of times taken in turns, in one run, on one thread.

    Example: ciplearn bench --large
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


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(names())}; or page, to assemble the page of a folder, or judge, to judge what was "
            "measured there anew."
        ),
    ],
    preset: Annotated[str, typer.Option(help="quick: minutes on a CPU; paper: the paper's settings.")] = "quick",
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    out: Annotated[Path, typer.Option(help="Where to write, and to find what is already done.")] = Path(
        "reproduction-output"
    ),
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Processes on a CPU.", min=1)] = os.cpu_count() or 1,
    page: Annotated[
        Path | None, typer.Option(help="Where to write the page of all results; index.md in the folder by default.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A file or folder of data, for studies that read one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make the paper's tables and figures anew and judge its claims.

    Example: ciplearn reproduce fig2-left --preset quick
    """
    from ciplearn.experiments.reproduction.page import assemble
    from ciplearn.experiments.reproduction.registry import find, order
    from ciplearn.experiments.reproduction.runner import has_measured, judge
    from ciplearn.experiments.reproduction.runner import reproduce as run

    target = page or out / "index.md"
    if what in (_PAGE, _JUDGE):
        for study in (found for name in order() for found in find(name) if what == _JUDGE):
            if has_measured(study, out):
                judge(study, out)
        count = assemble(out, target)
        if as_json:
            say_json({"page": str(target), "results": count})
        else:
            say(f"Written: {target}, {count} results")
        return
    verbose = not as_json and sys.stderr.isatty()
    options = {} if data is None else {"data": str(data)}
    results = []
    for study in find(what):
        result = run(study, preset, out, seed=seed, device=device, n_jobs=jobs, verbose=verbose, options=options)
        results.append(result)
        if not as_json:
            _tell(result, out / study.name)
    assemble(out, target)
    if as_json:
        say_json(results)
    else:
        say(f"Written: {target}")


def _tell(result: dict[str, Any], folder: Path) -> None:
    say(f"{result['title']} ({result['seconds']:.0f} s): {folder}")
    for claim in result["claims"]:
        mark = "✓" if claim["holds"] else "✗"
        who = f" [{claim['method']}]" if claim["method"] else ""
        say(f"  {mark} {claim['claim']}{who}: {claim['statistic']}")
