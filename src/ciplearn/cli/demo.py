"""``ciplearn demo`` and ``bench``: the idea at work, and what a penalty costs."""

from __future__ import annotations

from dataclasses import asdict

import torch

from ciplearn.cli.commands import Bench, Demo
from ciplearn.cli.output import say, say_json
from ciplearn.experiments import demo as experiment
from ciplearn.experiments import speed


def demo(asked: Demo) -> None:
    """Run the demo, and say what was seen."""
    shown = experiment.run_demo(asked.out, say=(lambda text: None) if asked.as_json else say)
    if asked.as_json:
        audit = shown.report.audit
        answer = {"sentences": shown.sentences(), "comparison": shown.comparison.to_dict(), "audit": audit.to_dict()}
        answer |= {"verdict": audit.verdict.to_dict(), "truth": shown.truth, "files": list(map(str, shown.files))}
        say_json(answer)
        return
    say("\nWhat was seen")
    for number, sentence in enumerate(shown.sentences(), start=1):
        say(f"  {number}. {sentence}")
    say("\nWritten: " + ", ".join(str(path) for path in shown.files))


def bench(asked: Bench) -> None:
    """Measure, and say each ratio as it is found."""
    torch.set_num_threads(1)
    ratios = []
    for measurement in speed.measurements(large=asked.large):
        ratios.append(asdict(measurement))
        if not asked.as_json:
            say(f"{measurement.name}: {measurement.ratio:.2f} × (goal {measurement.goal}; {measurement.detail})")
    if asked.as_json:
        say_json(ratios)
