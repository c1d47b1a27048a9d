"""Numbers as marks on a strip, for cells of a table: values with their intervals, all strips on one scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_WIDTH, _HEIGHT, _MARGIN = 190.0, 30.0, 8.0


@dataclass(frozen=True)
class Mark:
    """A value with its interval, and the class that it is drawn in."""

    value: float
    low: float
    high: float
    kind: str
    title: str = ""


@dataclass(frozen=True)
class Strip:
    """The scale that all strips of a table share."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float], *, zero: bool = False) -> Strip:
        """Take in all values, and zero where it is a reference."""
        known = [value for value in values if not math.isnan(value)] + ([0.0] if zero else [])
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def place(self, value: float) -> float:
        """Return where a value stands."""
        return _MARGIN + (value - self.low) / (self.high - self.low) * (_WIDTH - 2 * _MARGIN)

    def draw(self, marks: Sequence[Mark], label: str, limit: float | None = None) -> Markup:
        """Draw marks with their intervals under each other, with zero, and the zone within ± limit."""
        parts = []
        if limit is not None:
            left, right = (self.place(min(max(end, self.low), self.high)) for end in (-limit, limit))
            parts.append(f'<rect class="zone" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{_HEIGHT:g}"/>')
        if self.low <= 0 <= self.high:
            parts.append(f'<path class="zero" d="M{self.place(0):.1f},2V{_HEIGHT - 2}"/>')
        known = [mark for mark in marks if not math.isnan(mark.value)]
        for number, mark in enumerate(known):
            y = _HEIGHT * (number + 1) / (len(known) + 1)
            if mark.high > mark.low:
                ends = f"M{self.place(mark.low):.1f},{y:.1f}H{self.place(mark.high):.1f}"
                parts.append(f'<path class="whisker {mark.kind}" d="{ends}"/>')
            parts.append(self._mark(mark, y))
        return _document(parts, label)

    def draw_on_one_line(self, marks: Sequence[Mark], label: str) -> Markup:
        """Draw values on one rail, with the range that they span."""
        y, places = _HEIGHT / 2, [self.place(mark.value) for mark in marks]
        rail = f'<path class="rail" d="M{_MARGIN:g},{y:g}H{_WIDTH - _MARGIN:g}"/>'
        span = f'<path class="span" d="M{min(places):.1f},{y:g}H{max(places):.1f}"/>'
        return _document([rail, span, *(self._mark(mark, y) for mark in marks)], label)

    def _mark(self, mark: Mark, y: float) -> str:
        title = f"<title>{escape(mark.title)}</title>" if mark.title else ""
        return (
            f'<circle class="mark {mark.kind}" cx="{self.place(mark.value):.1f}" cy="{y:.1f}" r="4.4">{title}</circle>'
        )


def _document(parts: Sequence[str], label: str) -> Markup:
    return Markup(
        f'<svg class="strip" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
