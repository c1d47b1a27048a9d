"""From numbers to places on paper, with ticks where people expect them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# The part of an axis that is left to values which stand apart.
_APART = 0.12

# About so many ticks, and at most so many powers of ten.
_TICKS, _DECADES = 5, 6

# Below, powers of ten run out of digits.
_NEXT_TO_ZERO = 1e-300


@dataclass(frozen=True)
class Scale:
    """A map from [low, high] to [start, end], linear or logarithmic."""

    # low, high: ends of the data's range
    low: float
    high: float
    # start, end: where they lie on paper
    start: float
    end: float
    logarithmic: bool = False
    # where values below ``low`` stand, apart from the others: a logarithmic axis has no place for zero
    beneath: float | None = None

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Scale:
        """Take in all values, with a little air; a single value gets a range of its own size."""
        low, high = min(values), max(values)
        air = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
        return cls(0.0 if from_zero and low >= 0 else low - air, high + air, start, end)

    @classmethod
    def decades(cls, values: Sequence[float], start: float, end: float, depth: float = 0.0) -> Scale:
        """Take in positive values on a logarithmic scale; those below ``depth`` times the largest stand apart."""
        floor = max(depth * max(values), _NEXT_TO_ZERO)
        inside = [value for value in values if value >= floor] or [1.0]
        low, high = math.log10(min(inside)), math.log10(max(inside))
        air = max(0.06 * (high - low), 0.12)
        ends = 10 ** (low - air), 10 ** (high + air)
        if len(inside) == len(values):
            return cls(*ends, start, end, logarithmic=True)
        apart = _APART * (end - start)
        return cls(*ends, start + apart, end, logarithmic=True, beneath=start + apart / 2)

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        if self.beneath is not None and value < self.low:
            return self.beneath
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values inside the range."""
        return self._decade_ticks() if self.logarithmic else self._linear_ticks()

    def _linear_ticks(self) -> list[float]:
        rough = (self.high - self.low) / _TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + number) * step for number in range(count)]

    def _decade_ticks(self) -> list[float]:
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        decades = [10.0**power for power in range(first, last + 1)]
        if len(decades) > 2:
            return decades[:: math.ceil(len(decades) / _DECADES)]
        powers = range(first - 1, last + 1)
        return [v for power in powers for f in (1, 2, 5) if self.low <= (v := f * 10.0**power) <= self.high]
