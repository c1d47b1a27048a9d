// Panels side by side, one shown at a time; arrow keys move between their tabs.
import { el } from "./dom.js";

// Several workbenches may stand in one notebook, and an id is one element's.
let count = 0;

export class Tabs {
  constructor(side, entries, panels) {
    const own = (count += 1) > 1 ? `cw${count}` : "cw";
    this.side = side;
    this.names = entries.map(([name]) => name);
    this.panels = panels;
    this.buttons = new Map(
      entries.map(([name, title]) => [
        name,
        el(
          "button.tab",
          { role: "tab", id: `${own}-tab-${name}`, "aria-controls": `${own}-panel-${name}`, onclick: () => this.open(name) },
          title,
        ),
      ]),
    );
    const list = el("div.tabs", { role: "tablist", onkeydown: (event) => this.#key(event) }, ...this.buttons.values());
    this.bodies = new Map(
      entries.map(([name]) => [
        name,
        el(
          "div.panel",
          { role: "tabpanel", id: `${own}-panel-${name}`, "aria-labelledby": `${own}-tab-${name}`, tabindex: 0 },
          panels[name].element,
        ),
      ]),
    );
    side.append(list, ...this.bodies.values());
    this.open(this.names[0]);
  }

  open(name) {
    this.current = name;
    this.side.dataset.tab = name;
    for (const [key, button] of this.buttons) {
      button.setAttribute("aria-selected", String(key === name));
      button.tabIndex = key === name ? 0 : -1;
      this.bodies.get(key).hidden = key !== name;
    }
    this.panels[name].opened?.();
  }

  title(name) {
    return this.buttons.get(name).textContent;
  }

  /** Look at the beginning of every panel: what is shown is new. */
  rewind() {
    for (const body of this.bodies.values()) body.scrollTop = 0;
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = (this.names.indexOf(this.current) + step + this.names.length) % this.names.length;
    this.open(this.names[place]);
    this.buttons.get(this.names[place]).focus();
  }
}
