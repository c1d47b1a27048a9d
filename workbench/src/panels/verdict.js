// The verdict: the statement, whether it holds, why, and what would repair it.
import { el, fill } from "../dom.js";
import { fromJson } from "../document.js";
import { held, names, prose, term } from "../prose.js";
import { Sections } from "../section.js";

const CONDITIONS = {
  validity: "Back doors",
  parents: "Parents",
  noise: "Noise",
  paper: "As the paper prints it",
  class: "Directions",
};

export class VerdictPanel {
  constructor(app) {
    this.app = app;
    this.element = el("div");
    this.advice = el("div");
    this.lit = null;
    this.sections = new Sections();
  }

  show(answer) {
    this.lit = null;
    this.answer = answer;
    fill(this.advice);
    if (answer.error) fill(this.element, this.#problem(answer.error));
    else if (answer.state === "roles") fill(this.element, this.#teach(answer.missing));
    else fill(this.element, this.#judged(answer));
  }

  #problem(sentence) {
    const { editor } = this.app;
    return el(
      "div.card.bad",
      { role: "alert" },
      el("h3", {}, "This cannot be judged"),
      el("p", {}, sentence),
      el(
        "p.buttons",
        {},
        el(
          "button",
          { "data-key": "undo", disabled: !editor.past.length, onclick: () => editor.undo() },
          "Undo the last change",
        ),
      ),
    );
  }

  #teach(missing) {
    const { nodes } = this.app.editor.doc;
    const wanted = { outcome: "what is predicted", protected: "what must not influence the prediction" };
    if (!nodes.length) {
      return el(
        "div.card",
        {},
        el("h3", {}, "Nothing is drawn yet"),
        el(
          "p",
          {},
          "The verdict says what a prediction must not give away, if it is to be the same for a person of another sex, age or origin.",
        ),
        el(
          "p.buttons",
          {},
          el(
            "button.primary",
            { "data-key": "demo", onclick: () => this.app.openExample("demo") },
            "Show me an example",
          ),
        ),
      );
    }
    return el(
      "div.card",
      {},
      el("h3", {}, "Two roles make a question"),
      el("p", {}, `Say ${missing.map((role) => wanted[role]).join(" and ")}.`),
      ...missing.map((role) =>
        el(
          "label.field",
          {},
          role === "outcome" ? "Outcome" : "Protected",
          el(
            "select",
            { "data-key": `role-${role}`, onchange: (event) => this.#give(role, event.target.value) },
            el("option", { value: "" }, "choose a node"),
            nodes.map((name) => el("option", { value: name }, name)),
          ),
        ),
      ),
    );
  }

  #give(role, name) {
    if (!name) return;
    const { app } = this;
    app.canvas.select(name);
    app.selection.toggle(role === "outcome" ? "outcomes" : "exposures");
  }

  #judged(answer) {
    const some = answer.holds_in === "some";
    const word = answer.holds ? "Holds" : some ? "Holds in some directions only" : "Does not hold";
    return [
      el(
        `div.card.headline.${answer.holds ? "good" : "bad"}`,
        {},
        el("p.mark", {}, el("span.sign", { "aria-hidden": "true" }, answer.holds ? "✓" : "✗"), el("strong", {}, word)),
        this.#inWords(answer),
        el("p.statement", {}, prose(this.app, answer.statement)),
      ),
      this.#section(
        "Reasons",
        answer.reasons.filter((reason) => reason.condition !== "paper").map((reason) => this.#reason(reason)),
        true,
      ),
      this.advice,
      this.#section(
        "Assumptions that data cannot show",
        answer.assumptions.map((assumption) => this.#assumption(assumption)),
      ),
      this.#section(
        "Notes",
        answer.notes.map((text) => el("li", {}, prose(this.app, text))),
      ),
      this.#section("Adjustment sets", this.#sets(answer.adjustment_sets)),
      this.#section(
        "Routes to an invariant predictor",
        answer.routes.map((route) => this.#route(route)),
      ),
      this.#section(
        "The paper's condition, as printed",
        answer.reasons.filter((reason) => reason.condition === "paper").map((reason) => this.#reason(reason)),
      ),
    ];
  }

  /** The statement as a demand and what it leads to; or that it does not lead there. */
  #inWords({ holds, given, right, protected: who, injective }) {
    const among = given.length ? [" among rows with the same ", names(given)] : [];
    const changed = ["had ", names(who), " been different"];
    const invariant = term(this.app, "counterfactually invariant");
    if (!holds)
      return [
        el("p.words", {}, "The prediction may still follow ", names(who), ", even if it tells nothing about ", names(right), among, "."),
        el("p", {}, "That does not make it ", held(invariant, ".")),
      ];
    const proviso = injective.length ? ["if ", names(injective), " is injective in its total noise, "] : [];
    return [
      el("p.words", {}, given.length ? ["Among rows with the same ", names(given), ", the"] : "The", " prediction must tell nothing about ", names(right), "."),
      el("p", {}, "Then, ", proviso, "it would have been the same, ", changed, ": it is ", held(invariant, ".")),
    ];
  }

  #section(title, items, open = false) {
    return items.length ? this.sections.make(title, open, el("ul.plain", {}, items)) : null;
  }

  #assumption({ sentence, check, tab }) {
    const go = () => this.app.tabs.open(tab);
    const button = tab ? el("button.chip", { "data-key": `to|${tab}`, onclick: go }, `Go to ${this.app.tabs.title(tab)}`) : null;
    return el("li", {}, el("p", {}, prose(this.app, sentence)), el("p.hint", {}, check, " ", button));
  }

  #reason(reason) {
    const shown = reason.paths.length
      ? reason.paths.map((path) =>
          el(
            "button.path",
            {
              "data-key": `path|${path.text}`,
              "aria-pressed": "false",
              title: "Light this path up in the drawing",
              onclick: (event) => this.#light(event.currentTarget, path),
            },
            path.text,
          ),
        )
      : [];
    return el(
      `li.reason.${reason.holds ? "for" : "against"}`,
      {},
      el("span.sign", { "aria-label": reason.holds ? "for" : "against" }, reason.holds ? "✓" : "✗"),
      el(
        "div",
        {},
        el("span.kind", {}, CONDITIONS[reason.condition] ?? reason.condition),
        el("p", {}, prose(this.app, reason.sentence)),
        shown,
      ),
    );
  }

  #light(button, path) {
    const on = this.lit !== path;
    for (const other of this.element.querySelectorAll("button.path")) other.setAttribute("aria-pressed", "false");
    this.lit = on ? path : null;
    if (on) this.app.canvas.light([path]);
    else this.app.canvas.unlight();
    button.setAttribute("aria-pressed", String(on));
  }

  #sets(found) {
    const names = (set) => (set.length ? `{ ${set.join(", ")} }` : "the empty set");
    const use = (set) => {
      const { editor } = this.app;
      editor.apply({ ...editor.doc, adjusted: set }, `adjust for ${names(set)}`);
    };
    const choose = (set, label, which = names(set)) =>
      el("button", { "data-key": `set|${which}`, onclick: () => use(set) }, label);
    const rows = found.minimal.map((set) =>
      el("li.row", {}, el("code", {}, names(set)), choose(set, "Use")),
    );
    if (found.optimal)
      rows.push(
        el(
          "li.row",
          {},
          el("span", {}, "Smallest variance: ", el("code", {}, names(found.optimal))),
          choose(found.optimal, "Use", "optimal"),
        ),
      );
    if (this.app.editor.doc.adjusted.length)
      rows.push(
        el("li.row", {}, "The drawing names a set.", choose([], "Choose for me", "any")),
      );
    return [el("li", {}, found.about, found.more ? " There are more." : ""), ...rows];
  }

  #route(route) {
    return el(
      `li.reason.${route.allowed ? "for" : "against"}`,
      {},
      el("span.sign", { "aria-label": route.allowed ? "allowed" : "not allowed" }, route.allowed ? "✓" : "✗"),
      el(
        "div",
        {},
        el("strong", {}, route.title),
        el("p", {}, prose(this.app, `${route.why[0].toUpperCase()}${route.why.slice(1)}. Rests on ${route.rests_on}.`)),
      ),
    );
  }

  showAdvice(advice) {
    if (advice.error || this.answer?.holds) return;
    const repairs = advice.repairs.map((repair) =>
      el(
        "li.row",
        {},
        el("p", {}, prose(this.app, repair.sentence)),
        el("button.primary", { "data-key": `repair|${repair.sentence}`, onclick: () => this.#apply(repair) }, "Apply"),
      ),
    );
    const weaker = advice.weaker.map((entry) =>
      el("li", {}, el("strong", {}, prose(this.app, entry.statement)), el("p", {}, prose(this.app, entry.implies))),
    );
    fill(
      this.advice,
      repairs.length
        ? this.#section("Smallest repairs", repairs, true)
        : el("p.hint", {}, "No repair of up to three changes was found."),
      this.#section("What a penalty can still buy", weaker),
    );
  }

  #apply(repair) {
    const { editor } = this.app;
    const repaired = fromJson(repair.document);
    // Where nodes stand stays as it was drawn.
    editor.apply(
      { ...repaired, positions: editor.doc.positions, unit: editor.doc.unit },
      `repaired: ${repair.sentence}`,
    );
  }
}
