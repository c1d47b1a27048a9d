// The frontier as a drawing: accuracy against variance of counterfactuals, one dot per stop, baselines beside.
import { svg } from "./dom.js";
import { said, ticks } from "./figures.js";

const WIDE = 440;
const HIGH = 330;
const EDGE = { left: 58, right: 14, top: 14, bottom: 44 };
const HALO = 15; // around the stop that is stood at: it lies on no number of the axis where VCF is 0

/** The stops of a path, from the predictor without a constraint of the same learner on. */
export function pathOf(run, current) {
  const own = current.free ? (run.stops.find((stop) => stop.key === run.chosen) ?? current) : current;
  const free = (stop) => stop.free && stop.learner === own.learner;
  const path = run.stops.filter((stop) => free(stop) || stop.path === own.path);
  return path.includes(current) ? path : [current];
}

/** Draw a run; `pick(key)` is called when a stop is clicked. */
export function frontier(run, current, scoreName, pick) {
  const stops = run.stops.filter((stop) => stop.vcf !== null);
  if (!stops.length) return null;
  const xs = [0, ...stops.map((stop) => stop.vcf)];
  const ys = stops.map((stop) => stop.score);
  const [left, right] = [0, Math.max(...xs) * 1.05 || 1];
  const room = (Math.max(...ys) - Math.min(...ys)) * 0.08 || 0.05;
  const [low, high] = [Math.min(...ys) - room, Math.max(...ys) + room];
  const start = EDGE.left + HALO;
  const x = (value) => start + ((value - left) / (right - left)) * (WIDE - start - EDGE.right);
  const y = (value) => HIGH - EDGE.bottom - ((value - low) / (high - low)) * (HIGH - EDGE.top - EDGE.bottom);
  const path = (entries) =>
    entries.map(([a, b], place) => `${place ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  return svg(
    "svg.frontier",
    {
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      role: "group",
      "aria-label": `Frontier: ${scoreName} against variance of counterfactuals`,
    },
    ticks(left, right).map((at) => [
      svg("line.grid", { x1: x(at), x2: x(at), y1: EDGE.top, y2: HIGH - EDGE.bottom }),
      svg("text.tick", { x: x(at), y: HIGH - EDGE.bottom + 18, "text-anchor": "middle" }, said(at)),
    ]),
    ticks(low, high).map((at) => [
      svg("line.grid", { x1: EDGE.left, x2: WIDE - EDGE.right, y1: y(at), y2: y(at) }),
      svg("text.tick", { x: EDGE.left - 8, y: y(at) + 4, "text-anchor": "end" }, said(at)),
    ]),
    svg(
      "text.axis",
      { x: (EDGE.left + WIDE - EDGE.right) / 2, y: HIGH - 8, "text-anchor": "middle" },
      "variance of counterfactuals (VCF): less is more invariant",
    ),
    svg(
      "text.axis",
      {
        x: 0,
        y: 0,
        transform: `translate(14 ${(EDGE.top + HIGH - EDGE.bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      },
      scoreName,
    ),
    // The predictor without a constraint is the beginning of every path of its learner.
    [...new Map(stops.filter((stop) => !stop.free && !stop.baseline).map((stop) => [stop.path, stop])).values()].map(
      (stop) =>
        svg(`path.route.p${stop.path % 6}${stop.mixed ? ".mixed" : ""}`, {
          d: path(pathOf({ ...run, stops }, stop).map((one) => [one.vcf, one.score])),
        }),
    ),
    marks(stops, x, y),
    stops
      .filter((stop) => !stop.baseline || stop === current)
      // The one that is stood at lies on top.
      .sort((a, b) => (a === current) - (b === current))
      .map((stop) => dot(stop, stop === current, stop.key === run.chosen, x, y, pick)),
  );
}

function dot(stop, isCurrent, isChosen, x, y, pick) {
  const [a, b] = [x(stop.vcf), y(stop.score)];
  const size = isCurrent ? 9 : 5;
  return svg(
    `g.stop.p${stop.path % 6}${isCurrent ? ".current" : ""}${stop.free ? ".free" : ""}`,
    {
      tabindex: 0,
      role: "button",
      "aria-pressed": String(isCurrent),
      "aria-label": `${stop.name}: score ${said(stop.score)}, VCF ${said(stop.vcf)}${isChosen ? "; taken" : ""}`,
      "data-stop": stop.key,
      "data-key": `stop|${stop.key}`,
      onclick: () => pick(stop.key),
      onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), pick(stop.key)),
    },
    isChosen ? svg("circle.halo", { cx: a, cy: b, r: size + 5 }) : null,
    svg("circle.dot", { cx: a, cy: b, r: size }),
    svg("title", {}, stop.name),
  );
}

function marks(stops, x, y) {
  const named = [];
  return stops
    .filter((stop) => stop.baseline)
    .map((baseline) => {
      const [a, b] = [x(baseline.vcf), y(baseline.score)];
      const name = { x: a + 11, y: b + 5 };
      // Baselines may stand at the same place: then their names stand side by side.
      while (named.some((other) => Math.abs(other.x - name.x) < 34 && Math.abs(other.y - name.y) < 14)) name.x += 34;
      named.push(name);
      return svg(
        "g.baseline",
        {},
        svg("path", { d: `M${a - 6} ${b - 6}L${a + 6} ${b + 6}M${a - 6} ${b + 6}L${a + 6} ${b - 6}` }),
        svg("text", name, baseline.name),
      );
    });
}
