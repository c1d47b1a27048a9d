// Everything by keyboard: what hands do on the drawing, keys do too, wherever the focus is but in a field or a window.
import { moveNodes } from "./document.js";

export const KEYS = [
  ["N", "add a node"],
  ["Tab, Shift Tab", "into and out of the drawing"],
  [". and ,", "select the next or previous node"],
  ["Arrows", "move what is selected; with nothing selected, the view"],
  ["E, B", "draw an edge → or ↔ from the selected node"],
  ["Y, A, S, L", "outcome, protected, adjust for, latent"],
  ["C, I", "in the context, among the inputs"],
  ["F2 or Enter", "rename"],
  ["Delete", "delete what is selected"],
  ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
  ["V, D, U", "select; draw → or ↔ by dragging"],
  ["O, 0, +, −", "lay out, show all, zoom"],
  ["Escape", "select nothing"],
  ["?", "this list"],
];

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ROLES = { y: "outcomes", a: "exposures", s: "adjusted", l: "latent", c: "context", i: "inputs" };

export function listenToKeys(app, holder) {
  const { editor, canvas } = app;

  const next = (step) => {
    const { nodes } = editor.doc;
    if (!nodes.length) return;
    const [now] = canvas.selection.nodes;
    const place =
      now === undefined ? (step > 0 ? 0 : nodes.length - 1) : (nodes.indexOf(now) + step + nodes.length) % nodes.length;
    canvas.select(nodes[place]);
    app.say(`${nodes[place]} selected`);
  };

  const arrow = ([x, y], far) => {
    const { nodes } = canvas.selection;
    const { doc } = editor;
    if (!nodes.length) return canvas.pan(-40 * x, -40 * y);
    const step = (far ? 40 : 10) / doc.unit;
    const places = new Map(
      nodes.map((name) => [name, [doc.positions.get(name)[0] + x * step, doc.positions.get(name)[1] + y * step]]),
    );
    return editor.apply(moveNodes(doc, places), `moved ${nodes.join(", ")}`, "move");
  };

  const single = {
    n: () => app.rename.add(),
    ".": () => next(1),
    ",": () => next(-1),
    e: (name) => name && app.connect(name, "directed"),
    b: (name) => name && app.connect(name, "bidirected"),
    f2: (name) => name && app.rename.start(name),
    enter: (name) => name && app.rename.start(name),
    delete: () => app.selection.remove(),
    backspace: () => app.selection.remove(),
    v: () => app.toolbar.setMode("select"),
    d: () => app.toolbar.setMode("directed"),
    u: () => app.toolbar.setMode("bidirected"),
    o: () => canvas.layout(),
    0: () => canvas.fit(),
    "+": () => canvas.zoom(1.25),
    "=": () => canvas.zoom(1.25),
    "-": () => canvas.zoom(0.8),
    "?": () => app.open("help"),
    escape: () => {
      canvas.cy.elements().unselect();
      canvas.unlight();
      app.toolbar.setMode("select");
    },
  };

  const undo = (event, key) => {
    if (key !== "z" && key !== "y") return false;
    if (key === "y" || event.shiftKey) editor.redo();
    else editor.undo();
    return true;
  };

  // Arrows and Enter belong to the control that has the focus; only the drawing has no other use for them.
  const ofDrawing = (event) => [holder, document.body].includes(event.target);

  const act = (event, key) => {
    if (event.ctrlKey || event.metaKey) return undo(event, key);
    if (event.altKey) return false;
    if (STEPS[event.key] || key === "enter") {
      if (!ofDrawing(event)) return false;
      if (STEPS[event.key]) arrow(STEPS[event.key], event.shiftKey);
    }
    if (ROLES[key]) app.selection.toggle(ROLES[key]);
    single[key]?.(canvas.selection.nodes[0]);
    return Boolean(STEPS[event.key] || ROLES[key] || single[key]);
  };

  const pressed = (event) => {
    if (event.target.closest?.("input, textarea, select, dialog[open]")) return;
    if (act(event, event.key.toLowerCase())) event.preventDefault();
  };

  // A notebook has keys of its own: there, only those that are pressed in the workbench are ours.
  const heard = app.page ? document : app.root;
  heard.addEventListener("keydown", pressed);
  return () => heard.removeEventListener("keydown", pressed);
}
