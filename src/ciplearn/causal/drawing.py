"""A graph as SVG: roles by colour, latent nodes dashed, open paths in red; light and dark by the reader's setting.

Wide graphs, of ten nodes and more, would drown in lines. There nodes with the same causes and effects share a frame,
and an edge at the frame stands for one at each of them; what the predictor sees is marked by a dot instead of an edge.
Of a graph of tiers each tier has its frame, and arrows lead to the next one only. Directed edges run from side to side,
led around the boxes; bidirected ones are dashed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from ciplearn.causal.layout import (
    LINE_HEIGHT,
    NODE_HEIGHT,
    Box,
    Crossing,
    Layout,
    Point,
    Size,
    at_positions,
    boxes,
    inset,
    label,
    layered,
    node_size,
)
from ciplearn.causal.names import in_words, tiers_of
from ciplearn.causal.statements import predictor_name

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph
    from ciplearn.causal.statements import Independence, Path
    from ciplearn.causal.verdict import Verdict

_WIDE = 10  # nodes
_MARGIN = 26.0
_LEGEND_ROW = 24.0
_ARROW = 7.0  # the tip of an arrow stops short of the node by the length of its head
_COMMON_PORT = 11.0  # bidirected edges touch the side of a node below the directed ones
_SIDE = 30.0  # how far a bidirected edge within a column bends out of it

# Fills differ in lightness as well as in hue, so that the roles stay apart without colour vision.
_STYLE = """
.cg{--page:#fff;--ink:#334155;--pale:#b6c0ce;--red:#dc2626;--text:#0f172a;--soft:#64748b;--other:#f1f5f9;
--protected:#fdba74;--outcome:#93c5fd;--given:#a7e8bd;--context:#e9e3fb;--predictor:#fff;--block:#f8fafc;
font-family:ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif}
@media (prefers-color-scheme:dark){.cg{--page:#0f172a;--ink:#cbd5e1;--pale:#475569;--red:#f87171;--text:#f8fafc;
--soft:#94a3b8;--other:#1e293b;--protected:#9a4a12;--outcome:#1d4f91;--given:#1b6b41;--context:#43386e;
--predictor:#0f172a;--block:#172033}}
.cg .page{fill:var(--page)}
.cg text{font-size:14px;fill:var(--text);text-anchor:middle}
.cg text.key{font-size:12px;fill:var(--soft);text-anchor:start}
.cg path{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-linecap:round}
.cg path.input{stroke:var(--pale);stroke-width:1.2}
.cg path.common{stroke-dasharray:5 4}
.cg path.refuted{stroke:var(--red);stroke-width:2;stroke-dasharray:1.5 5}
.cg path.open{stroke:var(--red);stroke-width:2.4}
.cg marker path{stroke:none}
.cg marker .ink{fill:var(--ink)}.cg marker .pale{fill:var(--pale)}.cg marker .red{fill:var(--red)}
.cg .node rect{fill:var(--other);stroke:var(--ink);stroke-width:1.3}
.cg .protected rect{fill:var(--protected)}.cg .outcome rect{fill:var(--outcome)}.cg .given rect{fill:var(--given)}
.cg .context rect{fill:var(--context)}.cg .predictor rect{fill:var(--predictor);stroke-width:2.4}
.cg .block{fill:var(--block);stroke:var(--soft);stroke-width:1}
.cg .seen{fill:var(--ink);stroke:var(--page);stroke-width:1.5}
.cg .latent rect{fill:none;stroke:var(--soft);stroke-dasharray:4 3}
.cg .latent text{fill:var(--soft);font-style:italic}
""".replace("\n", "")

_LEGEND = (
    ("protected", "protected"),
    ("outcome", "outcome"),
    ("given", "adjusted for"),
    ("context", "context"),
    ("predictor", "predictor"),
    ("latent", "latent"),
    ("seen", "seen by the predictor"),
    ("block", "same causes and effects"),
    ("tiers", "acts on all that follow, not only on the next"),
    ("input", "input of the predictor"),
    ("common", "unobserved common cause"),
    ("loose", "direction not known"),
    ("open", "open path"),
    ("refuted", "independent in the graph, not in the data"),
)


def draw(
    graph: CausalGraph,
    verdict: Verdict | None,
    paths: Sequence[Path],
    prediction_edges: bool | None,
    refuted: Sequence[Independence],
) -> str:
    """Return an SVG document of the graph; with a verdict, its roles, the predictor and its open paths."""
    wide = len(graph.nodes) >= _WIDE
    inputs_as_edges = not wide if prediction_edges is None else prediction_edges
    shown = (*paths, *(() if verdict is None else verdict.open_paths))
    predictor = predictor_name(graph)
    lines = _lines(graph, verdict, predictor, shown)
    pairs = dict.fromkeys(tuple(sorted((statement.left[0], statement.right[0]))) for statement in refuted)
    lines += [Line(a, b, "refuted", False) for a, b in pairs]
    if not inputs_as_edges:
        lines = [line for line in lines if line.kind != "input" or line.is_open]
    with_predictor = verdict is not None and (inputs_as_edges or any(line.kind == "input" for line in lines))
    names = [*graph.nodes, *([predictor] if with_predictor else [])]
    seen = () if verdict is None or inputs_as_edges else verdict.inputs
    roles = _roles(graph, verdict, names)
    placed = bool(graph.nodes) and set(graph.nodes) <= set(graph.positions)
    open_ends = {name for line in lines if line.is_open or line.kind == "refuted" for name in (line.a, line.b)}
    framed = wide and not placed
    tiers = tiers_of(graph.directed) if framed and not open_ends and not graph.undirected else []
    tier_of = {name: rank for rank, tier in enumerate(tiers) for name in tier} if len(tiers) > 2 else {}
    if tier_of:
        lines = [line for line in lines if line.kind != "cause" or tier_of[line.b] - tier_of[line.a] == 1]
    parts = boxes(graph, roles, open_ends if framed else set(names), tier_of)
    box_of = {name: box for box in parts for name in box.members}
    # The edges between two boxes are drawn once; bidirected ones stay between their nodes.
    ends = ((line, box_of[line.a].name, box_of[line.b].name) for line in lines)
    lines = list(dict.fromkeys(line if line.asks_no_column else replace(line, a=a, b=b) for line, a, b in ends))
    layout = at_positions(graph, names, len(lines)) if placed else _laid_out(graph, lines, box_of)
    spots = ((name, box.offsets[name], layout.centres[box.name]) for name, box in box_of.items())
    centres = {name: (x, y + offset) for name, offset, (x, y) in spots}
    identity = f"cg{zlib.crc32(repr((names, lines, sorted(roles.items()))).encode()):08x}"
    # Open paths last, so that no other line covers them.
    curves = zip(lines, draw_lines(lines, box_of, layout, centres, identity, bowed=placed), strict=True)
    body = [rectangle(box.size, layout.centres[box.name], 14, 'class="block" ') for box in parts if box.framed]
    body += [curve for _, curve in sorted(curves, key=lambda pair: pair[0].is_open)]
    body += [draw_node(name, centres[name], roles[name], name in seen) for name in names]
    present = {*roles.values(), *("open" if line.is_open else line.kind for line in lines)}
    present |= {"tiers"} if tier_of else {"block" for box in parts if box.framed}
    present |= {"seen"} if seen else set()
    legend = [(key, words) for key, words in _LEGEND if key in present]
    return _document(layout, parts, body, legend, identity, escape(in_words(graph)))


def _roles(graph: CausalGraph, verdict: Verdict | None, names: Sequence[str]) -> dict[str, str]:
    roles = dict.fromkeys(names, "predictor") | dict.fromkeys(graph.nodes, "other")
    if verdict is None:
        parts = {"given": graph.adjusted, "outcome": graph.outcomes, "protected": graph.exposures}
    else:
        parts = {"context": verdict.context, "given": verdict.adjustment, "outcome": (verdict.outcome,)}
        parts["protected"] = verdict.protected
    for role, members in (*parts.items(), ("latent", graph.latent)):
        roles |= dict.fromkeys(members, role)
    return roles


def _lines(graph: CausalGraph, verdict: Verdict | None, predictor: str, shown: Sequence[Path]) -> list[Line]:
    hot = {frozenset((a, b)) | {"↔"} if arrow == "↔" else frozenset((a, b)) for p in shown for a, arrow, b in p.edges}
    inputs = [] if verdict is None else [(name, predictor) for name in verdict.inputs]
    kinds = (("cause", graph.directed), ("loose", graph.undirected), ("input", inputs))
    lines = [Line(a, b, kind, frozenset((a, b)) in hot) for kind, edges in kinds for a, b in edges]
    return lines + [Line(a, b, "common", frozenset((a, b)) | {"↔"} in hot) for a, b in graph.bidirected]


def _laid_out(graph: CausalGraph, lines: Sequence[Line], box_of: Mapping[str, Box]) -> Layout:
    """Lay the boxes out in columns, Ŷ in the last; bidirected edges ask for no column but are led around boxes too."""
    member = next(graph.members(1), None) if graph.undirected else graph
    rank = {name: level for level, name in enumerate(member.topological_order() if member else graph.nodes)}
    order = sorted({box.name for box in box_of.values()}, key=lambda name: rank.get(name, len(rank)))
    column = {name: number for number, name in enumerate(order)}
    ends = [(box_of[line.a].name, box_of[line.b].name, line.asks_no_column) for line in lines]
    edges = [(a, b) if column[a] < column[b] else (b, a) for a, b, common in ends if not common]
    sizes = {box.name: box.size for box in box_of.values()}
    last = next((name for name in order if name not in rank), None)
    layout = layered(order, edges, sizes, [(a, b) for a, b, common in ends if common], last)
    of_edges, of_common = iter(layout.runs[: len(edges)]), iter(layout.runs[len(edges) :])
    return replace(layout, runs=[next(of_common if line.asks_no_column else of_edges) for line in lines])


def _document(
    layout: Layout,
    parts: Sequence[Box],
    body: Sequence[str],
    legend: Sequence[tuple[str, str]],
    identity: str,
    label: str,
) -> str:
    placed = [(*layout.centres[box.name], *box.size) for box in parts]
    xs = [x + side * width / 2 for x, _, width, _ in placed for side in (-1, 1)] or [0.0]
    ys = [y + side * height / 2 for _, y, _, height in placed for side in (-1, 1)]
    ys = ys + [run.y for runs in layout.runs for run in runs] or [0.0]
    # A bidirected edge within the first column bends out to the left.
    left, top = min(xs) - 2 * _MARGIN, min(ys) - _MARGIN
    width = max(max(xs) + 2 * _MARGIN - left, 320.0)
    bottom = max(ys) + _MARGIN
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
        f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" role="img" aria-label="{label}">'
        f"<style>{_STYLE}</style><defs>{markers}</defs>"
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
        if key in ("input", "common", "loose", "open", "cause", "refuted", "tiers"):
            kind = {"open": "cause open", "tiers": "cause"}.get(key, key)
            sample = f'<path class="{kind}" d="M{x:.1f},{y:.1f} h18"/>'
        elif key == "seen":
            sample = f'<circle class="seen" cx="{x + 9:.1f}" cy="{y:.1f}" r="4"/>'
        elif key == "block":
            sample = f'<rect class="block" x="{x:.1f}" y="{y - 7:.1f}" width="18" height="14" rx="4"/>'
        else:
            sample = f'<g class="node {key}"><rect x="{x:.1f}" y="{y - 6:.1f}" width="18" height="12" rx="6"/></g>'
        parts.append(f'{sample}<text class="key" x="{x + 25:.1f}" y="{y:.1f}" dy=".35em">{words}</text>')
        x += width
    return "".join(parts), row + 1 if legend else 0


def draw_node(name: str, centre: Point, role: str, seen: bool) -> str:
    """Return a node as SVG: its full name as a title, a dot where the predictor sees it."""
    (width, height), (x, y), lines = node_size(name), centre, label(name)
    first = y - LINE_HEIGHT * (len(lines) - 1) / 2
    text = "".join(
        f'<tspan x="{x:.1f}" y="{first + LINE_HEIGHT * number:.1f}" dy=".35em">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    dot = f'<circle class="seen" cx="{x + width / 2 - 7:.1f}" cy="{y - height / 2 + 4:.1f}" r="4"/>' if seen else ""
    shape = rectangle((width, height), centre, NODE_HEIGHT / 2)
    return f'<g class="node {role}"><title>{escape(name)}</title>{shape}<text>{text}</text>{dot}</g>'


def rectangle(size: Size, centre: Point, radius: float, look: str = "") -> str:
    """Return a rectangle with round corners as SVG."""
    (width, height), (x, y) = size, centre
    return (
        f'<rect {look}x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:g}"/>'
    )


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
    """Return each line as SVG; `centres` are those of nodes; bidirected edges are `bowed` where no columns are."""
    left = {name: layout.centres[box.name][0] - box.size[0] / 2 for name, box in box_of.items()}
    right = {name: layout.centres[box.name][0] + box.size[0] / 2 for name, box in box_of.items()}
    forward = [n for n, line in enumerate(lines) if not line.asks_no_column and left[line.b] > right[line.a]]

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
            step = min(8.0, (box.size[1] - 12.0) / max(1, len(numbers) - 1))
            for rank, number in enumerate(numbers):
                port = step * (rank - (len(numbers) - 1) / 2)
                points[number] = (x + side * (box.size[0] / 2 - inset(box.size, box.framed, port)), y + port)
        return points

    starts, ends = touching(1), touching(-1)
    drawn = []
    for number, line in enumerate(lines):
        if number in starts:
            x, y = ends[number]
            end = (x - (0.0 if line.kind == "loose" else _ARROW), y)
            data = _bend(starts[number], end, layout.runs[number], layout.borders[line.a][1], layout.borders[line.b][0])
        elif bowed or not line.asks_no_column:
            data = _arc(line, centres)
        else:
            data = _common(line, box_of, layout, layout.runs[number], centres)
        mark = "red" if line.is_open else "pale" if line.kind == "input" else "ink"
        heads = "" if line.kind in ("loose", "refuted") else f' marker-end="url(#{identity}-{mark})"'
        if line.kind == "common":
            heads += f' marker-start="url(#{identity}-{mark})"'
        drawn.append(f'<path class="{line.kind}{" open" if line.is_open else ""}" d="{data}"{heads}/>')
    return drawn


def _bend(start: Point, end: Point, runs: Sequence[Crossing], leave: float, arrive: float) -> str:
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
    return _bend((x + _ARROW, y), (p - _ARROW, q), runs, borders[a][1], borders[b][0])


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


def _xy(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
