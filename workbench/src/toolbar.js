// The header of the page, and the tools beside the drawing.
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { nextTheme } from "./theme.js";

export function header(app) {
  app.status = el("span.status", { role: "status" });
  app.themeButton = el("button.icon", { "data-key": "theme", onclick: () => nextTheme(app) });
  const opens = (name, label, title) =>
    el("button", { onclick: () => app.open(name), title, "data-opens": name }, label);
  return el(
    "header",
    {},
    el("h1", {}, "ciplearn", el("span", {}, " workbench")),
    app.status,
    el(
      "nav",
      { "aria-label": "Drawing" },
      opens("examples", "Examples", "Graphs one click away"),
      opens("paste", "Open", "Paste or open a graph"),
      opens("export", "Export", "Copy or download the graph"),
      opens("share", "Share", "An address that holds the drawing"),
      app.themeButton,
      el(
        "button.icon",
        { onclick: () => app.open("help"), "aria-label": "Keys and help", title: "Keys and help", "data-opens": "help" },
        icon("help"),
      ),
    ),
  );
}

export class Toolbar {
  constructor(app) {
    this.app = app;
    const tool = (title, onclick, name) =>
      el("button.icon", { onclick, title, "aria-label": title, "data-tool": name }, icon(name));
    this.modes = new Map([
      ["select", tool("Select and move (V)", () => this.setMode("select"), "select")],
      ["directed", tool("Draw causes by dragging (D)", () => this.setMode("directed"), "directed")],
      [
        "bidirected",
        tool("Draw unobserved common causes by dragging (U)", () => this.setMode("bidirected"), "bidirected"),
      ],
    ]);
    this.undo = tool("Undo (Ctrl Z)", () => app.editor.undo(), "undo");
    this.redo = tool("Redo (Ctrl Shift Z)", () => app.editor.redo(), "redo");
    this.element = el(
      "div.tools",
      { role: "toolbar", "aria-label": "Tools", "aria-orientation": "vertical" },
      el("div.group", {}, ...this.modes.values()),
      el(
        "div.group",
        {},
        tool("Add a node (N)", () => app.rename.add(), "add"),
      ),
      el("div.group", {}, this.undo, this.redo),
      el(
        "div.group",
        {},
        tool("Lay out the graph (O)", () => app.canvas.layout(), "layout"),
        tool("Show all (0)", () => app.canvas.fit(), "fit"),
        tool("Zoom in (+)", () => app.canvas.zoom(1.25), "in"),
        tool("Zoom out (−)", () => app.canvas.zoom(0.8), "out"),
      ),
    );
    this.setMode("select");
    this.show();
  }

  setMode(mode) {
    this.app.canvas.setMode(mode);
    for (const [name, button] of this.modes) button.setAttribute("aria-pressed", String(name === mode));
  }

  show() {
    const { past, future } = this.app.editor;
    this.undo.disabled = past.length === 0;
    this.redo.disabled = future.length === 0;
    this.undo.title = past.length ? `Undo: ${past.at(-1).said} (Ctrl Z)` : "Undo (Ctrl Z)";
    this.redo.title = future.length ? `Redo: ${future.at(-1).said} (Ctrl Shift Z)` : "Redo (Ctrl Shift Z)";
  }
}
