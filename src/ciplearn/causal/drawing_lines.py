"""The lines of a drawing: directed edges from side to side, led around the boxes; bidirected ones dashed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ciplearn.causal.drawing_boxes import Box, inset, node_size, ports
from ciplearn.causal.layout import Layout, Point, Run

_ARROW = 7.0  # the tip of an arrow stops short of the node by the length of its head
_COMMON_PORT = 11.0  # bidirected edges touch the side of a node below the directed ones
_SIDE = 30.0  # how far a bidirected edge within a column bends out of it


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
    forward = {n for n, line in enumerate(lines) if not line.asks_no_column and _stands_left(line, box_of, layout)}

    def towards(number: int, end: int, name: str) -> float:
        runs = layout.runs[number]
        return runs[end].y if runs else layout.centres[name][1]

    starts = _touching(forward, lines, box_of, layout, 1, lambda n: towards(n, 0, lines[n].b))
    ends = _touching(forward, lines, box_of, layout, -1, lambda n: towards(n, -1, lines[n].a))
    drawn = []
    for number, line in enumerate(lines):
        if number in forward:
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


def _touching(
    numbers: set[int],
    lines: Sequence[Line],
    box_of: Mapping[str, Box],
    layout: Layout,
    side: int,
    height: Callable[[int], float],
) -> dict[int, Point]:
    """Where lines touch the right (1) or left (-1) side of their boxes: in the order of the heights they go to."""
    touching: dict[str, list[int]] = {}
    for number in sorted(numbers):
        touching.setdefault(lines[number].a if side > 0 else lines[number].b, []).append(number)
    points = {}
    for name, group in touching.items():
        box, (x, y) = box_of[name], layout.centres[name]
        for number, port in zip(sorted(group, key=height), ports(len(group), box.size[1]), strict=True):
            points[number] = (x + side * (box.size[0] / 2 - inset(box.size, box.framed, port)), y + port)
    return points


def _led(start: Point, end: Point, runs: Sequence[Run], leave: float, arrive: float) -> str:
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
    line: Line, box_of: Mapping[str, Box], layout: Layout, runs: Sequence[Run], centres: Mapping[str, Point]
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
