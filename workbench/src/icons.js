// Icons as lines, so that they look the same whatever fonts a machine has.
import { svg } from "./dom.js";

const PATHS = {
  select: "M5 3l6 15 2.2-6.3L19.5 9.500z",
  directed: "M4 12h15M13 6l6 6-6 6",
  bidirected: "M3 12h18M8 7l-5 5 5 5M16 7l5 5-5 5",
  add: "M12 5v14M5 12h14",
  undo: "M9 6L4 11l5 5M4 11h10a6 6 0 0 1 0 12h-1",
  redo: "M15 6l5 5-5 5M20 11H10a6 6 0 0 0 0 12h1",
  layout: "M3 9h6v6H3zM15 3h6v6h-6zM15 15h6v6h-6zM9 12h3M12 6v12M12 6h3M12 18h3",
  fit: "M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5",
  in: "M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM15.500 15.500L21 21M10.500 7.500v6M7.500 10.500h6",
  out: "M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM15.500 15.500L21 21M7.500 10.500h6",
  help: "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.200-1.500 2.400M12 17.500v.5",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  light:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2.500M12 19.500V22M2 12h2.500M19.500 12H22M5 5l1.700 1.700M17.300 17.300L19 19M19 5l-1.700 1.700M6.700 17.300L5 19",
  dark: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z",
};

export const icon = (name) =>
  svg("svg.glyph", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
