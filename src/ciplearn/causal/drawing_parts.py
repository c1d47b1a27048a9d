"""Boxes and lines of a drawing.

A box is a node with its name, or a block of nodes with the same causes and effects. Directed edges run from side to
side, led around the boxes; bidirected ones are dashed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ciplearn.causal.layout import Crossing, Layout, Point, Size

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

_HEIGHT = 34.0
_LINE = 16.0
_COLUMNS = 17  # of a line of a name; a longer name goes on in the next line
_MOST_LINES = 2
_PADDING = 12.0
_BETWEEN = 9.0
_BETWEEN_COMMON = 26.0  # room for the two heads of a bidirected edge
_ARROW = 7.0  # the tip of an arrow stops short of the node by the length of its head
_COMMON_PORT = 11.0  # bidirected edges touch the side of a node below the directed ones
_SIDE = 30.0  # how far a bidirected edge within a column bends out of it


@dataclass(frozen=True)
class Box:
    """What stands in one place of the layout: one node, or several below each other in a frame."""

    members: tuple[str, ...]
    size: Size
    offsets: Mapping[str, float]  # height of each member's centre above or below that of the box

    @property
    def name(self) -> str:
        """The name of the box in a layout: that of its first member."""
        return self.members[0]

    @property
    def framed(self) -> bool:
        """Whether there are several members."""
        return len(self.members) > 1


def boxes(graph: CausalGraph, roles: Mapping[str, str], apart: set[str], tier_of: Mapping[str, int]) -> list[Box]:
    """Put nodes of one tier, or else of the same role, causes and effects, into one box; those of `apart` stand alone.

    An edge from or to a block then stands for one from or to each of its members, and nothing is lost.
    """
    loose = {name for edge in graph.undirected for name in edge}
    parents: dict[str, list[str]] = {name: [] for name in graph.nodes}
    children: dict[str, list[str]] = {name: [] for name in graph.nodes}
    for a, b in graph.directed:
        parents[b].append(a)
        children[a].append(b)
    blocks: dict[object, list[str]] = {}
    for name in roles:
        kin = () if name not in parents else (tuple(parents[name]), tuple(children[name]))
        alone = name in apart or name in loose or sum(map(len, kin)) < 2
        alike: object = tier_of[name] if name in tier_of else (roles[name], *kin)
        blocks.setdefault(name if alone and name not in tier_of else alike, []).append(name)
    common = {frozenset(edge) for edge in graph.bidirected}
    return [_box(tuple(members), common) for members in blocks.values()]


def _box(members: tuple[str, ...], common: set[frozenset[str]]) -> Box:
    sizes = [node_size(name) for name in members]
    if len(members) == 1:
        return Box(members, sizes[0], {members[0]: 0.0})
    place, offsets = _PADDING, {}
    for number, (name, (_, height)) in enumerate(zip(members, sizes, strict=True)):
        if number:
            place += _BETWEEN_COMMON if frozenset((members[number - 1], name)) in common else _BETWEEN
        offsets[name] = place + height / 2
        place += height
    total = place + _PADDING
    width = max(width for width, _ in sizes) + 2 * _PADDING
    return Box(members, (width, total), {name: offset - total / 2 for name, offset in offsets.items()})


def node_size(name: str) -> Size:
    """Width and height of a node, from the lines of its name; no font is measured."""
    lines = label(name)
    width = max(_HEIGHT + 6, 24.0 + 8.2 * max(map(_columns, lines)))
    return width, _HEIGHT + _LINE * (len(lines) - 1)


def label(name: str) -> list[str]:
    """Break a long name into lines, after a space, hyphen, underscore or the like; what is still too long is cut."""
    if _columns(name) <= _COLUMNS:
        return [name]
    lines = [""]
    for piece in re.findall(r"[^\s_\-./:]+[\s_\-./:]*|[\s_\-./:]+", name):
        if lines[-1] and _columns(lines[-1] + piece.rstrip()) > _COLUMNS:
            lines.append("")
        lines[-1] += piece
    lines = [line.strip() for line in lines]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], "".join(lines[_MOST_LINES - 1 :])]
    for number, line in enumerate(lines):
        if _columns(line) > _COLUMNS:
            while _columns(line) > _COLUMNS - 1:
                line = line[:-1]
            lines[number] = line + "…"
    return lines


def _columns(text: str) -> float:
    # Wide scripts take two columns, combining marks none.
    return sum(0.0 if 0x300 <= ord(c) < 0x370 else 1.75 if ord(c) > 0x2E80 else 1.0 for c in text)


def draw_node(name: str, centre: Point, role: str, seen: bool) -> str:
    """Return a node as SVG: its full name as a title, a dot where the predictor sees it."""
    (width, height), (x, y), lines = node_size(name), centre, label(name)
    first = y - _LINE * (len(lines) - 1) / 2
    text = "".join(
        f'<tspan x="{x:.1f}" y="{first + _LINE * number:.1f}" dy=".35em">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    dot = f'<circle class="seen" cx="{x + width / 2 - 7:.1f}" cy="{y - height / 2 + 4:.1f}" r="4"/>' if seen else ""
    shape = rectangle((width, height), centre, _HEIGHT / 2)
    return f'<g class="node {role}"><title>{escape(name)}</title>{shape}<text>{text}</text>{dot}</g>'


def rectangle(size: Size, centre: Point, radius: float, look: str = "") -> str:
    """Return a rectangle with round corners as SVG."""
    (width, height), (x, y) = size, centre
    return (
        f'<rect {look}x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:g}"/>'
    )


def inset(size: Size, framed: bool, offset: float) -> float:
    """How far the side of a box lies inside its bounds at this height above or below its centre."""
    radius = 14.0 if framed else _HEIGHT / 2
    beyond = abs(offset) - (size[1] / 2 - radius)
    return radius - (radius**2 - min(beyond, radius) ** 2) ** 0.5 if beyond > 0 else 0.0


def ports(count: int, height: float) -> Sequence[float]:
    """Heights above and below the centre at which `count` edges touch one side of a box."""
    step = min(8.0, (height - 12.0) / max(1, count - 1))
    return [step * (number - (count - 1) / 2) for number in range(count)]


@dataclass(frozen=True)
class Line:
    """An edge to draw: its ends, its kind, and whether it lies on an open path."""

    a: str
    b: str
    kind: str  # "cause", "input", "common" (bidirected), "loose" (undirected) or "refuted" (no edge, and data miss one)
    is_open: bool

    @property
    def asks_no_column(self) -> bool:
        """Whether the nodes may stand in any order: the line has no direction."""
        return self.kind in ("common", "refuted")


def draw_lines(
    lines: Sequence[Line],
    box_of: Mapping[str, Box],
    layout: Layout,
    centres: Mapping[str, Point],
    identity: str,
    *,
    bowed: bool,
) -> list[str]:
    """Return each line as SVG.

    `centres` are those of the nodes, `layout` holds those of the boxes. Where the boxes do not stand in columns,
    bidirected edges are `bowed`.
    """
    forward = [n for n, line in enumerate(lines) if not line.asks_no_column and _stands_left(line, box_of, layout)]

    def touching(side: int) -> dict[int, Point]:
        """Where lines touch the right (1) or left (-1) side of their boxes, in the order of the heights they go to."""
        ends = {n: (lines[n].a, lines[n].b)[::side] for n in forward}

        def height(number: int) -> float:
            runs = layout.runs[number][::side]
            return runs[0].y if runs else layout.centres[ends[number][1]][1]

        groups, points = dict[str, list[int]](), dict[int, Point]()
        for number in sorted(forward, key=height):
            groups.setdefault(ends[number][0], []).append(number)
        for name, numbers in groups.items():
            box, (x, y) = box_of[name], layout.centres[name]
            for number, port in zip(numbers, ports(len(numbers), box.size[1]), strict=True):
                points[number] = (x + side * (box.size[0] / 2 - inset(box.size, box.framed, port)), y + port)
        return points

    starts, ends = touching(1), touching(-1)
    drawn = []
    for number, line in enumerate(lines):
        if number in starts:
            x, y = ends[number]
            end = (x - (0.0 if line.kind == "loose" else _ARROW), y)
            data = _led(starts[number], end, layout.runs[number], layout.borders[line.a][1], layout.borders[line.b][0])
        elif bowed or not line.asks_no_column:
            data = _arc(line, centres)
        else:
            data = _common(line, box_of, layout, layout.runs[number], centres)
        drawn.append(_path(line, data, identity))
    return drawn


def _stands_left(line: Line, box_of: Mapping[str, Box], layout: Layout) -> bool:
    a, b = box_of[line.a], box_of[line.b]
    return layout.centres[b.name][0] - b.size[0] / 2 > layout.centres[a.name][0] + a.size[0] / 2


def _led(start: Point, end: Point, runs: Sequence[Crossing], leave: float, arrive: float) -> str:
    """From side to side: straight to the border `leave` of the column, then from run to run, straight from `arrive`."""
    leave, arrive = max(start[0], leave), min(end[0], arrive - _ARROW)
    data, here = f"M{_xy(start)} H{leave:.1f}", (leave, start[1])
    for run in runs:
        data += f"{_sway(here, (run.left, run.y))} H{run.right:.1f}"
        here = (run.right, run.y)
    return f"{data}{_sway(here, (arrive, end[1]))} H{end[0]:.1f}"


def _sway(p: Point, q: Point) -> str:
    pull = (q[0] - p[0]) / 2
    return f" C{_xy((p[0] + pull, p[1]))} {_xy((q[0] - pull, q[1]))} {_xy(q)}"


def _common(
    line: Line, box_of: Mapping[str, Box], layout: Layout, runs: Sequence[Crossing], centres: Mapping[str, Point]
) -> str:
    a, b = line.a, line.b
    borders = {name: layout.borders[box_of[name].name] for name in (a, b)}
    if borders[a] == borders[b]:
        # In the first column nothing arrives from the left.
        first = borders[a][0] == min(left for left, _ in layout.borders.values())
        return _bracket(a, b, centres, -1 if first else 1, borders[a][0 if first else 1])
    if borders[a] > borders[b]:
        a, b, runs = b, a, runs[::-1]
    (x, y), (p, q) = _side_point(a, centres, 1, _COMMON_PORT), _side_point(b, centres, -1, _COMMON_PORT)
    return _led((x + _ARROW, y), (p - _ARROW, q), runs, borders[a][1], borders[b][0])


def _side_point(name: str, centres: Mapping[str, Point], side: int, offset: float) -> Point:
    size, (x, y) = node_size(name), centres[name]
    return x + side * (size[0] / 2 - inset(size, False, offset)), y + offset


def _bracket(a: str, b: str, centres: Mapping[str, Point], side: int, border: float) -> str:
    """A bow beside the column, from the lower half of the upper node to the upper half of the lower one."""
    upper, lower = sorted((a, b), key=lambda name: centres[name][1])
    p, q = _side_point(upper, centres, side, 9.0), _side_point(lower, centres, side, -9.0)
    out = border + side * (_SIDE + min(0.12 * (q[1] - p[1]), _SIDE))
    return (
        f"M{_xy((p[0] + side * _ARROW, p[1]))} H{border + side * _ARROW:.1f} C{_xy((out, p[1]))} {_xy((out, q[1]))} "
        f"{_xy((border + side * _ARROW, q[1]))} H{q[0] + side * _ARROW:.1f}"
    )


def _arc(line: Line, centres: Mapping[str, Point]) -> str:
    """A bow between two nodes, to the side, so that it does not lie on a directed edge between the same two."""
    start, end = centres[line.a], centres[line.b]
    length = math.dist(start, end) or 1.0
    bow = 0.0 if not line.asks_no_column else 22.0 + 0.22 * length
    across = ((end[1] - start[1]) / length, -(end[0] - start[0]) / length)
    middle = ((start[0] + end[0]) / 2 + bow * across[0], (start[1] + end[1]) / 2 + bow * across[1])
    tail = _ARROW if line.asks_no_column else 0.0
    head = 0.0 if line.kind == "loose" else _ARROW
    p, q = _rim(line.a, start, middle, tail), _rim(line.b, end, middle, head)
    return f"M{_xy(p)} Q{_xy(middle)} {_xy(q)}"


def _rim(name: str, centre: Point, towards: Point, gap: float) -> Point:
    """The point where the line from a node's centre leaves its box, and `gap` further."""
    width, height = node_size(name)
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    length = math.hypot(dx, dy) or 1.0
    reach = min(width / 2 / abs(dx) if dx else math.inf, height / 2 / abs(dy) if dy else math.inf)
    reach = (reach if reach < math.inf else 0.0) + gap / length
    return centre[0] + reach * dx, centre[1] + reach * dy


def _path(line: Line, data: str, identity: str) -> str:
    mark = "red" if line.is_open else "pale" if line.kind == "input" else "ink"
    ends = "" if line.kind in ("loose", "refuted") else f' marker-end="url(#{identity}-{mark})"'
    if line.kind == "common":
        ends += f' marker-start="url(#{identity}-{mark})"'
    return f'<path class="{line.kind}{" open" if line.is_open else ""}" d="{data}"{ends}/>'


def _xy(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
