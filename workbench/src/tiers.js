// Tiers: groups of nodes, each of which acts on all later ones. Drawn as boxes, so that one arrow stands for many.

// Of a node; between nodes of a tier; between tiers, with room for an arrow; and how far a box reaches around its nodes.
const [HIGH, BESIDE, BETWEEN] = [38, 18, 62];
const AROUND = 13;

/** The tiers of a drawing of three and more; null where its arrows are not exactly those of tiers. */
export function tiersOf({ nodes, directed }) {
  const causes = new Map(nodes.map((name) => [name, new Set()]));
  for (const [from, to] of directed) causes.get(to).add(from);
  const joined = new Set(directed.flat());
  const tiers = [];
  const earlier = new Set();
  while (earlier.size < joined.size) {
    const acts = (name) => causes.get(name).size === earlier.size && [...earlier].every((one) => causes.get(name).has(one));
    const tier = nodes.filter((name) => joined.has(name) && !earlier.has(name) && acts(name));
    if (!tier.length) return null;
    tiers.push(tier);
    for (const name of tier) earlier.add(name);
  }
  return tiers.length > 2 ? tiers : null;
}

/** A place for every node: tiers as columns or as rows, whichever lets names be larger in a room of this size. */
export function inTiers(tiers, width, [wide, high]) {
  const laid = [false, true].map((inRows) => {
    const places = new Map();
    let [start, longest] = [0, 0];
    for (const tier of tiers) {
      const steps = tier.map((name) => (inRows ? width(name) : HIGH) + BESIDE);
      const length = steps.reduce((sum, step) => sum + step);
      const across = inRows ? HIGH : Math.max(...tier.map(width));
      let end = -length / 2;
      tier.forEach((name, place) => {
        end += steps[place];
        const spot = [end - steps[place] / 2, start + across / 2].map(Math.round);
        places.set(name, inRows ? spot : spot.reverse());
      });
      start += across + BETWEEN;
      longest = Math.max(longest, length);
    }
    const size = inRows ? [longest, start] : [start, longest];
    return { places, zoom: Math.min(wide / size[0], high / size[1]) };
  });
  return laid[laid[1].zoom > laid[0].zoom ? 1 : 0].places;
}

/** The boxes around tiers: { x, y, width, height } of each; null where two of them would lie on each other. */
export function boxesOf(tiers, boxOf) {
  const boxes = tiers.map((tier) => {
    const around = tier.map(boxOf);
    const edge = (which, axis, size, side) => which(...around.map((box) => box[axis] + (side * box[size]) / 2)) + side * AROUND;
    const [left, right] = [edge(Math.min, "x", "width", -1), edge(Math.max, "x", "width", 1)];
    const [top, bottom] = [edge(Math.min, "y", "height", -1), edge(Math.max, "y", "height", 1)];
    return { x: (left + right) / 2, y: (top + bottom) / 2, width: right - left, height: bottom - top };
  });
  const meet = (a, b) => Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2;
  return boxes.some((a, place) => boxes.slice(0, place).some((b) => meet(a, b))) ? null : boxes;
}
