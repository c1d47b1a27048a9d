"""A graph as SVG: roles by colour, latent nodes dashed, open paths in red; light and dark by the reader's setting."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from ciplearn.causal.drawing_style import LEGEND, STYLE
from ciplearn.causal.layout import Layout, Point, layered
from ciplearn.causal.paths import Path, predictor_name

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph
    from ciplearn.causal.verdict import Verdict

_NODE_HEIGHT = 34.0
_MARGIN = 26.0
_LEGEND_ROW = 24.0
_ARROW = 7.0  # the tip of an arrow stops short of the node by the length of its head


@dataclass(frozen=True)
class _Line:
    """An edge to draw: its ends, its kind, and whether it lies on an open path."""

    a: str
    b: str
    kind: str  # "cause", "input", "common" (bidirected) or "loose" (undirected)
    is_open: bool


def draw(graph: CausalGraph, verdict: Verdict | None, paths: Sequence[Path]) -> str:
    """Return an SVG document of the graph; with a verdict, its roles, the predictor and its open paths."""
    shown = (*paths, *(() if verdict is None else verdict.open_paths))
    predictor = None if verdict is None else predictor_name(graph)
    names = [*graph.nodes, *([predictor] if predictor else [])]
    roles = {name: _role(graph, verdict, name, predictor) for name in names}
    widths = {name: _width(name) for name in names}
    lines = _lines(graph, verdict, predictor, shown)
    layout = _layout(graph, lines, widths, predictor)
    identity = f"cg{zlib.crc32(repr((names, lines, sorted(roles.items()))).encode()):08x}"
    curves = [_curve(line, bends, layout, widths, identity) for line, bends in zip(lines, layout.bends, strict=True)]
    boxes = [_box(name, layout.centres[name], widths[name], roles[name], name in graph.latent) for name in names]
    # Open paths last, so that no other line covers them.
    ordered = [c for c, line in zip(curves, lines, strict=True) if not line.is_open]
    ordered += [c for c, line in zip(curves, lines, strict=True) if line.is_open]
    return _document(layout, widths, [*ordered, *boxes], _legend(lines, roles), identity)


def _role(graph: CausalGraph, verdict: Verdict | None, name: str, predictor: str | None) -> str:
    protected = graph.exposures if verdict is None else verdict.protected
    outcomes = graph.outcomes if verdict is None else (verdict.outcome,)
    adjusted = graph.adjusted if verdict is None else verdict.adjustment
    if name == predictor:
        return "predictor"
    if name in graph.latent:
        return "latent"
    for role, members in (("protected", protected), ("outcome", outcomes), ("given", adjusted)):
        if name in members:
            return role
    return "context" if verdict is not None and name in verdict.context else "other"


def _lines(graph: CausalGraph, verdict: Verdict | None, predictor: str | None, shown: Sequence[Path]) -> list[_Line]:
    hot = {frozenset((a, b)) | {"↔"} if arrow == "↔" else frozenset((a, b)) for p in shown for a, arrow, b in p.edges}
    lines = [_Line(a, b, "cause", frozenset((a, b)) in hot) for a, b in graph.directed]
    lines += [_Line(a, b, "loose", frozenset((a, b)) in hot) for a, b in graph.undirected]
    if verdict is not None and predictor:
        lines += [_Line(name, predictor, "input", frozenset((name, predictor)) in hot) for name in verdict.inputs]
    return lines + [_Line(a, b, "common", frozenset((a, b)) | {"↔"} in hot) for a, b in graph.bidirected]


def _layout(graph: CausalGraph, lines: Sequence[_Line], widths: dict[str, float], predictor: str | None) -> Layout:
    """Take the positions of the source text if every node has one, else lay the graph out in columns."""
    if graph.nodes and set(graph.nodes) <= set(graph.positions):
        centres = _scaled(graph, widths)
        if predictor:
            rows = [y for _, y in centres.values()]
            centres[predictor] = (max(x for x, _ in centres.values()) + 120.0, (min(rows) + max(rows)) / 2)
        return Layout(centres, [[] for _ in lines])
    member = next(graph.members(1), None) if graph.undirected else graph
    order = [*(member.topological_order() if member else graph.nodes), *([predictor] if predictor else [])]
    rank = {name: place for place, name in enumerate(order)}
    ranked = [(line.a, line.b) if rank[line.a] < rank[line.b] else (line.b, line.a) for line in lines]
    # A common cause asks for no column of its own: its two ends may well stand in one column.
    led = [pair for pair, line in zip(ranked, lines, strict=True) if line.kind != "common"]
    layout = layered(order, led, widths)
    bends = iter(layout.bends)
    return Layout(layout.centres, [[] if line.kind == "common" else next(bends) for line in lines])


def _scaled(graph: CausalGraph, widths: dict[str, float]) -> dict[str, Point]:
    points = [graph.positions[name] for name in graph.nodes]
    distances = [math.dist(p, q) for i, p in enumerate(points[:200]) for q in points[:i] if p != q]
    scale = (max(widths.values()) + 40.0) / min(distances) if distances else 1.0
    # One crowded pair must not blow up the whole drawing.
    spread = max((max(c) - min(c) for c in zip(*points, strict=True)), default=0.0)
    scale = min(scale, 1400.0 / spread) if spread else scale
    return {name: (scale * x, scale * y) for name, (x, y) in zip(graph.nodes, points, strict=True)}


def _curve(line: _Line, bends: Sequence[Point], layout: Layout, widths: dict[str, float], identity: str) -> str:
    start, end = layout.centres[line.a], layout.centres[line.b]
    forward = end[0] - widths[line.b] / 2 > start[0] + widths[line.a] / 2
    if line.kind == "common" or not forward:
        data = _arc(line, start, end, widths)
    else:
        stops = [(start[0] + widths[line.a] / 2, start[1]), *bends, (end[0] - widths[line.b] / 2, end[1])]
        if line.kind != "loose":
            stops[-1] = (stops[-1][0] - _ARROW, stops[-1][1])
        data = f"M{_xy(stops[0])}"
        for p, q in pairwise(stops):
            pull = (q[0] - p[0]) / 2
            data += f" C{_xy((p[0] + pull, p[1]))} {_xy((q[0] - pull, q[1]))} {_xy(q)}"
    mark = "red" if line.is_open else "pale" if line.kind == "input" else "ink"
    ends = "" if line.kind == "loose" else f' marker-end="url(#{identity}-{mark})"'
    if line.kind == "common":
        ends += f' marker-start="url(#{identity}-{mark})"'
    return f'<path class="{line.kind}{" open" if line.is_open else ""}" d="{data}"{ends}/>'


def _arc(line: _Line, start: Point, end: Point, widths: dict[str, float]) -> str:
    """A bow between two nodes, to the side, so that it does not lie on a directed edge between the same two."""
    length = math.dist(start, end) or 1.0
    bow = 0.0 if line.kind != "common" else 22.0 + 0.22 * length
    across = ((end[1] - start[1]) / length, -(end[0] - start[0]) / length)
    middle = ((start[0] + end[0]) / 2 + bow * across[0], (start[1] + end[1]) / 2 + bow * across[1])
    tail = _ARROW if line.kind == "common" else 0.0
    head = 0.0 if line.kind == "loose" else _ARROW
    p, q = _rim(start, middle, widths[line.a], tail), _rim(end, middle, widths[line.b], head)
    return f"M{_xy(p)} Q{_xy(middle)} {_xy(q)}"


def _rim(centre: Point, towards: Point, width: float, gap: float) -> Point:
    """The point where the line from a node's centre leaves its box, and `gap` further."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    length = math.hypot(dx, dy) or 1.0
    reach = min(width / 2 / abs(dx) if dx else math.inf, _NODE_HEIGHT / 2 / abs(dy) if dy else math.inf)
    reach = (reach if reach < math.inf else 0.0) + gap / length
    return centre[0] + reach * dx, centre[1] + reach * dy


