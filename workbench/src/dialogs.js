// Windows over the page: examples, opening, exporting, sharing, keys.
import { download, el, fill } from "./dom.js";
import { ARROWS, fromJson, toJson } from "./document.js";
import { KEYS } from "./keys.js";
import { fromFragment, toFragment } from "./share.js";

/** Show a dialog by name. */
export function openDialog(app, name) {
  const window = el("dialog", { "aria-label": TITLES[name] });
  const close = () => window.close();
  const heading = el(
    "div.heading",
    {},
    el("h2", {}, TITLES[name]),
    el("button.icon", { onclick: close, "aria-label": "Close", "data-do": "close" }, "×"),
  );
  window.append(heading, BODIES[name](app, close));
  window.addEventListener("close", () => window.remove());
  window.addEventListener("click", (event) => event.target === window && close());
  app.root.append(window);
  window.showModal();
}

const TITLES = {
  examples: "Examples",
  paste: "Open a graph",
  export: "Export the graph",
  share: "Share the drawing",
  help: "Keys and help",
};

const BODIES = { examples, paste, export: exporting, share, help };

function examples(app, close) {
  return el(
    "ul.examples",
    {},
    app.examples.map((entry) =>
      el(
        "li",
        {},
        el(
          "button",
          {
            "data-example": entry.name,
            onclick: () => {
              close();
              app.openExample(entry.name);
            },
          },
          el("strong", {}, entry.title),
          el("span", {}, entry.about),
        ),
      ),
    ),
  );
}

/** Open an example, with its table where it has one. */
export async function openExample(app, name) {
  const answer = await app.ask({ do: "example", name });
  if (answer.error) return app.notices.show("open", answer.error, "warn");
  app.editor.apply(fromJson(answer.document), `opened ${answer.title}`, "load");
  if (!answer.has_table) return undefined;
  // Drawing rows takes a moment; the drawing itself is there at once.
  app.notices.show("upload", "Drawing the demo's table …");
  const drawn = await app.ask({ do: "demo-table" });
  app.notices.clear("upload");
  if (drawn.error) app.notices.show("table", drawn.error, "warn");
  else app.tookTable(drawn.table);
  return undefined;
}

