// What can be done with what is selected: roles, renaming, edges; in reach of one click, below the drawing.
import { el, fill } from "./dom.js";
import { ARROWS, changeEdge, isIn, removeEdge, removeNodes, rolesOf, toggleIn, toggleRole } from "./document.js";

export const ROLE_BUTTONS = [
  ["outcomes", "Outcome", "What is predicted (key Y)"],
  ["exposures", "Protected", "What must not influence the prediction (key A)"],
  ["adjusted", "Adjust for", "Compare only rows that agree in it; the best set is chosen where nothing is (key S)"],
  ["latent", "Latent", "Nobody can measure it (key L)"],
];
export const SET_BUTTONS = [
  ["context", "In context", "Part of the row that stays fixed when we compare (key C)"],
  ["inputs", "Input", "The predictor sees it (key I)"],
];

export class SelectionBar {
  constructor(app) {
    this.app = app;
    this.element = el("div.selection", { role: "toolbar", "aria-label": "What is selected", hidden: true });
  }

  show() {
    const { nodes, edges } = this.app.canvas.selection;
    this.element.hidden = !nodes.length && !edges.length;
    const node = nodes.length === 1 && !edges.length ? nodes[0] : null;
    const choices = node !== null ? this.#node(node) : edges.length === 1 && !nodes.length ? this.#edge(edges[0]) : this.#several();
    fill(this.element, el("div.choices", {}, choices), node !== null ? el("small", {}, this.#meaning(node)) : null);
  }

  #several() {
    const { nodes, edges } = this.app.canvas.selection;
    return [
      el("strong", {}, `${nodes.length + edges.length} selected`),
      el("button", { "data-key": "delete", onclick: () => this.remove() }, "Delete"),
    ];
  }

  #node(name) {
    const { editor } = this.app;
    const { doc } = editor;
    const button = (label, title, key, pressed, onclick, disabled = false) =>
      el(
        "button",
        { title, "data-key": key, "aria-pressed": pressed === null ? null : String(pressed), onclick, disabled },
        label,
      );
    return [
      el("strong", { title: name }, name),
      ...ROLE_BUTTONS.map(([role, label, title]) =>
        button(label, title, role, doc[role].includes(name), () => this.toggle(role)),
      ),
      ...SET_BUTTONS.map(([key, label, title]) =>
        button(
          label,
          title,
          key,
          isIn(doc, key, name),
          () => this.toggle(key),
          doc.latent.includes(name) || doc.outcomes.includes(name),
        ),
      ),
      button("Connect", "Draw an edge from here (E)", "connect", null, () => this.app.connect(name, "directed")),
      button("Rename", "Another name (F2)", "rename", null, () => this.app.rename.start(name)),
      button("Delete", "Delete", "delete", null, () => this.remove()),
    ];
  }

  /** What the roles of a node mean: a finger shows no titles. */
  #meaning(name) {
    const { doc } = this.app.editor;
    const plain = (title) => title.replace(/ \(key .\)$/, "");
    const roles = ROLE_BUTTONS.filter(([role]) => doc[role].includes(name));
    // What is protected is what differs when we compare, although the question names it among the context.
    const isSaid = (key) => isIn(doc, key, name) && !(key === "context" && doc.exposures.includes(name));
    const sets = SET_BUTTONS.filter(([key]) => isSaid(key));
    return [...roles, ...sets].map(([, , title]) => `${plain(title)}.`).join(" ");
  }

  #edge(edge) {
    const { editor } = this.app;
    const become = (kind, from = edge.from, to = edge.to) => {
      editor.apply(changeEdge(editor.doc, edge, kind, from, to), `changed to ${from} ${ARROWS[kind]} ${to}`);
      this.app.canvas.selectEdge({ kind, from, to });
    };
    const kinds = [
      ["directed", "Cause →"],
      ["bidirected", "Hidden cause ↔"],
      ["undirected", "Unknown −"],
    ];
    return [
      el("strong", {}, `${edge.from} ${ARROWS[edge.kind]} ${edge.to}`),
      ...kinds.map(([kind, label]) =>
        el(
          "button",
          { "data-key": kind, "aria-pressed": String(edge.kind === kind), onclick: () => become(kind) },
          label,
        ),
      ),
      el(
        "button",
        {
          "data-key": "reverse",
          disabled: edge.kind !== "directed",
          onclick: () => become("directed", edge.to, edge.from),
        },
        "Reverse",
      ),
      el("button", { "data-key": "delete", onclick: () => this.remove() }, "Delete"),
    ];
  }

  /** Toggle a role or a set for the one node that is selected. */
  toggle(role) {
    const { nodes } = this.app.canvas.selection;
    const { editor } = this.app;
    if (nodes.length !== 1) return;
    const isSet = SET_BUTTONS.some(([key]) => key === role);
    const changed = isSet ? toggleIn(editor.doc, role, nodes[0]) : toggleRole(editor.doc, nodes[0], role);
    const set = isSet ? ` ${isIn(changed, role, nodes[0]) ? "in" : "not in"} ${role}` : "";
    editor.apply(changed, `${nodes[0]}: ${rolesOf(changed, nodes[0]).join(", ") || "no role"}${set}`);
  }

  remove() {
    const { nodes, edges } = this.app.canvas.selection;
    const { editor } = this.app;
    if (!nodes.length && !edges.length) return;
    const without = edges.reduce((doc, edge) => removeEdge(doc, edge), removeNodes(editor.doc, nodes));
    const what = [...nodes, ...edges.map((edge) => `${edge.from} ${ARROWS[edge.kind]} ${edge.to}`)];
    editor.apply(without, `deleted ${what.join(", ")}`);
  }
}
