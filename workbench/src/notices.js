// What happened, above the page: each notice has a name, so that a later one replaces it.
import { el } from "./dom.js";

export class Notices {
  constructor() {
    this.element = el("div.notices", { role: "status", "aria-live": "polite" });
    this.known = new Map();
  }

  /** Show a sentence; actions are [label, call] pairs. */
  show(name, sentence, tone = "info", actions = [], milliseconds = 0) {
    this.clear(name);
    const buttons = actions.map(([label, call]) =>
      el(
        "button",
        {
          "data-key": label,
          onclick: () => {
            this.clear(name);
            call();
          },
        },
        label,
      ),
    );
    const notice = el(
      `div.notice.${tone}`,
      {},
      el("span", {}, sentence),
      ...buttons,
      el("button.quiet", { "aria-label": "Dismiss", "data-key": "dismiss", onclick: () => this.clear(name) }, "×"),
    );
    this.known.set(name, notice);
    this.element.append(notice);
    if (milliseconds) setTimeout(() => this.known.get(name) === notice && this.clear(name), milliseconds);
  }

  clear(name) {
    this.known.get(name)?.remove();
    this.known.delete(name);
  }
}
