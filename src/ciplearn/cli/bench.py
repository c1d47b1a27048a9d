"""``ciplearn bench``: what a penalty costs, as ratios."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ciplearn.cli.output import say, say_json


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
