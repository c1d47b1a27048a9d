"""Timing two things in one run, so that a ratio means something on a busy machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(*calls: Callable[[], object], rounds: int, repeats: int) -> list[float]:
    """Median seconds of each call, taken in turns: what slows the machine down slows all of them.

    ``rounds``: how often the calls take turns. ``repeats``: how often each is called in its turn; the turn's fastest
    call counts.
    """
    for call in calls:
        call()
    turns: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, turns, strict=True):
            times.append(min(seconds(call) for _ in range(repeats)))
    return [statistics.median(times) for times in turns]
