// Train and walk: choose routes and a tolerance, watch the stops appear, walk along them, keep one.
import { el, fill } from "../dom.js";
import { toJson } from "../document.js";
import { said } from "../figures.js";
import { frontier, stopName } from "../frontier.js";
import { prose } from "../prose.js";
import { isOther, sayOther } from "../other.js";
import { Sections } from "../section.js";
import { compared, figuresOf, keeping } from "./stop.js";

const FORM = "What to train";
const EFFORTS = [
  ["quick", "quick: 6 stops"],
  ["standard", "standard: 8 stops"],
  ["thorough", "thorough: 11 stops, long"],
];

export class TrainPanel {
  constructor(app) {
    this.app = app;
    this.element = el("div");
    this.form = el("div");
    this.walk = el("div");
    this.element.append(this.form, this.walk);
    this.choice = {
      routes: new Set(["independence", "line", "cf1", "cf2"]),
      tolerance: 0.1,
      preset: "quick",
      anyway: false,
    };
    this.stop = null;
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

  /** Train for what is drawn now, as it was trained before. */
  again() {
    this.app.tabs.open("train");
    const can = this.app.verdict.state === "judged" && this.app.table && this.run?.status !== "running";
    if (can) this.#start();
  }

  told(event) {
    const { app } = this;
    if (event.event === "run-gone") app.runs = app.runs.filter((run) => run.name !== event.name);
    else {
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
    fill(this.form, this.run ? sayOther(this.app, this.run) : null, this.#form());
    fill(this.walk, this.run ? this.#walk(this.run) : null);
  }

  #form() {
    const { app, choice } = this;
    const { verdict } = app;
    const working = this.run?.status === "running";
    if (verdict?.state !== "judged")
      return el(
        "div.card",
        {},
        el("h3", {}, "First a question"),
        el("p", {}, "Draw a graph and say what is predicted and what must not influence the prediction."),
        el("p.buttons", {}, el("button", { "data-key": "demo", onclick: () => app.openExample("demo") }, "Take the demo")),
      );
    if (!app.table)
      return el(
        "div.card",
        {},
        el("h3", {}, "First a table"),
        el("p", {}, "Training needs rows: one column per observed node."),
        el(
          "p.buttons",
          {},
          el("button.primary", { "data-key": "to-data", onclick: () => app.tabs.open("data") }, "Choose a table"),
        ),
      );
    const counted = !verdict.holds && choice.routes.has("independence");
    return this.sections.make(
      FORM,
      !this.run,
      el(
        "fieldset",
        {},
        el("legend", {}, "Routes"),
        verdict.routes.map((route) => this.#route(route)),
      ),
      counted
        ? el(
            "label.check",
            {},
            el("input", {
              type: "checkbox",
              "data-key": "anyway",
              checked: choice.anyway,
              onchange: (event) => {
                choice.anyway = event.target.checked;
                this.show();
              },
            }),
            "Enforce the statement although the graph does not certify it",
          )
        : null,
      el(
        "div.fields",
        {},
        el(
          "label.field",
          {},
          "Accuracy you are willing to give up, as a share",
          el("input", {
            type: "number",
            min: 0,
            max: 1,
            step: 0.01,
            value: choice.tolerance,
            "data-key": "tolerance",
            onchange: (event) => {
              choice.tolerance = Number(event.target.value);
            },
          }),
        ),
        el(
          "label.field",
          {},
          "Effort",
          el(
            "select",
            {
              "data-key": "preset",
              onchange: (event) => {
                choice.preset = event.target.value;
              },
            },
            EFFORTS.map(([value, label]) => el("option", { value, selected: value === choice.preset }, label)),
          ),
        ),
      ),
      el(
        "p.buttons",
        {},
        el(
          "button.primary",
          { "data-key": "train", disabled: working || this.starting, onclick: () => this.#start() },
          working || this.starting ? "Training …" : "Train",
        ),
      ),
    );
  }

  #route(route) {
    const { choice } = this;
    const usable = route.allowed || route.name === "independence";
    const toggle = (event) => {
      if (event.target.checked) choice.routes.add(route.name);
      else choice.routes.delete(route.name);
      this.show();
    };
    return el(
      "label.check",
      {},
      el("input", {
        type: "checkbox",
        "data-key": `route|${route.name}`,
        checked: usable && choice.routes.has(route.name),
        disabled: !usable,
        onchange: toggle,
      }),
      el("span", {}, el("strong", {}, route.title), el("small", {}, prose(this.app, `Rests on ${route.rests_on}; ${route.why}.`))),
    );
  }

  async #start() {
    const { app, choice } = this;
    const allowed = app.verdict.routes
      .filter((route) => (route.allowed || route.name === "independence") && choice.routes.has(route.name))
      .map((route) => route.name);
    this.starting = true;
    this.sections.forget(FORM);
    this.show();
    const answer = await app.ask({
      do: "train",
      document: toJson(app.editor.doc),
      routes: allowed,
      tolerance: choice.tolerance,
      preset: choice.preset,
      anyway: choice.anyway,
    });
    this.starting = false;
    if (answer.error) {
      app.notices.show("train", answer.error, "warn");
      this.show();
    } else {
      app.notices.clear("train");
      this.stop = null;
      this.told({ event: "run", run: answer.run });
    }
  }

  #walk(run) {
    const scoreName = run.task === "classification" ? "accuracy" : "R²";
    const current =
      run.stops.find((stop) => stop.key === this.stop) ??
      run.stops.find((stop) => stop.key === run.chosen) ??
      run.stops.at(-1);
    this.current = current ?? null;
    return [
      this.#progress(run),
      el(
        "div",
        { inert: isOther(this.app, run) },
        run.notes.map((note) => el("p.hint", {}, note)),
        current
          ? [
              this.#chart(run, current, scoreName),
              this.#slider(run, current),
              figuresOf(run, current, scoreName, this.sections),
              keeping(this.app, run, current),
              compared(run, scoreName, this.sections),
            ]
          : null,
      ),
    ];
  }

  #progress(run) {
    const { app } = this;
    const end = (what) =>
      app
        .ask({ do: what, run: run.name })
        .then((answer) => answer.error && app.notices.show("train", answer.error, "warn"));
    if (run.status === "running") {
      return el(
        "div.card",
        { role: "status" },
        el("p", {}, run.phase, " "),
        el("progress", { max: run.total, value: run.done, "aria-label": "Training" }),
        el("p.buttons", {}, el("button", { "data-key": "cancel", onclick: () => end("cancel") }, "Cancel")),
      );
    }
    const tone = run.status === "done" ? "good" : "warn";
    const words =
      {
        done: `Trained on ${run.rows?.training ?? "?"} rows, judged on ${run.rows?.judging ?? "?"} others.`,
        failed: run.phase,
        interrupted: "The training was interrupted; the stops that were finished are here.",
      }[run.status] ?? run.phase;
    return el(
      `div.card.${tone}`,
      { role: "status" },
      el("p", {}, words),
      el("p.buttons", {}, el("button", { "data-key": "forget", onclick: () => end("forget") }, "Forget this run")),
    );
  }

  #chart(run, current, scoreName) {
    const drawn = frontier(run, current.key, scoreName, (key) => this.#go(key));
    const routes = new Set(run.stops.map((stop) => stop.route));
    const marks = [
      routes.has("independence") ? "● independence route" : null,
      routes.has("counterfactual") ? "◆ counterfactual route" : null,
      run.baselines.length ? "✕ baselines" : null,
      run.line.length
        ? "┄ CF1 mixed with no penalty, which takes no training: what lies below this line is not worth its trouble"
        : null,
      run.models ? "◎ the folder's model" : "◎ largest gamma within the tolerance",
    ];
    const said = marks.filter(Boolean).map((mark) => el("span", {}, mark));
    return drawn ? el("figure", {}, drawn, el("figcaption", {}, said)) : null;
  }

  #go(key) {
    this.stop = key;
    this.show();
    this.app.panels.whatif.show();
    this.app.say(
      this.current
        ? `Stop at ${stopName(this.current)}: score ${said(this.current.score.value)}, VCF ${said(this.current.vcf?.value)}`
        : "",
    );
  }

  #slider(run, current) {
    const place = run.stops.indexOf(current);
    const name = stopName(current);
    return el(
      "label.field.walk",
      {},
      el("span", {}, `Walk: stop ${place + 1} of ${run.stops.length}, ${name}`),
      el("input", {
        type: "range",
        min: 0,
        max: run.stops.length - 1,
        step: 1,
        value: place,
        "data-key": "walk",
        "aria-valuetext": name,
        oninput: (event) => this.#go(run.stops[Number(event.target.value)].key),
      }),
    );
  }
}
