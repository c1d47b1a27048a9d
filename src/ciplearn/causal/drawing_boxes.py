"""The boxes of a drawing: a node with its name, or a block of nodes with the same causes and effects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ciplearn.causal.layout import Point, Size

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

_HEIGHT = 34.0
_LINE = 16.0
_COLUMNS = 17  # of a line of a name; a longer name goes on in the next line
_MOST_LINES = 2
_PADDING = 12.0
_BETWEEN = 9.0
_BETWEEN_COMMON = 26.0  # room for the two heads of a bidirected edge


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
    return [_cut(line) for line in lines]


def _cut(line: str) -> str:
    if _columns(line) <= _COLUMNS:
        return line
    while _columns(line) > _COLUMNS - 1:
        line = line[:-1]
    return line + "…"


def _columns(text: str) -> float:
    # Wide scripts take two columns, combining marks none.
    return sum(0.0 if 0x300 <= ord(c) < 0x370 else 1.75 if ord(c) > 0x2E80 else 1.0 for c in text)


def draw_node(name: str, centre: Point, role: str, seen: bool) -> str:
    """Return a node as SVG: its full name as a title, a dot where the predictor sees it."""
    (width, height), (x, y), lines = node_size(name), centre, label(name)
    radius = _HEIGHT / 2
    shape = (
        f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"'
    )
    first = y - _LINE * (len(lines) - 1) / 2
    text = "".join(
        f'<tspan x="{x:.1f}" y="{first + _LINE * number:.1f}" dy=".35em">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    dot = f'<circle class="seen" cx="{x + width / 2 - 7:.1f}" cy="{y - height / 2 + 4:.1f}" r="4"/>' if seen else ""
    return f'<g class="node {role}"><title>{escape(name)}</title><rect {shape}/><text>{text}</text>{dot}</g>'


def draw_frame(box: Box, centre: Point) -> str:
    """Return the frame of a block as SVG."""
    (width, height), (x, y) = box.size, centre
    shape = f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" rx="14"'
    return f'<rect class="block" {shape}/>'


def inset(size: Size, framed: bool, offset: float) -> float:
    """How far the side of a box lies inside its bounds at this height above or below its centre."""
    radius = 14.0 if framed else _HEIGHT / 2
    beyond = abs(offset) - (size[1] / 2 - radius)
    return radius - (radius**2 - min(beyond, radius) ** 2) ** 0.5 if beyond > 0 else 0.0


def ports(count: int, height: float) -> Sequence[float]:
    """Heights above and below the centre at which `count` edges touch one side of a box."""
    step = min(8.0, (height - 12.0) / max(1, count - 1))
    return [step * (number - (count - 1) / 2) for number in range(count)]
