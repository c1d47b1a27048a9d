"""What stands where in a drawing: nodes in boxes, causes left of effects, few crossings, long edges led around boxes.

A box is a node with its name, or a block of nodes with the same causes and effects. The layered method [sugiyama1981]:
columns by longest path, a stand-in in every column that an edge passes, orders improved by means of neighbours and by
swaps, heights by least squares under a smallest distance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from ciplearn.causal.names import heads, turned

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

Slot = str | tuple[int, int]  # what stands in a column: a box, or a stand-in (edge number, column)
Beside = dict[Slot, list[Slot]]
Point = tuple[float, float]
Size = tuple[float, float]  # width, height

COLUMN_GAP = 72.0
ROW_GAP = 28.0
_STAND_IN_GAP = 18.0
_SWEEPS = 12
_MOST_STAND_INS = 4000  # past this they cost more than the picture gains
_MOST_SWAPPED = 600  # swaps try every pair of neighbours: worth it where a person still reads every line

NODE_HEIGHT = 34.0
LINE_HEIGHT = 16.0
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
    """Put nodes of one tier, or of the same role, causes and effects, into one box; those of `apart` stand alone."""
    loose = {name for edge in graph.undirected for name in edge}
    parents, children = heads(graph.nodes, turned(graph.directed)), heads(graph.nodes, graph.directed)
    blocks: dict[object, list[str]] = {}
    for name in roles:
        kin = () if name not in parents else (frozenset(parents[name]), frozenset(children[name]))
        alone = name in apart or name in loose or sum(map(len, kin)) < 2
        alike: object = tier_of[name] if name in tier_of else (roles[name], *kin)
        blocks.setdefault(name if alone and name not in tier_of else alike, []).append(name)
    common = {frozenset(edge) for edge in graph.bidirected}
    return [_box(tuple(members), common) for members in blocks.values()]


def _box(members: tuple[str, ...], common: set[frozenset[str]]) -> Box:
    sizes = [node_size(name) for name in members]
    if len(members) == 1:
        return Box(members, sizes[0], {members[0]: 0.0})
    top, offsets = _PADDING, {}
    for number, (name, (_, height)) in enumerate(zip(members, sizes, strict=True)):
        if number:
            top += _BETWEEN_COMMON if frozenset((members[number - 1], name)) in common else _BETWEEN
        offsets[name] = top + height / 2
        top += height
    total = top + _PADDING
    width = max(width for width, _ in sizes) + 2 * _PADDING
    return Box(members, (width, total), {name: offset - total / 2 for name, offset in offsets.items()})


def inset(size: Size, framed: bool, offset: float) -> float:
    """How far the side of a box lies inside its bounds at this height above or below its centre."""
    radius = 14.0 if framed else NODE_HEIGHT / 2
    beyond = abs(offset) - (size[1] / 2 - radius)
    return radius - (radius**2 - min(beyond, radius) ** 2) ** 0.5 if beyond > 0 else 0.0


def node_size(name: str) -> Size:
    """Width and height of a node, from the lines of its name; no font is measured."""
    lines = label(name)
    width = max(NODE_HEIGHT + 6, 24.0 + 8.2 * max(map(_columns_of, lines)))
    return width, NODE_HEIGHT + LINE_HEIGHT * (len(lines) - 1)


def label(name: str) -> list[str]:
    """Break a long name into lines, after a space, hyphen, underscore or the like; what is still too long is cut."""
    if _columns_of(name) <= _COLUMNS:
        return [name]
    lines = [""]
    for piece in re.findall(r"[^\s_\-./:]+[\s_\-./:]*|[\s_\-./:]+", name):
        if lines[-1] and _columns_of(lines[-1] + piece.rstrip()) > _COLUMNS:
            lines.append("")
        lines[-1] += piece
    lines = [line.strip() for line in lines]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], "".join(lines[_MOST_LINES - 1 :])]
    for number, line in enumerate(lines):
        if _columns_of(line) > _COLUMNS:
            while _columns_of(line) > _COLUMNS - 1:
                line = line[:-1]
            lines[number] = line + "…"
    return lines


def _columns_of(text: str) -> float:
    # Wide scripts take two columns, combining marks none.
    return sum(0.0 if 0x300 <= ord(c) < 0x370 else 1.75 if ord(c) > 0x2E80 else 1.0 for c in text)


@dataclass(frozen=True)
class Crossing:
    """A stretch on which an edge crosses a column without touching a box: from (left, y) to (right, y)."""

    left: float
    right: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Centres of the boxes, left and right borders of their columns, and what each edge crosses between its ends."""

    centres: Mapping[str, Point]
    borders: Mapping[str, tuple[float, float]]
    runs: Sequence[Sequence[Crossing]]


