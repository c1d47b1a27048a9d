// A name typed in place: for a new node and for an old one.
import { el } from "./dom.js";
import { addNode, freshName, nameProblem, renameNode } from "./document.js";

export class Rename {
  constructor(app, stage) {
    this.app = app;
    this.stage = stage;
  }

  /** Add a node at a place, or in the middle, and ask for its name. */
  add(position = this.app.canvas.freeSpot()) {
    const { editor } = this.app;
    const name = freshName(editor.doc);
    editor.apply(addNode(editor.doc, name, position), `added ${name}`);
    this.app.canvas.select(name);
    this.start(name);
  }

  /** Put an input over the node. */
  start(name) {
    const { editor, canvas } = this.app;
    const box = canvas.boxOf(name);
    const [width, height] = [Math.max(130, box.w + 20), Math.max(34, box.h)];
    const problem = el("span.problem", { role: "alert" });
    const input = el("input", {
      value: name,
      "aria-label": `Name of ${name}`,
      spellcheck: "false",
      autocomplete: "off",
      "data-key": "name",
      style: { height: `${height}px` },
    });
    const frame = el(
      "div.rename",
      {
        style: {
          left: `${(box.x1 + box.x2 - width) / 2}px`,
          top: `${(box.y1 + box.y2 - height) / 2}px`,
          width: `${width}px`,
        },
      },
      input,
      problem,
    );
    let done = false;
    const close = (keep) => {
      if (done) return;
      const typed = input.value.trim();
      if (keep && typed !== name) {
        const wrong = nameProblem(editor.doc, typed, name);
        if (wrong) {
          problem.textContent = wrong;
          return;
        }
      }
      done = true;
      frame.remove();
      if (keep && typed !== name && editor.doc.nodes.includes(name)) {
        editor.apply(renameNode(editor.doc, name, typed), `renamed ${name} to ${typed}`);
        canvas.select(typed);
      }
      canvas.holder.focus();
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") close(true);
      if (event.key === "Escape") close(false);
    });
    input.addEventListener("blur", () => {
      close(true);
      if (!done) close(false);
    });
    this.stage.append(frame);
    input.focus();
    input.select();
  }
}
