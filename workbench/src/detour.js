// Around a node: an edge that runs straight behind a third node would read as two edges.

const CLEAR = 9;

/**
 * How far the middle of an edge's curve must lie from the straight line to pass every other node; 0 where none is in the way.
 * A curve whose control point lies k to the side is 2 t (1 - t) k off the line at the share t of its length.
 *
 * @param from, to { x, y }
 * @param nodes [{ x, y, width, height }], without the two ends
 */
export function detour(from, to, nodes) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (!length) return 0;
  const [a, b] = [(to.x - from.x) / length, (to.y - from.y) / length];
  let [left, right] = [0, 0];
  for (const { x, y, width, height } of nodes) {
    const t = ((x - from.x) * a + (y - from.y) * b) / length;
    if (t <= 0.05 || t >= 0.95) continue;
    const aside = (y - from.y) * a - (x - from.x) * b;
    const wide = (Math.abs(b) * width + Math.abs(a) * height) / 2 + CLEAR;
    if (Math.abs(aside) >= wide) continue;
    const share = 2 * t * (1 - t);
    left = Math.max(left, (aside + wide) / share);
    right = Math.min(right, (aside - wide) / share);
  }
  return left < -right ? left : right;
}
