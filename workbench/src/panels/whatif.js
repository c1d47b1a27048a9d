// What if: one row, other protected values, and what two models would have said.
import { debounced, el, fill, svg, tableOf } from "../dom.js";
import { said, ticks } from "../figures.js";
import { isOther, sayOther } from "../other.js";

export class WhatIfPanel {
  constructor(app) {
    this.app = app;
    this.other = el("div");
    this.top = el("div");
    this.answer = el("div", { "aria-live": "polite" });
    this.body = el("div", {}, this.top, this.answer);
    this.element = el("div", {}, this.other, this.body);
    this.loaded = null;
    this.imagineSoon = debounced(() => this.#imagine(), 120);
  }

  opened() {
    this.show();
  }

  /** The run and stop that are asked about: those that the walk stands at. */
  get #where() {
    const { run } = this.app.panels.train;
    if (!run || !run.stops.length) return null;
    const stop = this.app.panels.train.stopOf(run);
    return { run, stop, key: `${run.name}/${stop.key}` };
  }

  async show() {
    const { app } = this;
    if (app.tabs?.current !== "whatif") return;
    const where = this.#where;
    const other = Boolean(where) && isOther(app, where.run);
    fill(this.other, where ? sayOther(app, where.run) : null);
    this.body.inert = other;
    if (!where) {
      this.loaded = null;
      fill(this.answer);
      fill(
        this.top,
        el(
          "div.card",
          {},
          el("h3", {}, "What would it have said?"),
          el("p", {}, "Train first. Then pick a row, move what is protected, and see what would have followed."),
          el(
            "p.buttons",
            {},
            el("button.primary", { "data-key": "to-train", onclick: () => app.tabs.open("train") }, "To training"),
          ),
        ),
      );
      return;
    }
    if (other || this.loaded === where.key) return;
    this.loaded = where.key;
    fill(this.answer);
    fill(this.top, el("p.hint", { role: "status" }, "Estimating a causal model of the rows that judge …"));
    const found = await app.ask({ do: "rows", run: where.run.name, stop: where.stop.key });
    // The run may be gone, or another stop chosen, by the time that its rows come.
    if (this.loaded !== where.key || this.#where?.key !== where.key) return;
    if (found.error) {
      this.loaded = null;
      fill(this.top, el("div.card.bad", { role: "alert" }, el("p", {}, found.error)));
      return;
    }
    this.found = found;
    this.#pick(this.row && found.rows.some((row) => row.row === this.row) ? this.row : found.rows[0].row);
  }

  /** Ask about a row as it is, or with another value of the first protected node. */
  #pick(row, asItIs = false) {
    this.row = row;
    const entry = this.found.rows.find((one) => one.row === row);
    const { protected: nodes } = this.found;
    this.values = new Map(nodes.map((node) => [node.name, entry.values[node.name]]));
    if (!asItIs && nodes.length) this.values.set(nodes[0].name, another(nodes[0], entry.values[nodes[0].name]));
    this.#controls();
    this.#imagine();
  }

