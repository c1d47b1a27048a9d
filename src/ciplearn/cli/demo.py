"""``ciplearn demo`` and ``bench``: the idea at work, and what a penalty costs."""

from __future__ import annotations

import sys
from dataclasses import asdict

import torch

from ciplearn.cli.commands import Bench, Demo
from ciplearn.cli.output import say, say_json
from ciplearn.experiments import demo as experiment
from ciplearn.experiments import speed


def demo(asked: Demo) -> None:
    """Run the demo, and say what was seen."""
    quiet = asked.as_json or not sys.stderr.isatty()
    found = experiment.run_demo(asked.out, say=(lambda text: None) if asked.as_json else say, verbose=not quiet)
    if asked.as_json:
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


def bench(asked: Bench) -> None:
    """Measure, and say each ratio as it is found."""
    torch.set_num_threads(1)
    found = []
    for measurement in speed.measurements(large=asked.large):
        found.append(asdict(measurement))
        if not asked.as_json:
            say(f"{measurement.name}: {measurement.ratio:.2f} × (goal {measurement.goal}; {measurement.detail})")
    if asked.as_json:
        say_json(found)
