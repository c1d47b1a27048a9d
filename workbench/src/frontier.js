// The frontier as a drawing: accuracy against variance of counterfactuals, one stop per gamma, baselines and the line beside.
import { svg } from "./dom.js";
import { said, ticks } from "./figures.js";

const WIDE = 440;
const HIGH = 330;
const EDGE = { left: 58, right: 14, top: 14, bottom: 44 };

/** Whether a stop was trained for accuracy alone; a line and columns left out have no gamma either. */
const isFree = (stop) => stop.gamma === 0 && !["line", "left-out"].includes(stop.route);

/** A stop in words. */
export function stopName(stop) {
  if (isFree(stop)) return "without a penalty";
  return stop.gamma === 0 ? `${stop.route} route` : `gamma ${said(stop.gamma)}, ${stop.route} route`;
}

/** Draw a run; `pick(key)` is called when a stop is clicked. */
export function frontier(run, current, scoreName, pick) {
  const stops = run.stops.filter((stop) => stop.vcf);
  if (!stops.length) return null;
  const points = [...stops, ...run.baselines.filter((baseline) => baseline.vcf)];
  const line = run.line.filter((point) => point.vcf !== undefined);
  const xs = [0, ...points.flatMap((point) => [point.vcf.high, point.vcf.value]), ...line.map((point) => point.vcf)];
  const ys = [...points.flatMap((point) => [point.score.low, point.score.high]), ...line.map((point) => point.score)];
  const [left, right] = [0, Math.max(...xs) * 1.05 || 1];
  const room = (Math.max(...ys) - Math.min(...ys)) * 0.08 || 0.05;
  const [low, high] = [Math.min(...ys) - room, Math.max(...ys) + room];
  const x = (value) => EDGE.left + ((value - left) / (right - left)) * (WIDE - EDGE.left - EDGE.right);
  const y = (value) => HIGH - EDGE.bottom - ((value - low) / (high - low)) * (HIGH - EDGE.top - EDGE.bottom);
  const routes = [...new Set(stops.map((stop) => stop.route))];
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
    line.length ? svg("path.mixed", { d: path(line.map((point) => [point.vcf, point.score])) }) : null,
    // The stop without a penalty is the beginning of every route.
    routes.map((route) =>
      svg(`path.route.${route}`, {
        d: path(
          stops
            .filter((stop) => stop.route === route || isFree(stop))
            .map((stop) => [stop.vcf.value, stop.score.value]),
        ),
      }),
    ),
    stops.filter((stop) => stop.key === current).map((stop) => cross(stop, x, y)),
    marks(run.baselines, x, y),
    stops.map((stop) => dot(stop, stop.key === current, stop.key === run.chosen, x, y, pick)),
  );
}

function cross(stop, x, y) {
  return [
    svg("line.error", { x1: x(stop.vcf.low), x2: x(stop.vcf.high), y1: y(stop.score.value), y2: y(stop.score.value) }),
    svg("line.error", { x1: x(stop.vcf.value), x2: x(stop.vcf.value), y1: y(stop.score.low), y2: y(stop.score.high) }),
  ];
}

function dot(stop, isCurrent, isChosen, x, y, pick) {
  const [a, b] = [x(stop.vcf.value), y(stop.score.value)];
  const size = isCurrent ? 9 : 6;
  const shape =
    stop.route === "counterfactual"
      ? svg("path.dot", { d: `M${a} ${b - size - 1}L${a + size + 1} ${b}L${a} ${b + size + 1}L${a - size - 1} ${b}Z` })
      : svg("circle.dot", { cx: a, cy: b, r: size });
  const name = stopName(stop);
  return svg(
    `g.stop.${stop.route}${isCurrent ? ".current" : ""}`,
    {
      tabindex: 0,
      role: "button",
      "aria-pressed": String(isCurrent),
      "aria-label": `Stop at ${name}: score ${said(stop.score.value)}, VCF ${said(stop.vcf.value)}${isChosen ? "; chosen" : ""}`,
      "data-stop": stop.key,
      onclick: () => pick(stop.key),
      onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), pick(stop.key)),
    },
    isChosen ? svg("circle.halo", { cx: a, cy: b, r: size + 5 }) : null,
    shape,
    svg("title", {}, name),
  );
}

function marks(baselines, x, y) {
  const named = [];
  return baselines
    .filter((baseline) => baseline.vcf)
    .map((baseline) => {
      const [a, b] = [x(baseline.vcf.value), y(baseline.score.value)];
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
