// What shapes and colours mean.
import { el, svg } from "./dom.js";

const SHAPES = [
  ["protected", "M5 1.500h10l4.500 6.500-4.500 6.500H5L.5 8z"],
  ["outcome", "M10 1.500c5 0 9 2.900 9 6.500s-4 6.500-9 6.500S1 11.600 1 8s4-6.500 9-6.500z"],
  ["adjusted", "M1.500 1.500h17v13h-17z"],
  ["latent", "M10 1.500c5 0 9 2.900 9 6.500s-4 6.500-9 6.500S1 11.600 1 8s4-6.500 9-6.500z"],
];
const LINES = [
  ["causal path", "causal"],
  ["open path that is not", "biasing"],
  ["acts on all that follow", "tiers"],
];

export const legend = () =>
  el(
    "div.legend",
    { "aria-hidden": "true" },
    SHAPES.map(([name, path]) =>
      el("span", {}, svg(`svg.${name}`, { viewBox: "-1 -1 22 18" }, svg("path", { d: path })), name),
    ),
    LINES.map(([name, kind]) =>
      el(`span.of-${kind}`, {}, svg(`svg.${kind}`, { viewBox: "0 0 20 16" }, svg("path", { d: "M1 8h17M13 4l5 4-5 4" })), name),
    ),
  );
