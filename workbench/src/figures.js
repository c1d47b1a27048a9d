// Numbers as people read them.

const raised = (number) => [...String(number)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");

/** A number in three or four digits, written out unless that takes a dozen zeros. */
export function said(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-6 || size >= 1e12) {
    const [digits, power] = value.toExponential(2).split("e");
    return `${Number(digits)} × 10${raised(Number(power))}`;
  }
  if (size < 0.001) return value.toFixed(1 - Math.floor(Math.log10(size))).replace(/0+$/, "");
  if (size >= 100_000) return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(size < 1 ? 3 : 4)));
}

/** A figure with its interval: { value, low, high }. */
export const within = (figure) =>
  figure ? `${said(figure.value)} (${said(figure.low)} to ${said(figure.high)})` : "–";

/** Round numbers that span a range. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step)
    found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}
