// Where nodes stand when nobody has placed them: tiers, columns where arrows are many, else by the arrows.
import cytoscape from "cytoscape";
import dagre from "cytoscape-dagre";
import { inColumns, isDense } from "./columns.js";
import { edgesOf } from "./document.js";
import { inTiers, tiersOf } from "./tiers.js";

cytoscape.use(dagre);

const pen = document.createElement("canvas").getContext("2d");
export const labelOf = (name) => (name.length > 40 ? `${name.slice(0, 39)}…` : name);

/** How wide a node with this name is drawn. */
export function widthOf(name) {
  pen.font = "15px system-ui, sans-serif";
  return Math.max(46, pen.measureText(labelOf(name)).width + 30);
}

/** A place for every node of a drawing, in a room of this size. */
export function layered(doc, room) {
  const width = (name) => 40 + 9 * Math.min(name.length, 40);
  const tiers = isDense(doc) ? tiersOf(doc) : null;
  const loners = tiers ? doc.nodes.filter((name) => !tiers.flat().includes(name)) : [];
  if (tiers) return inTiers(loners.length ? [...tiers, loners] : tiers, widthOf, room);
  return (isDense(doc) && inColumns(doc, width)) || byArrows(doc, width);
}

function byArrows(doc, width) {
  const style = [{ selector: "node", style: { width: "data(width)", height: 38 } }];
  const scratch = cytoscape({ headless: true, styleEnabled: true, style });
  const ids = new Map(doc.nodes.map((name, place) => [name, `s${place}`]));
  for (const [name, id] of ids) scratch.add({ data: { id, width: width(name) } });
  for (const { kind, from, to } of edgesOf(doc))
    if (kind === "directed") scratch.add({ data: { source: ids.get(from), target: ids.get(to) } });
  scratch.layout({ name: "dagre", rankDir: "LR", nodeSep: 46, rankSep: 84, fit: false }).run();
  const places = new Map(
    doc.nodes.map((name) => [name, Object.values(scratch.getElementById(ids.get(name)).position()).map(Math.round)]),
  );
  scratch.destroy();
  return places;
}