  #controls() {
    const { found } = this;
    const { stop } = this.#where;
    const label = (row) =>
      `row ${row.row}: ${found.columns.map((name) => `${name} ${typeof row.values[name] === "number" ? said(row.values[name]) : row.values[name]}`).join(", ")}`;
    const set = (name, value) => {
      this.values.set(name, value);
      this.imagineSoon();
    };
    const control = (node) => {
      const value = this.values.get(node.name);
      if (node.kind === "category")
        return el(
          "label.field",
          {},
          `Had ${node.name} been`,
          el(
            "select",
            { "data-key": `set|${node.name}`, onchange: (event) => set(node.name, event.target.value) },
            node.levels.map((level) => el("option", { value: level, selected: level === String(value) }, level)),
          ),
        );
      const shown = el("output", {}, said(value));
      return el(
        "label.field",
        {},
        el("span", {}, `Had ${node.name} been `, shown),
        el("input", {
          type: "range",
          min: node.low,
          max: node.high,
          step: (node.high - node.low) / 200 || 1,
          value,
          "data-key": `set|${node.name}`,
          oninput: (event) => {
            shown.textContent = said(Number(event.target.value));
            set(node.name, Number(event.target.value));
          },
        }),
      );
    };
    fill(
      this.top,
      el(
        "p.hint",
        {},
        `The model of this stop (${stop.name}) beside the one without a constraint. Imagined by an estimated causal model: as good as the drawing and its fit.`,
      ),
      el(
        "label.field",
        {},
        "Row, the most affected first",
        el(
          "select",
          { "data-key": "row", onchange: (event) => this.#pick(event.target.value) },
          found.rows.map((row) => el("option", { value: row.row, selected: row.row === this.row }, label(row))),
        ),
      ),
      found.protected.map(control),
      el(
        "p.buttons.apart",
        {},
        el("button", { "data-key": "reset", onclick: () => this.#pick(this.row, true) }, "As it was"),
      ),
    );
  }

  async #imagine() {
    const { app } = this;
    const where = this.#where;
    if (!where) return;
    const asked = (this.asked = {});
    const found = await app.ask({
      do: "imagine",
      run: where.run.name,
      stop: where.stop.key,
      row: this.row,
      values: Object.fromEntries(this.values),
    });
    if (asked !== this.asked) return;
    if (found.error) fill(this.answer, el("div.card.bad", { role: "alert" }, el("p", {}, found.error)));
    else fill(this.answer, this.#said(found), curve(found, this.values), this.#moved(found));
  }

  #said(found) {
    const change = (key) =>
      found.before[key] === null ? "–" : `${said(found.before[key])} → ${said(found.after[key])}`;
    return el(
      "div.pair",
      {},
      el("div.card.kept", {}, el("small", {}, `This stop: ${found.output}`), el("p.big", {}, change("kept"))),
      el("div.card.free", {}, el("small", {}, "Without a constraint"), el("p.big", {}, change("free"))),
    );
  }

  #moved(found) {
    const show = (value) => (typeof value === "number" ? said(value) : value);
    const names = Object.keys(found.observed);
    const moved = (name) => found.moved.includes(name);
    return tableOf(
      "imagined",
      ["", "is", "would have been"],
      names.map((name) => [
        [name, found.protected.includes(name) ? el("small", {}, "protected") : null],
        show(found.observed[name]),
        `${show(found.imagined[name])}${moved(name) ? " ●" : ""}`,
      ]),
      `The row as it is, and as it would have been. Its outcome was ${show(found.outcome)}.`,
      (place) => (moved(names[place]) ? "moved" : ""),
    );
  }
}

/** Another value than a row's own: another level, or the end of the range that lies further off. */
function another({ kind, levels, low, high }, own) {
  if (kind === "category") return levels.find((level) => level !== String(own)) ?? own;
  return own > (low + high) / 2 ? low : high;
}

/** What both models would have said along the first protected node. */
function curve(found, values) {
  const { points, kind, name } = found.curve;
  const [wide, high] = [440, 220];
  const numbers = points.map((point, place) => (kind === "number" ? point.at : place));
  const answers = points.flatMap((point) => [point.kept, point.free]).filter((value) => value !== null);
  const room = (Math.max(...answers) - Math.min(...answers)) * 0.08 || 0.1;
  const [low, top] = [Math.min(...answers) - room, Math.max(...answers) + room];
  const x = (at) => 62 + ((at - numbers[0]) / (numbers.at(-1) - numbers[0] || 1)) * (wide - 84);
  const y = (at) => high - 40 - ((at - low) / (top - low)) * (high - 56);
  const path = (key) =>
    points
      .map((point, place) => `${place ? "L" : "M"}${x(numbers[place]).toFixed(1)} ${y(point[key]).toFixed(1)}`)
      .join("");
  const at =
    kind === "number" ? values.get(name) : points.findIndex((point) => String(point.at) === String(values.get(name)));
  const labels =
    kind === "number"
      ? ticks(numbers[0], numbers.at(-1)).map((tick) => [tick, said(tick)])
      : points.map((point, place) => [place, String(point.at)]);
  return el(
    "figure",
    {},
    svg(
      "svg.curve",
      { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${found.output} against ${name}` },
      ticks(low, top, 4).map((tick) => [
        svg("line.grid", { x1: 62, x2: wide - 22, y1: y(tick), y2: y(tick) }),
        svg("text.tick", { x: 54, y: y(tick) + 4, "text-anchor": "end" }, said(tick)),
      ]),
      labels.map(([place, text]) => svg("text.tick", { x: x(place), y: high - 22, "text-anchor": "middle" }, text)),
      svg("text.axis", { x: wide / 2, y: high - 4, "text-anchor": "middle" }, `had ${name} been`),
      svg("line.now", { x1: x(at), x2: x(at), y1: 16, y2: high - 40 }),
      points[0].free === null ? null : svg("path.free", { d: path("free") }),
      svg("path.kept", { d: path("kept") }),
    ),
    el("figcaption", {}, el("span", {}, "— this stop"), el("span", {}, "┄ without a constraint")),
  );
}
