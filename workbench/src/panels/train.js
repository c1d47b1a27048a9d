// Train and walk: say what is asked, watch the training, walk along the stops, keep one.
import { el, fill } from "../dom.js";
import { toJson } from "../document.js";
import { said } from "../figures.js";
import { frontier, pathOf } from "../frontier.js";
import { isOther, sayOther } from "../other.js";
import { Sections } from "../section.js";
import { audited, compared, figuresOf, keeping, verdictOn } from "./stop.js";

const FORM = "What to ask";

// A goal, what it means, and its amount: how that is called and what it is to begin with.
const GOALS = [
  ["limits", "Pass an audit", "Predictions hardly move when what is protected is imagined different.", "Largest change on average", null],
  ["vcf", "Leave little", "Predictions may keep a share of how far they follow what is protected.", "Share that is left", 0.05],
  ["strict", "Leave nothing", "Predictions are the same in every imagined world, whatever that costs.", null, null],
  ["tolerance", "Lose little", "Every method is trained, which takes minutes, and the most invariant one within your limit is taken.", "Accuracy you are willing to give up, as a share", 0.1],
];
const EFFORTS = [
  ["quick", "quick"],
  ["standard", "standard"],
  ["thorough", "thorough: long"],
];
const LEARNERS = [
  ["auto", "the best of all"],
  ["network", "neural network"],
  ["boosted", "boosted trees"],
  ["linear", "linear"],
];

export class TrainPanel {
  constructor(app) {
    this.app = app;
    this.element = el("div");
    this.other = el("div");
    this.form = el("div");
    this.progress = el("div");
    this.chart = el("div");
    this.stopName = el("span");
    // The knob: from the predictor without a constraint to the strict end of a path; nothing is trained.
    this.knob = el("input", {
      type: "range",
      min: 0,
      step: 1,
      "data-key": "walk",
      oninput: ({ target }) => this.#go(this.path[Number(target.value)].key),
    });
    this.about = el("div");
    // The knob is never drawn anew: it would slip from the hand that holds it.
    const knob = el("label.field.walk", {}, this.stopName, this.knob);
    this.walk = el("div", {}, this.chart, knob, this.about);
    this.element.append(this.other, this.form, this.progress, this.walk);
    this.choice = { goal: "limits", amount: null, learner: "auto", preset: "quick", anyway: false };
    this.stop = null;
    this.gone = new Set();
    this.sections = new Sections();
  }

  opened() {
    this.show();
  }

  /** The run that is looked at: the one at work, else the latest for what is drawn, else the latest. */
  get run() {
    const { runs } = this.app;
    const fits = (run) => !isOther(this.app, run);
    return runs.find((run) => run.status === "running") ?? runs.findLast(fits) ?? runs.at(-1) ?? null;
  }

  /** The stop that is stood at: the one that was walked to, else the one that was taken. */
  stopOf(run) {
    const at = (key) => run.stops.find((stop) => stop.key === key);
    return at(this.stop) ?? at(run.chosen) ?? run.stops.at(-1) ?? null;
  }

  /** Train for what is drawn now, as it was trained before. */
  again() {
    this.app.tabs.open("train");
    const can = this.app.verdict.state === "judged" && this.app.table && this.run?.status !== "running";
    if (can) this.#start();
  }

  told(event) {
    const { app } = this;
    if (event.event === "run-gone") {
      this.gone.add(event.name);
      app.runs = app.runs.filter((run) => run.name !== event.name);
    } else {
      const place = app.runs.findIndex((run) => run.name === event.run.name);
      if (place >= 0) app.runs[place] = event.run;
      else app.runs.push(event.run);
      if (event.run.phase && event.run.status === "running") app.say(event.run.phase);
    }
    this.show();
    app.panels.whatif.show();
  }

  show() {
    if (this.app.tabs?.current !== "train") return;
    const { run } = this;
    fill(this.other, run ? sayOther(this.app, run) : null);
    this.#showForm();
    fill(this.progress, run ? this.#progress(run) : null);
    this.#showWalk(run, run && this.stopOf(run));
  }

  get #working() {
    return this.starting || this.run?.status === "running";
  }

