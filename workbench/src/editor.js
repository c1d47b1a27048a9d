// The drawing over time: what it is now, what it was, and who wants to know.
import { EMPTY, fromJson, toJson } from "./document.js";

const LONGEST_PAST = 200;
// Steps that outlive a reload.
const LONGEST_MEMORY = 40;

// A step that replaced the drawing as a whole does so on the way back, too.
const backOrForth = ({ origin }) => (origin === "load" ? "load" : "undo");

export class Editor {
  constructor() {
    this.doc = EMPTY;
    this.past = [];
    this.future = [];
    this.listeners = [];
  }

  /** Call back after every change with what changed: { said, origin }. */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** Take a changed drawing; `said` names the change for the undo button and for screen readers. */
  apply(doc, said, origin = "edit") {
    if (doc === this.doc) return;
    this.past.push({ doc: this.doc, said, origin });
    if (this.past.length > LONGEST_PAST) this.past.shift();
    this.future = [];
    this.#become(doc, said, origin);
  }

  /** Begin with a drawing: nothing to go back to. */
  begin(doc) {
    this.past = [];
    this.future = [];
    this.#become(doc, "", "begin");
  }

  /** What `recall` reads: the drawing, and the steps before and after it. */
  recallable() {
    const steps = (list) => list.slice(-LONGEST_MEMORY).map((step) => ({ ...step, doc: toJson(step.doc) }));
    return JSON.stringify({ now: toJson(this.doc), past: steps(this.past), future: steps(this.future) });
  }

  /** Take up the steps around the drawing; those around another are not its own. Returns whether they were. */
  recall(text) {
    const known = JSON.parse(text);
    if (JSON.stringify(known?.now) !== JSON.stringify(toJson(this.doc))) return false;
    const steps = (list) => list.map((step) => ({ ...step, doc: fromJson(step.doc) }));
    [this.past, this.future] = [steps(known.past), steps(known.future)];
    return true;
  }

  /** Fill in where nodes stand, without a step in the past: a drawing without places is the same drawing. */
  settle(doc) {
    this.doc = doc;
  }

  undo() {
    const last = this.past.pop();
    if (!last) return;
    this.future.push({ ...last, doc: this.doc });
    this.#become(last.doc, `Undone: ${last.said}`, backOrForth(last));
  }

  redo() {
    const next = this.future.pop();
    if (!next) return;
    this.past.push({ ...next, doc: this.doc });
    this.#become(next.doc, `Done again: ${next.said}`, backOrForth(next));
  }

  #become(doc, said, origin) {
    this.doc = doc;
    for (const listener of this.listeners) listener({ said, origin });
  }
}
