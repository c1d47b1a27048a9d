// The drawing as lists with ordinary controls: for keyboards, screen readers, and graphs too large to look at.
import { el, fill } from "../dom.js";
import {
  addEdge,
  addNode,
  ARROWS,
  changeEdge,
  edgesOf,
  isIn,
  nameProblem,
  removeEdge,
  removeNodes,
  renameNode,
  toggleIn,
  toggleRole,
} from "../document.js";
import { ROLE_BUTTONS, SET_BUTTONS } from "../selection.js";

export class OutlinePanel {
  constructor(app) {
    this.app = app;
    this.element = el("div");
    this.stale = true;
  }

  opened() {
    if (this.stale) this.show();
  }

  show() {
    // Rows for every node are worth making only while somebody looks.
    this.stale = this.app.tabs?.current !== "outline";
    if (this.stale) return;
    const { doc } = this.app.editor;
    fill(
      this.element,
      el("h3", {}, `Nodes (${doc.nodes.length})`),
      this.#adder(),
      doc.nodes.map((name) => this.#node(name)),
      el("h3", {}, `Edges (${edgesOf(doc).length})`),
      this.#connector(),
      edgesOf(doc).map((edge) => this.#edge(edge)),
    );
  }

  #adder() {
    const { editor, canvas } = this.app;
    const input = el("input", { "aria-label": "Name of a new node", placeholder: "new node", "data-key": "new-node" });
    const problem = el("span.problem", { role: "alert" });
    const add = (event) => {
      event.preventDefault();
      const name = input.value.trim();
      problem.textContent = nameProblem(editor.doc, name) ?? "";
      if (!problem.textContent) editor.apply(addNode(editor.doc, name, canvas.freeSpot()), `added ${name}`);
    };
    return el("form.inline", { onsubmit: add }, input, el("button", { type: "submit", "data-key": "add" }, "Add"), problem);
  }

  #node(name) {
    const { editor } = this.app;
    const { doc } = editor;
    const rename = (event) => {
      const typed = event.target.value.trim();
      const wrong = typed === name ? "same" : nameProblem(doc, typed, name);
      if (wrong) {
        event.target.value = name;
        if (wrong !== "same") this.app.say(wrong);
      } else editor.apply(renameNode(doc, name, typed), `renamed ${name} to ${typed}`);
    };
    const toggle = (label, title, pressed, change, disabled) =>
      el(
        "button.chip",
        {
          title,
          disabled,
          "data-key": `${label}|${name}`,
          "aria-pressed": String(pressed),
          onclick: () => editor.apply(change(), `${name}: ${label.toLowerCase()} ${pressed ? "off" : "on"}`),
        },
        label,
      );
    const unusable = doc.latent.includes(name) || doc.outcomes.includes(name);
    return el(
      "div.entry",
      { role: "group", "aria-label": `Node ${name}` },
      el("input", { value: name, "aria-label": `Name of ${name}`, "data-key": `name|${name}`, onchange: rename }),
      el(
        "div.chips",
        {},
        ROLE_BUTTONS.map(([role, label, title]) =>
          toggle(label, title, doc[role].includes(name), () => toggleRole(editor.doc, name, role)),
        ),
        SET_BUTTONS.map(([key, label, title]) =>
          toggle(label, title, isIn(doc, key, name), () => toggleIn(editor.doc, key, name), unusable),
        ),
        el(
          "button.chip",
          {
            "aria-label": `Delete ${name}`,
            "data-key": `Delete|${name}`,
            onclick: () => editor.apply(removeNodes(editor.doc, [name]), `deleted ${name}`),
          },
          "Delete",
        ),
      ),
    );
  }

  #connector() {
    const { editor, canvas } = this.app;
    const names = (label) =>
      el(
        "select",
        { "aria-label": label, "data-key": label.toLowerCase() },
        editor.doc.nodes.map((name) => el("option", { value: name }, name)),
      );
    const [from, to] = [names("From"), names("To")];
    to.selectedIndex = Math.min(1, editor.doc.nodes.length - 1);
    const kind = el(
      "select",
      { "aria-label": "Kind of edge", "data-key": "edge-kind" },
      Object.entries(ARROWS).map(([key, arrow]) => el("option", { value: key }, arrow)),
    );
    const add = (event) => {
      event.preventDefault();
      if (addEdge(editor.doc, kind.value, from.value, to.value) !== editor.doc)
        canvas.connect(kind.value, from.value, to.value);
      else this.app.say("This edge is there already, or leads to its own start.");
    };
    return el(
      "form.inline",
      { onsubmit: add, hidden: editor.doc.nodes.length < 2 },
      from,
      kind,
      to,
      el("button", { type: "submit", "data-key": "connect" }, "Connect"),
    );
  }

  #edge(edge) {
    const { editor } = this.app;
    const text = `${edge.from} ${ARROWS[edge.kind]} ${edge.to}`;
    const kinds = el(
      "select",
      {
        "aria-label": `Kind of ${text}`,
        "data-key": `kind|${text}`,
        onchange: () => editor.apply(changeEdge(editor.doc, edge, kinds.value), `changed ${text}`),
      },
      Object.entries(ARROWS).map(([key, arrow]) => el("option", { value: key, selected: key === edge.kind }, arrow)),
    );
    return el(
      "div.entry.edge",
      { role: "group", "aria-label": `Edge ${text}` },
      el("span", {}, edge.from),
      kinds,
      el("span", {}, edge.to),
      el(
        "button.chip",
        {
          disabled: edge.kind !== "directed",
          "aria-label": `Reverse ${text}`,
          "data-key": `reverse|${text}`,
          onclick: () => editor.apply(changeEdge(editor.doc, edge, "directed", edge.to, edge.from), `reversed ${text}`),
        },
        "Reverse",
      ),
      el(
        "button.chip",
        {
          "aria-label": `Delete ${text}`,
          "data-key": `delete|${text}`,
          onclick: () => editor.apply(removeEdge(editor.doc, edge), `deleted ${text}`),
        },
        "Delete",
      ),
    );
  }
}