  /** Draw the form where it would look different: a training that goes on does not take an amount from under the hand. */
  #showForm() {
    const { verdict, table } = this.app;
    const { goal } = this.choice;
    const asked = [verdict?.fingerprint, this.app.editor.doc.outcomes];
    const drawn = JSON.stringify([verdict?.state, verdict?.holds, !table, this.#working, !this.run, goal, asked]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    fill(this.form, this.#form());
    if (goal === "limits") this.#sayUsual();
  }

  /** Say in the empty field for an amount what the usual limit is. */
  async #sayUsual() {
    const { app, drawn } = this;
    const field = this.form.querySelector("[data-key=amount]");
    if (!field) return;
    const found = await app.ask({ do: "usual", document: toJson(app.editor.doc) });
    if (drawn !== this.drawn || found.error) return;
    const { amount, probability } = found;
    const of = app.editor.doc.outcomes[0];
    field.placeholder = `${said(amount)} as usual`;
    this.form.querySelector(".usual").textContent = probability
      ? `Of a probability: ${said(amount)} is ${said(100 * amount)} points. Empty: the usual limit.`
      : `In the unit of ${of}. Empty: the usual limit, a tenth of how far ${of} spreads.`;
  }

  #form() {
    const { app, choice } = this;
    const { verdict } = app;
    const working = this.#working;
    const first = (title, words, button) =>
      el("div.card", {}, el("h3", {}, title), el("p", {}, words), el("p.buttons", {}, button));
    if (verdict?.state !== "judged")
      return first(
        "First a question",
        "Draw a graph and say what is predicted and what must not influence the prediction.",
        el("button", { "data-key": "demo", onclick: () => app.openExample("demo") }, "Take the demo"),
      );
    if (!app.table)
      return first(
        "First a table",
        "Training needs rows: one column per observed node.",
        el("button.primary", { "data-key": "to-data", onclick: () => app.tabs.open("data") }, "Choose a table"),
      );
    const [, , , amount] = GOALS.find(([goal]) => goal === choice.goal);
    const trained = choice.goal === "tolerance";
    return this.sections.make(
      FORM,
      !this.run,
      el(
        "fieldset",
        {},
        el("legend", {}, "Goal"),
        GOALS.map((goal) => this.#goal(goal)),
      ),
      trained && !verdict.holds
        ? el(
            "label.check",
            {},
            this.#input("anyway", { type: "checkbox", checked: choice.anyway }, ({ checked }) => checked),
            "Enforce the statement although the graph does not certify it",
          )
        : null,
      el(
        "div.fields",
        {},
        amount
          ? el(
              `label.field${choice.goal === "limits" ? ".wide" : ""}`,
              {},
              amount,
              this.#input("amount", { type: "number", min: 0, step: "any", value: choice.amount ?? "" }, ({ value }) =>
                value === "" ? null : Number(value),
              ),
              choice.goal === "limits" ? el("small.usual", {}, "Empty: the usual limit.") : null,
            )
          : null,
        trained ? null : this.#select("Learner", "learner", LEARNERS),
        this.#select("Effort", "preset", EFFORTS),
      ),
      el(
        "p.buttons",
        {},
        el(
          "button.primary",
          { "data-key": "train", disabled: working, onclick: () => this.#start() },
          working ? "Training …" : "Train",
        ),
      ),
    );
  }

