// The workbench: one module, mounted by the server's page and by a notebook's cell alike.
import { Canvas } from "./canvas.js";
import { connectDialog, openDialog, openExample } from "./dialogs.js";
import { el } from "./dom.js";
import { listenToDrops } from "./drop.js";
import { Editor } from "./editor.js";
import { listenToKeys } from "./keys.js";
import { legend } from "./legend.js";
import { Notices } from "./notices.js";
import { DataPanel } from "./panels/data.js";
import { OutlinePanel } from "./panels/outline.js";
import { TrainPanel } from "./panels/train.js";
import { VerdictPanel } from "./panels/verdict.js";
import { WhatIfPanel } from "./panels/whatif.js";
import { Rename } from "./rename.js";
import { SelectionBar } from "./selection.js";
import { startSession } from "./session.js";
import { Tabs } from "./tabs.js";
import { applyTheme, watchTheme } from "./theme.js";
import { header, Toolbar } from "./toolbar.js";
import { widgetTransport } from "./transport.js";

export { door } from "./door.js";
export { httpTransport } from "./transport.js";

/** Build the workbench in an element; returns how to take it down. */
export function mount(root, transport, { page = false } = {}) {
  root.classList.add("cw");
  const app = { root, transport, page, editor: new Editor(), table: null, runs: [], examples: [] };
  // For the console, and for tests that ask where a node stands.
  root.workbench = app;
  const holder = el("div.drawing", {
    tabindex: 0,
    role: "application",
    "aria-label": "Drawing of the causal graph. Press ? for keys.",
  });
  const empty = el("div.empty");
  const stage = el("section.stage", { "aria-label": "Drawing" }, holder, empty);
  const side = el("section.side", { "aria-label": "Verdict, data and training" });
  app.live = el("div.unseen", { "aria-live": "polite" });
  app.notices = new Notices();
  app.say = (text) => {
    app.live.textContent = text;
  };
  app.ask = (message) => transport.ask(message);
  // Ask, and show what was wrong in the notice of that name.
  app.askFor = async (message, notice) => {
    const answer = await app.ask(message);
    if (answer.error) app.notices.show(notice, answer.error, "warn");
    return answer;
  };
  app.open = (dialog) => openDialog(app, dialog);
  app.openExample = (name) => openExample(app, name);
  root.replaceChildren(header(app), el("main", {}, stage, side), app.live);

  app.rename = new Rename(app, stage);
  app.canvas = new Canvas(holder, app.editor, {
    selected: () => app.selection.show(),
    addAt: (position) => app.rename.add(position),
    rename: (name) => app.rename.start(name),
  });
  app.connect = (name, kind) => connectDialog(app, name, kind);
  app.toolbar = new Toolbar(app);
  app.selection = new SelectionBar(app);
  stage.append(app.toolbar.element, el("div.foot", {}, app.selection.element, legend()), app.notices.element);
  app.panels = {
    verdict: new VerdictPanel(app),
    outline: new OutlinePanel(app),
    data: new DataPanel(app),
    train: new TrainPanel(app),
    whatif: new WhatIfPanel(app),
  };
  app.tabs = new Tabs(
    side,
    [
      ["verdict", "Verdict"],
      ["outline", "Outline"],
      ["data", "Data"],
      ["train", "Train"],
      ["whatif", "What if"],
    ],
    app.panels,
  );
  applyTheme(app);
  const stops = [
    listenToKeys(app, holder),
    listenToDrops(app),
    startSession(app, empty, holder),
    watchTheme(app),
    watchSize(app, stage),
  ];
  return () => {
    for (const stop of stops) stop();
    app.canvas.cy.destroy();
  };
}

/** Show the whole drawing again on a screen that is turned, in a window that is halved, above a taller panel. */
function watchSize(app, stage) {
  let [wide, high] = [0, 0];
  const differs = (now, before) => Math.abs(now / before - 1) > 0.2;
  const sized = new ResizeObserver(([{ contentRect }]) => {
    app.canvas.cy.resize();
    if (wide && (differs(contentRect.width, wide) || differs(contentRect.height, high))) app.canvas.fit();
    [wide, high] = [contentRect.width, contentRect.height];
  });
  sized.observe(stage);
  return () => sized.disconnect();
}

export default {
  /** What anywidget calls. */
  render({ model, el: root }) {
    const place = el("div");
    root.append(place);
    return mount(place, widgetTransport(model));
  },
};
