// Where edges are so many that a layout by edges leaves no room for names: causes left of effects, evenly spaced.

const [ACROSS, DOWN] = [130, 76];

/** Whether a drawing has so many arrows that rows and columns show more of it. */
export const isDense = ({ nodes, directed }) => directed.length > 3 * nodes.length;

/** A place for every node: in the column of the longest way that leads to it; null where arrows go round in a circle. */
export function inColumns({ nodes, directed }, width) {
  const rank = new Map(nodes.map((name) => [name, 0]));
  for (let round = 0, moved = true; moved; round += 1) {
    if (round > nodes.length) return null;
    moved = false;
    for (const [from, to] of directed)
      if (rank.get(to) <= rank.get(from)) {
        rank.set(to, rank.get(from) + 1);
        moved = true;
      }
  }
  const columns = [];
  for (const name of nodes) (columns[rank.get(name)] ??= []).push(name);
  const tallest = Math.max(...columns.map((column) => column.length));
  const places = new Map();
  let left = 0;
  for (const column of columns) {
    const wide = Math.max(...column.map(width));
    const apart = (DOWN * tallest) / column.length;
    column.forEach((name, row) => places.set(name, [Math.round(left + wide / 2), Math.round((row + 0.5) * apart)]));
    left += wide + ACROSS;
  }
  return places;
}
