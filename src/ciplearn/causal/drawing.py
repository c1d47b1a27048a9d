"""A graph as SVG: roles by colour, latent nodes dashed, open paths in red; light and dark by the reader's setting.

Wide graphs, of ten nodes and more, would drown in lines. There nodes with the same causes and effects share a frame,
and an edge at the frame stands for one at each of them; what the predictor sees is marked by a dot instead of an edge.
Of a graph of tiers each tier has its frame, and arrows lead to the next one only.
"""

from __future__ import annotations

import html
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ciplearn._core.wording import as_list
from ciplearn.causal.drawing_parts import Box, Line, boxes, draw_lines, draw_node, node_size, rectangle
from ciplearn.causal.layout import Layout, layered
from ciplearn.causal.names import tiers_of
from ciplearn.causal.paths import Path, predictor_name

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph
    from ciplearn.causal.independence import Independence
    from ciplearn.causal.verdict import Verdict

_WIDE = 10  # nodes
_MARGIN = 26.0
_LEGEND_ROW = 24.0
_MOST_SAID = 40  # sentences for readers who see no picture

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
    refuted: Sequence[Independence] = (),
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
    tier_of = {name: place for place, tier in enumerate(tiers) for name in tier} if len(tiers) > 2 else {}
    if tier_of:
        lines = [line for line in lines if line.kind != "cause" or tier_of[line.b] - tier_of[line.a] == 1]
    parts = boxes(graph, roles, open_ends if framed else set(names), tier_of)
    box_of = {name: box for box in parts for name in box.members}
    lines = _bundled(lines, box_of)
    layout = _placed(graph, lines, names) if placed else _laid_out(graph, lines, box_of)
    centres = {
        name: (layout.centres[box.name][0], layout.centres[box.name][1] + box.offsets[name])
        for name, box in box_of.items()
    }
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
    return _document(layout, parts, body, legend, identity, _in_words(graph))


def _in_words(graph: CausalGraph) -> str:
    """The graph for readers who see no picture."""
    tiers = tiers_of(graph.directed)
    effects: dict[str, list[str]] = {}
    for cause, effect in graph.directed:
        effects.setdefault(cause, []).append(effect)
    said = [f"{cause} acts on {as_list(names)}" for cause, names in effects.items()]
    if len(tiers) > 2:
        said = ["tiers, each of which acts on all later ones, are " + " | ".join(", ".join(tier) for tier in tiers)]
    said += [f"{a} and {b} have a common cause that nobody measured" for a, b in graph.bidirected]
    said += [f"{a} acts on {b}, or {b} on {a}" for a, b in graph.undirected]
    if len(said) > _MOST_SAID:
        said = [f"{len(graph.nodes)} nodes and {len(graph.directed)} arrows"]
    return html.escape(f"causal graph: {'; '.join(said)}" if said else "causal graph")


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
    lines = [Line(a, b, "cause", frozenset((a, b)) in hot) for a, b in graph.directed]
    lines += [Line(a, b, "loose", frozenset((a, b)) in hot) for a, b in graph.undirected]
    if verdict is not None:
        lines += [Line(name, predictor, "input", frozenset((name, predictor)) in hot) for name in verdict.inputs]
    return lines + [Line(a, b, "common", frozenset((a, b)) | {"↔"} in hot) for a, b in graph.bidirected]


def _bundled(lines: Sequence[Line], box_of: Mapping[str, Box]) -> list[Line]:
    """Draw the edges between two boxes once; bidirected edges stay between their nodes."""
    between = (
        line if line.asks_no_column else replace(line, a=box_of[line.a].name, b=box_of[line.b].name) for line in lines
    )
    return list(dict.fromkeys(between))


def _placed(graph: CausalGraph, lines: Sequence[Line], names: Sequence[str]) -> Layout:
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
    return Layout(centres, {name: (x, x) for name, (x, _) in centres.items()}, [()] * len(lines))


def _laid_out(graph: CausalGraph, lines: Sequence[Line], box_of: Mapping[str, Box]) -> Layout:
    """Lay the boxes out in columns, Ŷ in the last; bidirected edges ask for no column but are led around boxes too."""
    member = next(graph.members(1), None) if graph.undirected else graph
    rank = {name: place for place, name in enumerate(member.topological_order() if member else graph.nodes)}
    order = sorted({box.name for box in box_of.values()}, key=lambda name: rank.get(name, len(rank)))
    place = {name: number for number, name in enumerate(order)}
    edges = [(a, b) if place[a] < place[b] else (b, a) for a, b in _ends(lines, box_of, common=False)]
    sizes = {box.name: box.size for box in box_of.values()}
    last = next((name for name in order if name not in rank), None)
    layout = layered(order, edges, sizes, _ends(lines, box_of, common=True), last)
    of_edges, of_common = iter(layout.runs[: len(edges)]), iter(layout.runs[len(edges) :])
    return replace(layout, runs=[next(of_common if line.asks_no_column else of_edges) for line in lines])


def _ends(lines: Sequence[Line], box_of: Mapping[str, Box], common: bool) -> list[tuple[str, str]]:
    return [(box_of[line.a].name, box_of[line.b].name) for line in lines if line.asks_no_column == common]


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