def _box(name: str, centre: Point, width: float, role: str, latent: bool) -> str:
    x, y = centre[0] - width / 2, centre[1] - _NODE_HEIGHT / 2
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_NODE_HEIGHT}" rx="{_NODE_HEIGHT / 2}"'
    text = f'<text x="{centre[0]:.1f}" y="{centre[1]:.1f}" dy=".35em">{escape(name)}</text>'
    return f'<g class="node {"latent" if latent else role}"><rect {shape}/>{text}</g>'


def _legend(lines: Sequence[_Line], roles: dict[str, str]) -> list[tuple[str, str]]:
    present = {*roles.values(), *(line.kind for line in lines)} | {"open" for line in lines if line.is_open}
    return [(key, words) for key, words in LEGEND if key in present]


def _document(
    layout: Layout, widths: dict[str, float], body: Sequence[str], legend: Sequence[tuple[str, str]], identity: str
) -> str:
    xs = [x + side * widths[name] / 2 for name, (x, _) in layout.centres.items() for side in (-1, 1)] or [0.0]
    ys = [y for _, y in layout.centres.values()] + [y for bends in layout.bends for _, y in bends] or [0.0]
    left, top = min(xs) - _MARGIN, min(ys) - _NODE_HEIGHT / 2 - _MARGIN - 8
    width = max(max(xs) + _MARGIN - left, 320.0)
    bottom = max(ys) + _NODE_HEIGHT / 2 + _MARGIN
    keys, rows = _legend_keys(legend, left + _MARGIN, bottom + 6, width - 2 * _MARGIN)
    height = bottom - top + rows * _LEGEND_ROW + (14 if rows else 0)
    markers = "".join(
        f'<marker id="{identity}-{mark}" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="{mark}" d="M0,0.6 L8,4 L0,7.4 Z"/>'
        "</marker>"
        for mark in ("ink", "pale", "red")
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" role="img" aria-label="causal graph">'
        f"<style>{STYLE}</style><defs>{markers}</defs>"
        f'<rect class="page" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
        f"{''.join(body)}{keys}</svg>"
    )


def _legend_keys(legend: Sequence[tuple[str, str]], x0: float, y0: float, room: float) -> tuple[str, int]:
    parts, x, row = [], x0, 0
    for key, words in legend:
        width = 48.0 + 6.9 * len(words)
        if x > x0 and x + width > x0 + room:
            x, row = x0, row + 1
        y = y0 + row * _LEGEND_ROW
        if key in ("input", "common", "loose", "open", "cause"):
            kind = "cause open" if key == "open" else key
            sample = f'<path class="{kind}" d="M{x:.1f},{y:.1f} h18"/>'
        else:
            sample = f'<g class="node {key}"><rect x="{x:.1f}" y="{y - 6:.1f}" width="18" height="12" rx="6"/></g>'
        parts.append(f'{sample}<text class="key" x="{x + 25:.1f}" y="{y:.1f}" dy=".35em">{words}</text>')
        x += width
    return "".join(parts), row + 1 if legend else 0


def _width(name: str) -> float:
    # No font is measured: wide scripts take two columns, combining marks none.
    columns = sum(0.0 if 0x300 <= ord(c) < 0x370 else 1.75 if ord(c) > 0x2E80 else 1.0 for c in name)
    return max(_NODE_HEIGHT + 6, 24.0 + 8.2 * columns)


def _xy(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