  #input(name, properties, read) {
    const oninput = ({ target }) => {
      this.choice[name] = read(target);
    };
    return el("input", { "data-key": name, oninput, ...properties });
  }

  #select(title, name, entries) {
    const options = entries.map(([value, label]) =>
      el("option", { value, selected: value === this.choice[name] }, label),
    );
    const onchange = ({ target }) => {
      this.choice[name] = target.value;
    };
    return el("label.field", {}, title, el("select", { "data-key": name, onchange }, options));
  }

  #goal([goal, title, words, , amount]) {
    const onchange = () => {
      Object.assign(this.choice, { goal, amount });
      this.show();
    };
    return el(
      "label.check",
      {},
      el("input", { type: "radio", name: "goal", "data-key": `goal|${goal}`, checked: goal === this.choice.goal, onchange }),
      el("span", {}, el("strong", {}, title), el("small", {}, words)),
    );
  }

  async #start() {
    const { app } = this;
    this.starting = true;
    this.sections.forget(FORM);
    this.show();
    const answer = await app.ask({ do: "train", document: toJson(app.editor.doc), ...this.choice });
    this.starting = false;
    if (answer.error) {
      app.notices.show("train", answer.error, "warn");
      this.show();
    } else {
      app.notices.clear("train");
      this.stop = null;
      // What has happened since may have been told before this answer came.
      const { name } = answer.run;
      if (this.gone.has(name) || app.runs.some((run) => run.name === name)) this.show();
      else this.told({ event: "run", run: answer.run });
    }
  }

  #showWalk(run, current) {
    const scoreName = run?.task === "classification" ? "accuracy" : "R²";
    this.walk.hidden = !run;
    this.walk.inert = Boolean(run) && isOther(this.app, run);
    this.knob.parentNode.hidden = !current;
    const notes = run?.notes.map((note) => el("p.hint", {}, note)) ?? [];
    fill(this.chart, notes, current ? this.#chart(run, current, scoreName) : null);
    if (!current) return fill(this.about);
    this.path = pathOf(run, current);
    const place = this.path.indexOf(current);
    this.stopName.textContent = `Stop ${place + 1} of ${this.path.length}: ${current.name}`;
    this.knob.max = this.path.length - 1;
    this.knob.value = place;
    this.knob.setAttribute("aria-valuetext", current.name);
    return fill(
      this.about,
      verdictOn(run, current),
      figuresOf(this.app, run, current, scoreName),
      keeping(this.app, run, current),
      audited(run, current, this.sections),
      compared(run, scoreName, this.sections),
    );
  }

  #progress(run) {
    const { app } = this;
    const end = (what, title) =>
      el(
        "p.buttons",
        {},
        el("button", { "data-key": what, onclick: () => app.askFor({ do: what, run: run.name }, "train") }, title),
      );
    if (run.status === "running")
      return el(
        "div.card",
        { role: "status" },
        el("p", {}, run.phase, " "),
        el("progress", { max: run.total, value: run.done, "aria-label": "Training" }),
        end("cancel", "Cancel"),
      );
    const { training, held_out: held } = run.rows ?? {};
    const rows = training ? `Trained on ${training} rows; ${held} others are kept for audits.` : `Measured on ${held} rows.`;
    const other = isOther(app, run);
    const tone = run.status !== "done" ? ".warn" : other ? "" : ".good";
    return el(
      `div.card${tone}`,
      { role: "status" },
      el("div", { inert: other }, el("p", {}, run.status === "done" ? rows : run.phase), run.reason ? el("p", {}, run.reason) : null),
      end("forget", "Forget this run"),
    );
  }

  #chart(run, current, scoreName) {
    const drawn = frontier(run, current, scoreName, (key) => this.#go(key));
    if (!drawn) return null;
    const paths = new Map(run.stops.filter((stop) => !stop.free && !stop.baseline).map((stop) => [stop.path, stop]));
    const marks = [...paths.values()].map((stop) =>
      el(
        "span",
        {},
        el(`span.swatch.p${stop.path % 6}${stop.mixed ? ".mixed" : ""}`, { "aria-hidden": "true" }),
        ` ${stop.along}${stop.mixed ? ": CF1 mixed with no penalty, which takes no training; what lies below this line is not worth its trouble" : ""}`,
      ),
    );
    if (run.stops.some((stop) => stop.baseline)) marks.push(el("span", {}, "✕ baselines"));
    marks.push(el("span", {}, run.models ? "◎ the folder's model" : "◎ taken for the goal"));
    return el("figure", {}, drawn, el("figcaption", {}, marks));
  }

  #go(key) {
    this.stop = key;
    this.show();
    this.app.panels.whatif.show();
    const stop = this.run && this.stopOf(this.run);
    if (stop) this.app.say(`${stop.name}: score ${said(stop.score)}, VCF ${said(stop.vcf)}`);
  }
}
