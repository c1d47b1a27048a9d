"""Numbers as they stand in sentences and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass

UNKNOWN = "–"

# Names of the models that are compared.
MODEL, FREE = "this model", "unconstrained"

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Beyond these, the unit of an outcome is written with a power of ten.
_TINY, _HUGE = 1e-4, 1e7


def short(value: float) -> str:
    """Write a number with three digits, without noise."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else _grouped(value, 0)
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def tied(words: str) -> str:
    """Keep a name, its sign of equality and the value on one line."""
    return words.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def percent(share: float | None) -> str:
    """Write a share; a share that is not zero is never written as zero, and one below a whole never as a whole."""
    if share is None or math.isnan(share):
        return UNKNOWN
    if 0 < share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1:
        return ">99.9 %"
    return "0 %" if share == 0 else "100 %" if share == 1 else f"{100 * share:.1f} %"


def decimal(value: float | None, digits: int = 3) -> str:
    """Write a score or a ratio with so many digits behind the point; what is not zero is never written as zero."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0"
    step = 10.0**-digits
    if abs(value) < step / 2:
        return f"{'>−' if value < 0 else '<'}{step:.{digits}f}"
    return _grouped(value, digits)


@dataclass(frozen=True)
class Unit:
    """How amounts of a prediction are written.

    Probabilities change by points, one point being 0.01. Other predictions are in the unit of the outcome, to a
    thousandth of the decade of its standard deviation.
    """

    probability: bool
    scale: float = 1.0  # the standard deviation of the outcome; not used for probabilities

    def amount(self, value: float | None, *, signed: bool = False) -> str:
        """Write how much a prediction changes."""
        if value is None or math.isnan(value):
            return UNKNOWN
        if self.probability:
            return f"{_signed(decimal(100 * value, 1), value, signed)} points"
        return _signed(self._in_units(value), value, signed)

    def allowed(self, limit: float) -> str:
        """Say how much is allowed."""
        return f"{self.amount(limit)} {'are' if self.probability else 'is'} allowed"

    @property
    def name(self) -> str:
        """What stands behind amounts, for the head of a column."""
        return " (points)" if self.probability else ""

    @property
    def factor(self) -> float:
        """How many units one is: a probability of one is a hundred points."""
        return 100.0 if self.probability else 1.0

    def bare(self, value: float | None) -> str:
        """Write how much a prediction changes, without its unit and with its sign."""
        return self.amount(value, signed=True).removesuffix(" points")

    def root(self, value: float | None) -> str:
        """Write the root of a mean square of changes."""
        return self.amount(None if value is None else math.sqrt(max(value, 0.0)))

    def between(self, low: float | None, high: float | None) -> str:
        """Write an interval of changes."""
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return UNKNOWN
        if self.probability:
            return f"{decimal(100 * low, 1)} to {decimal(100 * high, 1)}"
        return f"{self._in_units(low)} to {self._in_units(high)}"

    def level(self, value: float | None) -> str:
        """Write a prediction itself."""
        return percent(value) if self.probability else self.amount(value)

    def _in_units(self, value: float) -> str:
        decade = math.floor(math.log10(self.scale)) if self.scale > 0 and math.isfinite(self.scale) else 0
        if not _TINY <= 10.0**decade <= _HUGE:
            power = f" × 10{str(decade).translate(_SUPERSCRIPTS)}"
            return f"{decimal(value / 10.0**decade)}{power if value else ''}"
        return decimal(value, max(0, 3 - decade))


def _signed(text: str, value: float, signed: bool) -> str:
    return f"+{text}" if signed and value > 0 and not text.startswith("<") else text


def _grouped(value: float, digits: int) -> str:
    """A narrow space between thousands, and a minus sign that is as wide as a plus."""
    return f"{value:,.{digits}f}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "−")
