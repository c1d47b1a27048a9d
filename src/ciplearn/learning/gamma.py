"""The search for gamma: the largest that a tolerance allows, by bisection on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import positive, whole


@dataclass(frozen=True)
class ChosenGamma:
    """The outcome of a search."""

    # the largest tried gamma that was allowed, 0 if none was; for a bound on the penalty the smallest that meets it
    gamma: float
    remark: str  # what to know about the ends of the interval or about noise; empty if nothing


def largest_allowed_gamma(
    value_of: Callable[[float], float], allowed: Callable[[float], bool], low: float, high: float, max_trials: int
) -> ChosenGamma:
    """Bisect log gamma between ``low`` and ``high``.

    The rule, also where noise makes the value rise and fall: each step keeps the half whose lower end is allowed and
    whose upper end is not, and the answer is the largest gamma that was tried and allowed.

    ``value_of``: trains at a gamma and returns what the tolerance bounds. ``allowed``: whether a value is within the
    tolerance. ``low``, ``high``: ends of the interval. ``max_trials``: the largest number of gammas to try, ends
    included.
    """
    low, high = positive(low, "low"), positive(high, "high")
    whole(max_trials, "max_trials", minimum=2)
    if low >= high:
        raise InputError(f"low must be below high, got low={low:g} and high={high:g}; pass for example 1e-4 and 1e4.")
    tried = {high: allowed(value_of(high))}
    if tried[high]:
        return ChosenGamma(high, f"Even the largest gamma, {high:g}, is within the tolerance; raise high.")
    tried[low] = allowed(value_of(low))
    if not tried[low]:
        return ChosenGamma(0.0, f"Even the smallest gamma, {low:g}, is beyond the tolerance; gamma is 0.")
    inside, outside = low, high
    for _ in range(max_trials - len(tried)):
        middle = math.sqrt(inside * outside)
        if middle in tried:  # no number lies between them
            break
        tried[middle] = allowed(value_of(middle))
        inside, outside = (middle, outside) if tried[middle] else (inside, middle)
    return ChosenGamma(max(gamma for gamma, is_allowed in tried.items() if is_allowed), "")