/** Open a graph from any notation, or from an address that holds one; returns what is wrong with it, or nothing. */
export async function readGraph(app, text) {
  const shared = /[#&]g=/.test(text) ? await fromFragment(text.trim()) : null;
  const answer = await app.ask(shared ? { do: "open", document: shared } : { do: "read", text });
  if (answer.error) return answer.error;
  app.editor.apply(fromJson(answer.document), "opened a graph", "load");
  return "";
}

function paste(app, close) {
  const problem = el("p.problem", { role: "alert" });
  const text = el("textarea", {
    rows: 10,
    spellcheck: "false",
    autofocus: true,
    "aria-label": "Graph as text",
    "data-key": "graph-text",
    placeholder: "sex -> hours -> income, sex -> income\n\nor in tiers, where each acts on all later ones:\n\nsex, age | job, hours | income",
  });
  const read = async () => {
    problem.textContent = await readGraph(app, text.value);
    if (!problem.textContent) close();
  };
  const file = el("input", {
    type: "file",
    "aria-label": "Graph file",
    "data-key": "graph-file",
    onchange: async () => {
      text.value = await file.files[0].text();
    },
  });
  return el(
    "div",
    {},
    el("p", {}, "Edges, tiers, DAGitty, DOT, GML, JSON, or an address from Share. An edge a <-> b stands for a common cause that nobody measured."),
    text,
    problem,
    el(
      "p.buttons",
      {},
      el("button.primary", { "data-do": "read", onclick: read }, "Open"),
      el("label.file", {}, "From a file ", file),
    ),
  );
}

const FORMATS = [
  ["dagitty", "DAGitty"],
  ["dot", "DOT"],
  ["gml", "GML"],
  ["json", "JSON"],
  ["edges", "Edges"],
  ["svg", "SVG"],
];

function exporting(app) {
  const said = el("span.said", { role: "status" });
  const save = (file, content) => {
    download(file, content);
    said.textContent = `${file} was downloaded.`;
  };
  const shown = el("textarea", { rows: 12, readonly: true, "aria-label": "The graph as text" });
  let name = "graph.txt";
  let wanted = "";
  // The answer that is on its way: what is copied or downloaded is the notation that was chosen, not the one before.
  let written;
  const show = async (format) => {
    wanted = format;
    const answer = await app.ask({ do: "write", format, document: toJson(app.editor.doc) });
    // An answer may come after that to a later question.
    if (format !== wanted) return;
    shown.value = answer.error ?? answer.text;
    name = answer.name ?? name;
    for (const button of choices) button.setAttribute("aria-pressed", String(button.dataset.format === format));
  };
  const choices = FORMATS.map(([format, label]) =>
    el("button", { "data-format": format, onclick: () => (written = show(format)) }, label),
  );
  written = show("dagitty");
  return el(
    "div",
    {},
    el("div.segments", { role: "group", "aria-label": "Notation" }, choices),
    shown,
    el("p.buttons", {}, copying(shown, () => written, [
      el("button", { "data-do": "download", onclick: () => written.then(() => save(name, shown.value)) }, "Download"),
      el("button", { "data-do": "picture", onclick: () => save("graph.png", app.canvas.picture()) }, "Picture as drawn (PNG)"),
    ], said)),
  );
}

/** A button that copies a text once it is there, others beside it, and a word on what was done. */
function copying(area, ready, others = [], said = el("span.said", { role: "status" })) {
  const copy = async () => {
    await ready();
    said.textContent = (await copied(area)) ? "Copied." : "Press Ctrl C to copy.";
  };
  return [el("button.primary", { "data-do": "copy", onclick: copy }, "Copy"), ...others, said];
}

async function copied(area) {
  area.focus();
  area.select();
  try {
    await navigator.clipboard.writeText(area.value);
    return true;
  } catch {
    return document.execCommand?.("copy") ?? false;
  }
}

function share(app) {
  const address = el("textarea", { rows: 5, readonly: true, "aria-label": "Address of the drawing" });
  const written = toFragment(app.editor.doc).then((fragment) => {
    address.value = `${app.page ? `${location.origin}${location.pathname}` : "http://127.0.0.1/"}#${fragment}`;
  });
  return el(
    "div",
    {},
    el(
      "p",
      {},
      "This address holds the whole drawing, and neither data nor the secret of this workbench. It opens in every browser that has this workbench open; a colleague pastes it under Open in a workbench of their own.",
    ),
    address,
    el("p.buttons", {}, copying(address, () => written)),
  );
}

function help(app) {
  return el(
    "div",
    {},
    el(
      "dl.keys",
      {},
      KEYS.map(([keys, what]) => [el("dt", {}, keys), el("dd", {}, what)]),
    ),
    el("p", {}, "The tab Outline holds everything as lists with ordinary controls."),
    el("p.hint", {}, `ciplearn ${app.hello?.ciplearn ?? ""}`),
  );
}

/** Ask where an edge from a node goes to. */
export function connectDialog(app, from, kind) {
  const others = app.editor.doc.nodes.filter((name) => name !== from);
  if (!others.length) return app.say("There is no other node to connect with.");
  const window = el("dialog.small", { "aria-label": `Connect ${from}` });
  const target = el(
    "select",
    { "aria-label": "To", "data-key": "to" },
    others.map((name) => el("option", { value: name }, name)),
  );
  const kinds = el(
    "select",
    { "aria-label": "Kind of edge", "data-key": "edge-kind" },
    Object.entries(ARROWS).map(([key, arrow]) => el("option", { value: key, selected: key === kind }, arrow)),
  );
  const done = (event) => {
    event.preventDefault();
    window.close();
    app.canvas.connect(kinds.value, from, target.value);
  };
  // A list opens on Enter where a form would be sent; here the first Enter is enough.
  const enter = (event) => event.key === "Enter" && event.target.tagName === "SELECT" && done(event);
  fill(
    window,
    el(
      "form",
      { onsubmit: done, onkeydown: enter },
      el("strong", {}, from),
      kinds,
      target,
      el("button.primary", { type: "submit", "data-do": "connect" }, "Connect"),
      el("button", { type: "button", "data-do": "cancel", onclick: () => window.close() }, "Cancel"),
    ),
  );
  window.addEventListener("close", () => {
    window.remove();
    app.canvas.holder.focus();
  });
  app.root.append(window);
  window.showModal();
  target.focus();
  return undefined;
}
