"""Where to draw the nodes: causes left of effects, few crossings, long edges led around the nodes between.

The layered method [sugiyama1981]: columns by longest path, a stand-in node in every column that an edge
passes, orders improved by medians of neighbours, heights by least squares under a smallest distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

# A node of the drawing: a name, or a stand-in (edge number, column).
Slot = str | tuple[int, int]
Point = tuple[float, float]

COLUMN_GAP = 64.0
ROW_GAP = 62.0
_STAND_IN_GAP = 18.0
_SWEEPS = 12
# Past this the stand-ins cost more than the picture gains.
_MOST_STAND_INS = 4000


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes, and for each edge the points that it passes between its two ends."""

    centres: Mapping[str, Point]
    bends: Sequence[Sequence[Point]]


def layered(order: Sequence[str], edges: Sequence[tuple[str, str]], widths: Mapping[str, float]) -> Layout:
    """Lay out nodes given in topological order; every edge runs from an earlier to a later node."""
    columns = _columns(order, edges)
    chains = _chains(columns, edges)
    rows = _rows(order, columns, chains)
    _improve_order(rows, chains)
    heights = _heights(rows, chains)
    places = _column_places(rows, widths)
    centres = {name: (places[columns[name]], heights[name]) for name in order}
    bends = [
        [(places[slot[1]], heights[slot]) for slot in chain[1:-1] if not isinstance(slot, str)] for chain in chains
    ]
    return Layout(centres, bends)


def _columns(order: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    parents: dict[str, list[str]] = {name: [] for name in order}
    children: dict[str, list[str]] = {name: [] for name in order}
    for a, b in edges:
        parents[b].append(a)
        children[a].append(b)
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
        between: list[Slot] = [(number, column) for column in range(columns[a] + 1, columns[b])]
        spare -= len(between)
        chains.append([a, *(between if spare >= 0 else []), b])
    return chains


def _rows(order: Sequence[str], columns: Mapping[str, int], chains: Sequence[Sequence[Slot]]) -> list[list[Slot]]:
    rows: list[list[Slot]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    for name in order:
        rows[columns[name]].append(name)
    for chain in chains:
        for slot in chain[1:-1]:
            if not isinstance(slot, str):
                rows[slot[1]].append(slot)
    return rows


def _neighbours(chains: Sequence[Sequence[Slot]]) -> tuple[dict[Slot, list[Slot]], dict[Slot, list[Slot]]]:
    left: dict[Slot, list[Slot]] = {}
    right: dict[Slot, list[Slot]] = {}
    for chain in chains:
        for a, b in pairwise(chain):
            right.setdefault(a, []).append(b)
            left.setdefault(b, []).append(a)
    return left, right


def _improve_order(rows: list[list[Slot]], chains: Sequence[Sequence[Slot]]) -> None:
    """Order columns by the mean place of the neighbours, back and forth; keep the order with fewest crossings."""
    left, right = _neighbours(chains)
    best, fewest = [list(row) for row in rows], _crossings(rows, right)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        beside = left if sweep % 2 == 0 else right
        spot = {slot: float(place) for row in rows for place, slot in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            means = {s: sum(spot[n] for n in beside[s]) / len(beside[s]) if s in beside else spot[s] for s in row}
            row.sort(key=means.__getitem__)
            spot.update({slot: float(place) for place, slot in enumerate(row)})
        crossings = _crossings(rows, right)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best


def _crossings(rows: Sequence[Sequence[Slot]], right: Mapping[Slot, Sequence[Slot]]) -> int:
    spot = {slot: place for row in rows for place, slot in enumerate(row)}
    total = 0
    for row in rows:
        ends: list[int] = []
        for slot in row:
            targets = sorted(spot[other] for other in right.get(slot, ()))
            total += sum(end > target for target in targets for end in ends)
            ends += targets
    return total


def _heights(rows: Sequence[Sequence[Slot]], chains: Sequence[Sequence[Slot]]) -> dict[Slot, float]:
    left, right = _neighbours(chains)
    height: dict[Slot, float] = {}
    for row in rows:
        height |= dict(zip(row, _spread([0.0] * len(row), _gaps(row)), strict=True))
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = []
            for slot in row:
                around = [*left.get(slot, ()), *right.get(slot, ())]
                wanted.append(sum(height[other] for other in around) / len(around) if around else height[slot])
            height |= dict(zip(row, _spread(wanted, _gaps(row)), strict=True))
    return height


def _gaps(row: Sequence[Slot]) -> list[float]:
    """Smallest distance of each slot from the one before it."""
    size = [ROW_GAP if isinstance(slot, str) else _STAND_IN_GAP for slot in row]
    return [0.0, *((a + b) / 2 for a, b in pairwise(size))]


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


def _column_places(rows: Sequence[Sequence[Slot]], widths: Mapping[str, float]) -> list[float]:
    widest = [max((widths[slot] for slot in row if isinstance(slot, str)), default=0.0) for row in rows]
    places: list[float] = []
    edge = 0.0
    for width in widest:
        places.append(edge + width / 2)
        edge += width + COLUMN_GAP
    return places
