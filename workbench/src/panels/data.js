// The table: dropped here, matched with the drawing, and asked whether it refutes it.
import { debounced, el, fill, tableOf } from "../dom.js";
import { addNode, edgesOf, toggleRole, toJson } from "../document.js";

export class DataPanel {
  constructor(app) {
    this.app = app;
    this.element = el("div");
    this.forget();
    this.describeSoon = debounced(() => this.#describe(), 200);
  }

  opened() {
    this.show();
  }

  /** Forget what the table has said of the drawing: there is another table. */
  forget() {
    this.tested = null;
  }

  /** What the table has said of the drawing as it is now; null where that was not asked. */
  get tests() {
    return this.tested?.drawing === drawingOf(this.app.editor.doc) ? this.tested.answer : null;
  }

  /** Mark in the drawing what was refuted. */
  mark() {
    const refuted = (this.tests?.tests ?? []).filter((test) => test.refuted);
    this.app.canvas.markRefuted(refuted.map((test) => [test.left[0], test.right[0]]));
  }

  show() {
    if (this.app.tabs?.current !== "data") return;
    if (!this.app.table) fill(this.element, this.#drop(false));
    else this.describeSoon();
  }

  #drop(small) {
    const { app } = this;
    const file = el("input", {
      type: "file",
      accept: ".csv,.tsv,.txt,.parquet,.gz",
      "aria-label": "Table file",
      "data-key": "table-file",
      onchange: () => file.files[0] && this.send(file.files[0]),
    });
    const zone = el(
      `div.drop${small ? ".small" : ""}`,
      {
        ondragover: () => zone.classList.add("over"),
        ondragleave: () => zone.classList.remove("over"),
        ondrop: () => zone.classList.remove("over"),
      },
      small ? null : el("h3", {}, "Drop a table here"),
      small ? null : el("p", {}, "CSV, TSV or Parquet, one column per node. It stays on this machine."),
      el("label.file", {}, small ? "Another table: " : "Or choose a file: ", file),
      small
        ? null
        : el(
            "p.buttons",
            {},
            el(
              "button",
              { "data-key": "demo", onclick: () => app.openExample("demo") },
              "Take the demo's graph and table",
            ),
          ),
    );
    return zone;
  }

  /** Let a file be the table. */
  async send(file) {
    const { app } = this;
    app.notices.show("upload", `Reading ${file.name} …`);
    const answer = await app.transport.sendTable(file);
    app.notices.clear("upload");
    if (answer.error) app.notices.show("table", answer.error, "warn");
    else {
      app.notices.clear("table");
      app.tookTable(answer.table);
      app.tabs.open("data");
      app.notices.show("table", `${file.name} is loaded.`, "info", [], 5000);
    }
  }

  /** Let every column that is not drawn yet be a node: in rows on an empty drawing, else below the others. */
  async drawColumns() {
    const { editor, ask, notices } = this.app;
    const found = await ask({ do: "describe", document: toJson(editor.doc) });
    if (found.error) return notices.show("table", found.error, "warn");
    const missing = found.columns.map((column) => column.name).filter((name) => !editor.doc.nodes.includes(name));
    const bare = !editor.doc.nodes.length;
    const spot = (place) => (bare ? [(place % 4) * 170, Math.floor(place / 4) * 90] : undefined);
    const drawn = missing.reduce((doc, name, place) => addNode(doc, name, spot(place)), editor.doc);
    return editor.apply(drawn, `drew the columns of ${found.name}`, "load");
  }

  async #describe() {
    const { app } = this;
    const found = await app.ask({ do: "describe", document: toJson(app.editor.doc) });
    if (found.error)
      fill(this.element, el("div.card.bad", { role: "alert" }, el("p", {}, found.error)), this.#drop(true));
    else {
      this.found = found;
      fill(
        this.element,
        this.#summary(found),
        this.#columns(found),
        this.#missing(found),
        this.#check(),
        this.#drop(true),
      );
    }
  }

  #summary(found) {
    const { nodes } = this.app.editor.doc;
    const matched = found.columns.filter((column) => nodes.includes(column.name)).length;
    const left = found.columns_left_out
      ? ` ${found.columns_left_out} columns are not listed; a node that is named like one of them has it.`
      : "";
    const all = el("button.primary", { "data-key": "draw-columns", onclick: () => this.drawColumns() }, "Draw all columns");
    return el(
      "div.card",
      {},
      el("h3", {}, found.name),
      el(
        "p",
        {},
        `${found.rows} rows, ${found.complete === found.rows ? "all" : found.complete} complete in the drawing's columns. ${matched} of ${found.columns.length + found.columns_left_out} columns are nodes.${left}`,
      ),
      matched < found.columns.length ? el("p.buttons", {}, all) : null,
    );
  }