def at_positions(graph: CausalGraph, names: Sequence[str], n_lines: int) -> Layout:
    """Take the positions of the source text, and stand Ŷ to the right of them."""
    points = [graph.positions[name] for name in graph.nodes]
    distances = [math.dist(p, q) for i, p in enumerate(points[:200]) for q in points[:i] if p != q]
    scale = (max(node_size(name)[0] for name in graph.nodes) + 40.0) / min(distances) if distances else 1.0
    # One crowded pair must not blow up the whole drawing.
    spread = max((max(c) - min(c) for c in zip(*points, strict=True)), default=0.0)
    scale = min(scale, 1400.0 / spread) if spread else scale
    centres = {name: (scale * x, scale * y) for name, (x, y) in zip(graph.nodes, points, strict=True)}
    rows, right = [y for _, y in centres.values()], max(x for x, _ in centres.values())
    centres |= {name: (right + 120.0, (min(rows) + max(rows)) / 2) for name in names if name not in centres}
    return Layout(centres, {name: (x, x) for name, (x, _) in centres.items()}, [()] * n_lines)


def layered(
    order: Sequence[str],
    edges: Sequence[tuple[str, str]],
    sizes: Mapping[str, Size],
    others: Sequence[tuple[str, str]] = (),
    last: str | None = None,
) -> Layout:
    """Lay out boxes given in topological order; every edge runs from an earlier to a later box.

    The pairs in `others` are led like edges but ask for no columns of their own; `runs` holds first those of the edges.
    The box `last`, which has no effects, stands in the last column.
    """
    columns = _columns(order, edges)
    if last is not None:
        columns[last] = max(columns.values())
    chains = _chains(columns, [*edges, *others])
    rows: list[list[Slot]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    for name in order:
        rows[columns[name]].append(name)
    stand_ins = [[slot for slot in chain if not isinstance(slot, str)] for chain in chains]
    for slot in (slot for slots in stand_ins for slot in slots):
        rows[slot[1]].append(slot)
    left, right = _neighbours(rows, chains)
    _improve_order(rows, left, right)
    heights = _heights(rows, left, right, sizes)
    spans = _column_spans(rows, sizes)
    centres = {name: (sum(spans[columns[name]]) / 2, heights[name]) for name in order}
    runs = [[Crossing(*spans[slot[1]], heights[slot]) for slot in slots] for slots in stand_ins]
    return Layout(centres, {name: spans[columns[name]] for name in order}, runs)


def _columns(order: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    parents, children = heads(order, turned(edges)), heads(order, edges)
    column: dict[str, int] = {}
    for name in order:
        column[name] = 1 + max((column[parent] for parent in parents[name]), default=-1)
    for name in reversed(order):
        # A root close to its first effect is easier to read than one at the far left.
        if not parents[name] and children[name]:
            column[name] = min(column[child] for child in children[name]) - 1
    return column


def _chains(columns: Mapping[str, int], edges: Sequence[tuple[str, str]]) -> list[list[Slot]]:
    spare = _MOST_STAND_INS
    chains: list[list[Slot]] = []
    for number, (a, b) in enumerate(edges):
        step = 1 if columns[b] >= columns[a] else -1
        between: list[Slot] = [(number, column) for column in range(columns[a] + step, columns[b], step)]
        spare -= len(between)
        chains.append([a, *(between if spare >= 0 else []), b])
    return chains


def _neighbours(rows: Sequence[Sequence[Slot]], chains: Sequence[Sequence[Slot]]) -> tuple[Beside, Beside]:
    """For each slot, the slots in the column to its left that an edge joins to it, and those to its right."""
    column = {slot: rank for rank, row in enumerate(rows) for slot in row}
    left: dict[Slot, list[Slot]] = {slot: [] for slot in column}
    right: dict[Slot, list[Slot]] = {slot: [] for slot in column}
    for chain in chains:
        for pair in pairwise(chain):
            a, b = sorted(pair, key=column.__getitem__)
            if column[a] < column[b]:
                right[a].append(b)
                left[b].append(a)
    return left, right


def _improve_order(rows: list[list[Slot]], left: Beside, right: Beside) -> None:
    """Order columns by the mean place of the neighbours, back and forth, then by swaps; keep what crosses least."""
    best, fewest = [list(row) for row in rows], _crossings(rows, right)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        beside = left if sweep % 2 == 0 else right
        spot = {slot: float(rank) for row in rows for rank, slot in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            means = {slot: fmean([spot[other] for other in beside[slot]] or [spot[slot]]) for slot in row}
            row.sort(key=means.__getitem__)
            spot.update({slot: float(rank) for rank, slot in enumerate(row)})
        crossings = _crossings(rows, right)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best
    if fewest and sum(map(len, rows)) <= _MOST_SWAPPED:
        _swap_neighbours(rows, left, right)


def _swap_neighbours(rows: list[list[Slot]], left: Beside, right: Beside) -> None:
    """Swap slots that stand beside each other while that removes crossings."""
    spot = {slot: rank for row in rows for rank, slot in enumerate(row)}

    def crossed(upper: Slot, lower: Slot) -> int:
        return sum(spot[a] > spot[b] for side in (left, right) for a in side[upper] for b in side[lower])

    for _ in range(_SWEEPS):
        swapped = False
        for row in rows:
            for rank in range(len(row) - 1):
                upper, lower = row[rank], row[rank + 1]
                if crossed(lower, upper) < crossed(upper, lower):
                    row[rank], row[rank + 1] = lower, upper
                    spot[lower], spot[upper] = rank, rank + 1
                    swapped = True
        if not swapped:
            return


def _crossings(rows: Sequence[Sequence[Slot]], right: Beside) -> int:
    spot = {slot: rank for row in rows for rank, slot in enumerate(row)}
    total = 0
    for row in rows:
        ends: list[int] = []
        for slot in row:
            targets = sorted(spot[other] for other in right[slot])
            total += sum(end > target for target in targets for end in ends)
            ends += targets
    return total


def _heights(
    rows: Sequence[Sequence[Slot]], left: Beside, right: Beside, sizes: Mapping[str, Size]
) -> dict[Slot, float]:
    height: dict[Slot, float] = {}
    for row in rows:
        height |= dict(zip(row, _spread([0.0] * len(row), _gaps(row, sizes)), strict=True))
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            # A slot without neighbours stays where it is.
            around = [[height[other] for other in (*left[slot], *right[slot])] or [height[slot]] for slot in row]
            wanted = [fmean(heights) for heights in around]
            height |= dict(zip(row, _spread(wanted, _gaps(row, sizes)), strict=True))
    return height


def _gaps(row: Sequence[Slot], sizes: Mapping[str, Size]) -> list[float]:
    """Smallest distance of each slot from the one before it."""
    room = [sizes[slot][1] + ROW_GAP if isinstance(slot, str) else _STAND_IN_GAP for slot in row]
    return [0.0, *((a + b) / 2 for a, b in pairwise(room))]


def _spread(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return the heights nearest to `wanted` in least squares that keep the gaps: isotonic regression of the slack."""
    offset = 0.0
    blocks: list[list[float]] = []  # [sum, count]
    offsets = []
    for value, gap in zip(wanted, gaps, strict=True):
        offset += gap
        offsets.append(offset)
        blocks.append([value - offset, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    slack = [total / count for total, count in blocks for _ in range(int(count))]
    return [base + extra for base, extra in zip(offsets, slack, strict=True)]


def _column_spans(rows: Sequence[Sequence[Slot]], sizes: Mapping[str, Size]) -> list[tuple[float, float]]:
    """Left and right border of each column: as wide as its widest box."""
    spans: list[tuple[float, float]] = []
    left = 0.0
    for row in rows:
        right = left + max((sizes[slot][0] for slot in row if isinstance(slot, str)), default=0.0)
        spans.append((left, right))
        left = right + COLUMN_GAP
    return spans
