// Parts of a panel under titles, each as open or closed as its reader has left it however often the panel is drawn anew.
import { el } from "./dom.js";

export class Sections {
  constructor() {
    this.left = new Map();
  }

  /** Make a part; `open` is how it begins. */
  make(title, open, ...children) {
    const made = el(
      "details.section",
      { open: this.left.get(title) ?? open },
      // The click, not the toggle: a part that is drawn open toggles too, some time later.
      el("summary", { "data-key": `section|${title}`, onclick: () => this.left.set(title, !made.open) }, title),
      children,
    );
    return made;
  }

  /** Let a part begin anew. */
  forget(title) {
    this.left.delete(title);
  }
}
