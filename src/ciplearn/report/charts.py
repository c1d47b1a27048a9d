"""Charts, and strips for cells of a table, as inline SVG; colours come from the page, for light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ciplearn.evaluation.scores import short

_WIDTH, _HEIGHT = 460.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 76.0, 18.0, 16.0, 52.0
_LABEL_WIDTH, _LABEL_HEIGHT, _LETTER = 78.0, 17.0, 6.8  # room that a label takes
_DEPTH = 1e-4  # how far below the largest value a logarithmic axis goes

# One per baseline, in this order; with the colours of the page they are told apart by more than their hue.
SHAPES = (
    "M-6,-6h12v12h-12z",
    "M0,-7.5L7,5.5H-7z",
    "M0,-7.5L7.5,0L0,7.5L-7.5,0z",
    "M0,7.5L7,-5.5H-7z",
    "M-2.5,-7h5v4.5h4.5v5h-4.5v4.5h-5v-4.5h-4.5v-5h4.5z",
    "M-7,-3L0,-8L7,-3L4.5,6.5H-4.5z",
)

# A strip, the room under it that an axis takes, and about how many ticks that has.
_STRIP_WIDTH, _STRIP_HEIGHT, _MARGIN, _AXIS, _STRIP_TICKS = 190.0, 30.0, 14.0, 20.0, 4
_APART = 0.12  # the part of an axis that is left to values which stand apart
_TICKS, _DECADES = 5, 6  # about so many ticks, and at most so many powers of ten
_NEXT_TO_ZERO = 1e-300  # below, powers of ten run out of digits
_Box = tuple[float, float, float, float]  # left, top, right, bottom


def look(number: int) -> str:
    """The classes of a line and its dots: a colour with its dashes, and after those hollow dots."""
    return f"p{number % 6}{' hollow' if number % 12 > 5 else ''}"


@dataclass(frozen=True)
class Scale:
    """A map from [low, high] to [start, end], linear or logarithmic."""

    low: float  # ends of the data's range
    high: float
    start: float  # where they lie on paper
    end: float
    logarithmic: bool = False
    beneath: float | None = None  # where values below ``low`` stand: a logarithmic axis has no place for zero

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

    def ticks(self, about: int = _TICKS) -> list[float]:
        """Return about so many round values inside the range; powers of ten on a logarithmic scale."""
        if self.logarithmic:
            return self._decade_ticks()
        rough = (self.high - self.low) / about
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
        marks = [v for power in powers for f in (1, 2, 5) if self.low <= (v := f * 10.0**power) <= self.high]
        return marks if len(marks) <= 7 else marks[::2]


@dataclass(frozen=True)
class Dot:
    """A point of a chart: where it is, its gamma, whether it was chosen, and its label where that is not its gamma."""

    x: float
    y: float
    gamma: float
    chosen: bool = False
    name: str = ""

    @property
    def label(self) -> str:
        """What stands beside it."""
        return self.name or f"γ = {short(self.gamma)}"


def trade_off(paths: Sequence[Sequence[Dot]], baselines: Sequence[Dot], x_label: str, y_label: str) -> Markup:
    """Draw a cost against a violation: candidates on paths, baselines as points; several paths are named by a key."""
    every = [*(dot for path in paths for dot in path), *baselines]
    frame = _Frame(
        Scale.around([dot.x for dot in every], _LEFT, _WIDTH - _RIGHT, from_zero=True),
        Scale.around([dot.y for dot in every], _HEIGHT - _BOTTOM, _TOP),
    )
    parts = [frame.line(path, look(number)) for number, path in enumerate(paths)]
    for number, dot in enumerate(baselines):
        place, (x, y) = number % len(SHAPES), frame.place(dot)
        title = f"<title>{escape(dot.name)}: {short(dot.x)}, {short(dot.y)}</title>"
        at = f'transform="translate({x:.1f},{y:.1f})"'
        parts.append(f'<path class="baseline r{place}" d="{SHAPES[place]}" {at}>{title}</path>')
    parts += [frame.dots(path, look(number)) for number, path in enumerate(paths)]
    ringed = [dot for dot in baselines if dot.chosen]
    parts += [frame.ring(dot) for dot in ringed]
    named = [dot for path in paths for dot in path if dot.chosen or len(paths) == 1] + ringed
    parts.append(frame.labels(named, list(map(frame.place, baselines))) if named else "")
    return frame.document("".join(parts), x_label, y_label)


def over_gamma(dots: Sequence[Dot], y_label: str) -> Markup:
    """Draw a measure against gamma on a logarithmic axis; gamma = 0 stands at the left end, before a break."""
    positive = sorted(dot.gamma for dot in dots if dot.gamma > 0)
    if not positive:
        return Markup("")
    zero = positive[0] / 10 if len(positive) < 2 else positive[0] / max(3.0, (positive[-1] / positive[0]) ** 0.15)
    shown = [Dot(dot.gamma or zero, dot.y, dot.gamma, dot.chosen) for dot in dots]
    frame = _Frame(
        Scale.decades([dot.x for dot in shown], _LEFT, _WIDTH - _RIGHT),
        Scale.around([dot.y for dot in shown], _HEIGHT - _BOTTOM, _TOP, from_zero=True),
        zero if any(dot.gamma == 0 for dot in dots) else None,
    )
    places = [f"M{frame.x(dot.x):.1f},{_TOP}V{_HEIGHT - _BOTTOM}" for dot in shown if dot.chosen]
    marks = "".join(f'<path class="choice" d="{place}"/>' for place in places)
    return frame.document(marks + frame.line(shown) + frame.dots(shown), "gamma (weight of the penalty)", y_label)


def agreement(dots: Sequence[Dot], x_label: str, y_label: str) -> Markup:
    """Draw two measures of the same models against each other, both logarithmic."""
    positive = [dot for dot in dots if dot.x > 0 and dot.y > 0]
    if len(positive) < 3:
        return Markup("")
    # A constant predictor is at zero but for rounding: it stands apart instead of stretching axes over twenty decades.
    frame = _Frame(
        Scale.decades([dot.x for dot in dots], _LEFT, _WIDTH - _RIGHT, _DEPTH),
        Scale.decades([dot.y for dot in dots], _HEIGHT - _BOTTOM, _TOP, _DEPTH),
    )
    return frame.document(frame.dots(dots) + frame.labels(dots, []), x_label, y_label)


def over_correlation(
    curves: Sequence[Sequence[Dot]], seen: Sequence[tuple[float, str]], limit: float, y_label: str
) -> Markup:
    """Draw a measure over the correlation that a hidden cause would make, with a limit and what known causes make."""
    values = [dot.y for curve in curves for dot in curve]
    reach = [dot.x for curve in curves for dot in curve]
    frame = _Frame(
        Scale.around(reach, _LEFT, _WIDTH - _RIGHT),
        Scale.around([0.0, limit, *values], _HEIGHT - _BOTTOM, _TOP, from_zero=True),
    )
    level, side = frame.y(limit), _WIDTH - _RIGHT
    parts = [
        f'<path class="choice" d="M{_LEFT},{level:.1f}H{side}"/>',
        f'<text class="gamma chosen" x="{side - 4}" y="{level - 5:.1f}" text-anchor="end">limit</text>',
    ]
    for number, curve in enumerate(curves):
        parts += [frame.line(curve, look(number)), frame.dots(curve, look(number))]
    ends: list[float] = []  # of the names in each row, so that none lies on another
    for rho, name in sorted(seen):
        if min(reach) <= rho <= max(reach):
            x, width = frame.x(rho), _LETTER * len(name)
            start = min(x + 4, side - width)
            row = next((row for row, end in enumerate(ends) if end < start), len(ends))
            ends[row : row + 1] = [start + width + 6]
            parts.append(f'<path class="grid" stroke-dasharray="2 3" d="M{x:.1f},{_TOP}V{_HEIGHT - _BOTTOM}"/>')
            place = f'x="{start:.1f}" y="{_TOP + 12 + _LABEL_HEIGHT * row:.1f}"'
            parts.append(f'<text class="gamma" {place}>{escape(name)}</text>')
    return frame.document("".join(parts), "correlation ρ that a hidden cause would make", y_label)


@dataclass(frozen=True)
class _Frame:
    """Two scales with their axes."""

    x: Scale
    y: Scale
    zero: float | None = None  # where gamma = 0 stands on a logarithmic axis

    def place(self, dot: Dot) -> tuple[float, float]:
        return self.x(dot.x), self.y(dot.y)

    def line(self, dots: Sequence[Dot], kind: str = "") -> str:
        places = map(self.place, sorted(dots, key=lambda dot: (dot.gamma, dot.x)))
        return f'<path class="line {kind}" d="M{" L".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'

    def dots(self, dots: Sequence[Dot], kind: str = "") -> str:
        parts = []
        for dot in dots:
            x, y = self.place(dot)
            title = f"<title>{escape(f'{dot.label}: {short(dot.x)}, {short(dot.y)}')}</title>"
            parts.append(f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.2">{title}</circle>')
            if dot.chosen:
                parts.append(self.ring(dot))
        return "".join(parts)

    def ring(self, dot: Dot) -> str:
        x, y = self.place(dot)
        return f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="9"/>'

    def labels(self, dots: Sequence[Dot], taken: Sequence[tuple[float, float]]) -> str:
        """Label the chosen point, the ends, and whatever else finds room."""
        used, parts = [(x - 9, y - 9, x + 9, y + 9) for x, y in taken], []
        ends = [max(dots, key=lambda dot: dot.gamma), min(dots, key=lambda dot: dot.gamma)]
        first = [dot for dot in dots if dot.chosen] + ends
        for dot in dict.fromkeys([*first, *dots]):
            width, (x, y) = max(_LABEL_WIDTH, _LETTER * len(dot.label)), self.place(dot)
            # A label lies beside its dot, above or below.
            corners = [(start, floor) for start in (x + 12, x - 12 - width) for floor in (y - 8, y + 8 + _LABEL_HEIGHT)]
            boxes: list[_Box] = [(start, floor - _LABEL_HEIGHT, start + width, floor) for start, floor in corners]
            free = [box for box in boxes if _on_paper(box) and not any(_overlap(box, other) for other in used)]
            if not free:
                continue
            used.append(free[0])
            start, _, end, floor = free[0]
            at, anchor = (end, "end") if end < self.x(dot.x) else (start, "start")
            parts.append(
                f'<text class="gamma{" chosen" if dot.chosen else ""}" x="{at:.1f}" y="{floor:.1f}" '
                f'text-anchor="{anchor}">{escape(dot.label)}</text>'
            )
        return "".join(parts)

    def document(self, body: str, x_label: str, y_label: str) -> Markup:
        floor, side = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        grid = []
        for y, words in _ticks(self.y):
            grid.append(f'<path class="grid" d="M{_LEFT},{y:.1f}H{side}"/>')
            grid.append(f'<text class="tick" x="{_LEFT - 8}" y="{y:.1f}" dy=".35em" text-anchor="end">{words}</text>')
        ticks = _ticks(self.x)
        if self.zero is not None:
            start = self.x(self.zero)
            ticks = [(start, "0"), *(tick for tick in ticks if tick[0] > start + 24)]
        for place, words in ticks:
            grid.append(f'<path class="grid" d="M{place:.1f},{_TOP}V{floor}"/>')
            grid.append(f'<text class="tick" x="{place:.1f}" y="{floor + 18}" text-anchor="middle">{words}</text>')
        middle = (_LEFT + side) / 2
        labels = (
            f'<text class="axis" x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>'
            f'<text class="axis" transform="translate(13 {(_TOP + floor) / 2}) rotate(-90)" text-anchor="middle">'
            f"{escape(y_label)}</text>"
        )
        name = escape(f"{y_label} against {x_label}")
        return Markup(
            f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{name}">'
            f"{''.join(grid)}{labels}{body}</svg>"
        )


def _ticks(scale: Scale) -> list[tuple[float, str]]:
    """Places and words; values that stand apart are called "less"."""
    ticks = [(scale(value), short(value)) for value in scale.ticks()]
    return ticks if scale.beneath is None else [(scale.beneath, "less"), *ticks]


def _on_paper(box: _Box) -> bool:
    return box[0] >= _LEFT and box[1] >= 0 and box[2] <= _WIDTH and box[3] <= _HEIGHT - _BOTTOM


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


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
    """The scale that all strips of a table share, with the axis under them."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float], *, zero: bool = False) -> Strip:
        """Take in all values, and zero where it is a reference."""
        told = [value for value in values if not math.isnan(value)] + ([0.0] if zero else [])
        low, high = (min(told), max(told)) if told else (0.0, 1.0)
        return cls(low, high) if high - low > _NEXT_TO_ZERO else cls(low - 0.5, high + 0.5)

    @property
    def scale(self) -> Scale:
        """Where values stand."""
        return Scale(self.low, self.high, _MARGIN, _STRIP_WIDTH - _MARGIN)

    def draw(self, marks: Sequence[Mark], label: str, limit: float | None = None) -> Markup:
        """Draw marks with their intervals under each other, with zero, and the zone within ± limit."""
        place, parts = self.scale, []
        if limit is not None:
            left, right = (place(min(max(end, self.low), self.high)) for end in (-limit, limit))
            parts.append(
                f'<rect class="zone" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{_STRIP_HEIGHT}"/>'
            )
        for tick in place.ticks(_STRIP_TICKS):
            parts.append(f'<path class="{"grid" if tick else "zero"}" d="M{place(tick):.1f},0V{_STRIP_HEIGHT}"/>')
        marks = [mark for mark in marks if not math.isnan(mark.value)]
        for number, mark in enumerate(marks):
            y = _STRIP_HEIGHT * (number + 1) / (len(marks) + 1)
            if mark.high > mark.low:
                ends = f"M{place(mark.low):.1f},{y:.1f}H{place(mark.high):.1f}"
                parts.append(f'<path class="whisker {mark.kind}" d="{ends}"/>')
            parts.append(self._mark(mark, y))
        return _strip(parts, ", ".join(filter(None, [label, "; ".join(mark.title for mark in marks if mark.title)])))

    def draw_on_one_line(self, marks: Sequence[Mark], label: str) -> Markup:
        """Draw values on one rail, with the range that they span and the rail's ends."""
        y, places = _STRIP_HEIGHT / 2, [self.scale(mark.value) for mark in marks]
        rail = f'<path class="rail" d="M{_MARGIN:g},{y:g}H{_STRIP_WIDTH - _MARGIN:g}"/>'
        span = f'<path class="span" d="M{min(places):.1f},{y:g}H{max(places):.1f}"/>'
        return _strip([rail, span, *(self._mark(mark, y) for mark in marks)], label)

    def axis(self, factor: float) -> Markup:
        """Draw the axis of all strips, with numbers in a unit of which one is ``factor``."""
        place, parts = self.scale, [f'<path class="rail" d="M0,1H{_STRIP_WIDTH:g}"/>']
        for tick in place.ticks(_STRIP_TICKS):
            words = short(factor * tick).replace("-", "−")
            parts.append(f'<text class="tick" x="{place(tick):.1f}" y="15" text-anchor="middle">{words}</text>')
        return _strip(parts, None, _AXIS)

    def _mark(self, mark: Mark, y: float) -> str:
        title = f"<title>{escape(mark.title)}</title>" if mark.title else ""
        return (
            f'<circle class="mark {mark.kind}" cx="{self.scale(mark.value):.1f}" cy="{y:.1f}" r="4.4">{title}</circle>'
        )


def _strip(parts: Sequence[str], label: str | None, height: float = _STRIP_HEIGHT) -> Markup:
    """A strip, or the axis of some, which a screen reader need not name: their numbers stand beside them."""
    said = 'aria-hidden="true"' if label is None else f'role="img" aria-label="{escape(label)}"'
    return Markup(
        f'<svg class="strip{" axis" if height == _AXIS else ""}" viewBox="0 0 {_STRIP_WIDTH:g} {height:g}" {said}>'
        f"{''.join(parts)}</svg>"
    )