  #columns(found) {
    const { app } = this;
    const setKind = (name, kind) => {
      const { doc } = app.editor;
      app.editor.apply(
        { ...doc, kinds: new Map([...doc.kinds, [name, kind]]) },
        `${name} holds ${kind === "number" ? "numbers" : "categories"}`,
      );
    };
    const kind = (column) =>
      el(
        "select",
        {
          "aria-label": `Kind of ${column.name}`,
          "data-key": `kind|${column.name}`,
          onchange: (event) => setKind(column.name, event.target.value),
        },
        el(
          "option",
          { value: "number", selected: column.kind === "number", disabled: !column.can_be_number },
          "number",
        ),
        el("option", { value: "category", selected: column.kind === "category" }, "category"),
      );
    const small = (shown, words) => (shown ? el("small", {}, words) : null);
    const rows = found.columns.map((column) => [
      [breakable(column.name), small(column.perhaps_codes && column.kind === "number", "few values: codes?")],
      kind(column),
      [column.values, small(column.missing, `${column.missing} missing`)],
      this.#place(column.name),
    ]);
    return tableOf("columns", ["column", "kind", "values", "drawn"], rows, el("span.unseen", {}, "Columns of the table"));
  }

  /** Where a column is in the drawing, or how it gets there. */
  #place(name) {
    const { editor, canvas } = this.app;
    if (!editor.doc.nodes.includes(name)) {
      const add = () => editor.apply(addNode(editor.doc, name, canvas.freeSpot()), `added ${name}`);
      return el(
        "button.chip",
        { "aria-label": `Add ${name} to the drawing`, "data-key": `add|${name}`, onclick: add },
        "add",
      );
    }
    if (!editor.doc.latent.includes(name)) return el("span.ok", {}, "node");
    const observe = () => editor.apply(toggleRole(editor.doc, name, "latent"), `${name} is observed`);
    return el(
      "button.chip",
      { title: "It is latent in the drawing, and here are its values", "data-key": `observe|${name}`, onclick: observe },
      "observe",
    );
  }

  #missing(found) {
    const { editor } = this.app;
    if (!found.without_column.length) return null;
    return el(
      "div.card.warn",
      {},
      el("p", {}, "These nodes are observed in the drawing and have no column:"),
      el(
        "ul.plain",
        {},
        found.without_column.map((name) =>
          el(
            "li.row",
            {},
            el("code", {}, name),
            el(
              "button",
              {
                "data-key": `latent|${name}`,
                onclick: () => editor.apply(toggleRole(editor.doc, name, "latent"), `${name} is latent`),
              },
              "Make latent",
            ),
          ),
        ),
      ),
    );
  }

  #check() {
    const { tests } = this;
    const button = el(
      "button",
      { "data-key": "falsify", disabled: this.busy, onclick: () => this.#falsify() },
      this.busy ? "Testing …" : "Does the table refute the drawing?",
    );
    if (!tests)
      return el(
        "div.card",
        {},
        el("h3", {}, "Check against data"),
        el(
          "p",
          {},
          "Every missing edge implies an independence that the table can refute. It can never prove the drawing.",
        ),
        el("p.buttons", {}, button),
      );
    if (tests.error) return el("div.card.warn", {}, el("p", {}, tests.error), el("p.buttons", {}, button));
    const tone = tests.refuted ? "bad" : tests.refuted === false ? "good" : "warn";
    return el(
      `div.card.${tone}`,
      {},
      el("p", {}, tests.sentence),
      this.#tests(tests.tests),
      el("p.buttons", {}, button),
    );
  }

  #tests(tests) {
    if (!tests.length) return null;
    const shown = [...tests].sort((a, b) => (a.p ?? 2) - (b.p ?? 2));
    const rows = shown.map((test) => [
      [`${test.refuted ? "✗" : "·"} ${test.statement}`, test.obstacle ? el("small", {}, test.obstacle) : null],
      small(test.p),
      test.detectable === null ? "–" : `correlation ${test.detectable.toFixed(2)}`,
    ]);
    const titles = ["statement", "p", "weakest link that this test would notice"];
    return tableOf("tests", titles, rows, null, (place) => (shown[place].refuted ? "refuted" : ""));
  }

  async #falsify() {
    const { app } = this;
    const { doc } = app.editor;
    this.busy = true;
    this.describeSoon();
    this.tested = { drawing: drawingOf(doc), answer: await app.ask({ do: "falsify", document: toJson(doc) }) };
    this.busy = false;
    this.mark();
    this.describeSoon();
  }
}

/** A name that may go on in the next line after an underscore or the like. */
const breakable = (name) => name.split(/(?<=[_.-])(?=.)/u).flatMap((part, place) => (place ? [el("wbr"), part] : part));

/** What a test of the drawing depends on: not its roles, nor where nodes stand. */
const drawingOf = (doc) => JSON.stringify([doc.nodes, edgesOf(doc), doc.latent, [...doc.kinds]]);

const small = (p) => (p === null ? "–" : p < 0.001 ? "<0.001" : p.toFixed(3));
