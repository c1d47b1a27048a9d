// The page and Python in step: what is loaded, saved, judged, and said when the two lose each other.
import { debounced, el, fill } from "./dom.js";
import { fromJson, toJson } from "./document.js";
import { fromFragment, toFragment } from "./share.js";

// What undo and redo know, for the page that is loaded again in the same tab.
const PAST = "ciplearn-past";

export function startSession(app, empty, holder) {
  const { editor } = app;
  const client = Math.random().toString(36).slice(2);
  let version = null;
  let instance = null;
  let dirty = false;
  let asked = 0;
  let judgedDoc = null;

  const storage = app.page ? browserStorage() : null;
  const status = (text) => app.status.replaceChildren(text);

  // One after the other: each names the version that the one before has left.
  let saves = Promise.resolve();
  const save = (anyway = false) => {
    saves = saves.then(() => saveNow(anyway));
  };

  async function saveNow(anyway) {
    if (version === null) return;
    const sent = editor.doc;
    status("Saving…");
    const answer = await app.ask({ do: "save", document: toJson(sent), version, client, anyway });
    if (answer.conflict) return clash(answer);
    if (answer.error) {
      if (answer.offline) await keepUnsaved(sent);
      return status(answer.offline ? "Not saved: no server" : "Not saved");
    }
    version = answer.version;
    await keepUnsaved(null);
    app.notices.clear("conflict");
    if (sent === editor.doc) {
      dirty = false;
      status("Saved");
    }
  }

  // A server that is started again has another secret, and so this page another address: its next page finds this.
  async function keepUnsaved(doc) {
    const key = `ciplearn unsaved ${app.hello.work}`;
    if (doc) storage?.setItem(key, await toFragment(doc));
    else storage?.removeItem(key);
  }

  const who = (other) => (other === "python" ? "Python" : "Another page");

  function clash({ version: theirs, document, client: other }) {
    status("Not saved");
    app.notices.show("conflict", `${who(other)} has changed this drawing too.`, "warn", [
      ["Take theirs", () => adopt(document, theirs)],
      ["Keep mine", () => save(true)],
    ]);
  }

  function adopt(document, theirs) {
    version = theirs;
    dirty = false;
    status("Saved");
    app.notices.clear("conflict");
    editor.apply(fromJson(document), "took the drawing of another page", "adopt");
  }

  // One question at a time: those that a newer drawing replaces while it is under way are never asked.
  let judging = false;

  async function judge() {
    asked += 1;
    if (judging) return;
    judging = true;
    let mine, started, answer, doc;
    try {
      do {
        mine = asked;
        started = performance.now();
        ({ doc } = editor);
        answer = await app.ask({ do: "judge", document: toJson(doc) });
      } while (mine !== asked);
    } finally {
      judging = false;
    }
    app.verdict = answer;
    app.verdictMilliseconds = performance.now() - started;
    // Another table is no other verdict: what its reader has opened stays open.
    const isNew = doc !== judgedDoc;
    judgedDoc = doc;
    if (isNew) {
      app.canvas.colour(answer);
      app.panels.verdict.show(answer);
    }
    app.panels.train.show();
    app.panels.whatif.show();
    app.panels.data.show();
    if (isNew && answer.state === "judged" && !answer.holds) advise(doc);
  }

  const advise = debounced(async (doc) => {
    if (doc !== judgedDoc) return;
    const advice = await app.ask({ do: "advise", document: toJson(doc) });
    if (doc === judgedDoc) app.panels.verdict.showAdvice(advice);
  }, 150);

  const saveSoon = debounced(() => save(), 300);
  const address = debounced(async () => {
    if (app.page)
      history.replaceState(null, "", `${location.search || location.pathname}#${await toFragment(editor.doc)}`);
  }, 300);

  editor.listen(({ said, origin }) => {
    if (said) app.say(said);
    app.toolbar.show();
    app.selection.show();
    app.panels.outline.show();
    holder.setAttribute("aria-description", app.canvas.describe());
    showEmpty(app, empty);
    app.panels.data.mark();
    if (origin === "load") app.tabs.rewind();
    if (origin !== "move") judge();
    address();
    remember();
    if (origin === "begin" || origin === "adopt") return;
    dirty = true;
    status("Saving…");
    saveSoon();
  });

  const remember = debounced(() => {
    try {
      if (app.page) sessionStorage.setItem(PAST, editor.recallable());
    } catch {
      // A past too large for the browser ends with the page.
    }
  }, 300);

  function recall() {
    try {
      if (app.page && editor.recall(sessionStorage.getItem(PAST))) app.toolbar.show();
    } catch {
      // A browser that keeps nothing has nothing to recall.
    }
  }

  async function greet() {
    const hello = await app.ask({ do: "hello" });
    if (hello.error) {
      app.notices.show("server", hello.error, "warn");
      return;
    }
    const restarted = instance !== null && instance !== hello.instance;
    instance = hello.instance;
    app.hello = hello;
    app.examples = hello.examples;
    app.table = hello.table ?? null;
    app.runs = hello.runs ?? [];
    if (version === null) await begin(hello);
    else if (restarted) again(hello);
    app.panels.data.show();
    app.panels.train.show();
    app.panels.whatif.show();
  }

  /** A drawing that came with an address, once Python has found it to be one. */
  async function checked(document) {
    if (!document) return null;
    const answer = await app.ask({ do: "open", document });
    if (answer.error) app.notices.show("open", `The drawing of the address was left out: ${answer.error}`, "warn");
    return answer.document ?? null;
  }

  async function begin(hello) {
    version = hello.version;
    const saved = fromJson(hello.document);
    editor.begin(saved);
    const linked = app.page ? await fromFragment(location.hash) : null;
    const unsaved = linked ? null : storage?.getItem(`ciplearn unsaved ${hello.work}`);
    const opened = await checked(unsaved ? await fromFragment(unsaved) : linked);
    const shared = opened && fromJson(opened);
    const differs = shared && JSON.stringify(toJson(shared)) !== JSON.stringify(toJson(saved));
    if (differs) editor.apply(shared, "opened the drawing of the address", "load");
    if (differs && unsaved)
      app.notices.show("saved", "What was not saved when the server stopped is back; undo leaves it out.", "info");
    else if (!differs && hello.found_saved && saved.nodes.length)
      app.notices.show("saved", "Your saved drawing is back.", "info", [], 5000);
    status(differs ? "" : "Saved");
    if (!differs) recall();
    if (hello.interrupted) app.notices.show("runs", hello.interrupted, "warn");
    if (hello.set_aside) app.notices.show("aside", hello.set_aside, "warn");
  }

  function again(hello) {
    const runs = hello.interrupted ? ` ${hello.interrupted}` : "";
    app.notices.show("server", `The server was started again. What was saved is here.${runs}`, "info", [], 12_000);
    if (dirty) save();
    else if (hello.version !== version) adopt(hello.document, hello.version);
    judge();
  }

  function told(event) {
    if (event.event === "server" && event.instance !== instance) greet();
    else if (event.event === "document" && event.client !== client) {
      if (dirty) clash(event);
      else {
        adopt(event.document, event.version);
        const words = `${who(event.client)} has changed the drawing; undo brings yours back.`;
        app.notices.show("adopted", words, "info", [], 6000);
      }
    } else if (event.event === "run" || event.event === "run-gone") app.panels.train.told(event);
    else if (event.event === "table") app.tookTable(event.table);
  }

  function connection(alive) {
    if (alive) {
      app.notices.clear("offline");
      if (dirty) save();
      return;
    }
    const words = "The server does not answer. Your drawing stays on this page and is saved once it is back.";
    app.notices.show("offline", words, "warn");
    // Once it refuses this page, the browser stops asking.
    app.ask({ do: "hello" }).then(({ error, refused }) => {
      if (refused) app.notices.show("offline", error, "warn");
    });
  }

  app.tookTable = (table) => {
    app.table = table;
    app.panels.data.forget();
    showEmpty(app, empty);
    judge();
  };
  greet();
  return app.transport.listen(told, connection);
}

/** What this browser keeps for this origin; null where people have switched that off. */
function browserStorage() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

/** What to do with an empty drawing, said in its place. */
function showEmpty(app, empty) {
  const none = app.editor.doc.nodes.length === 0;
  empty.hidden = !none;
  if (!none) return;
  fill(
    empty,
    el("h2", {}, "Draw what causes what"),
    el(
      "p",
      {},
      "Double-click to add a node, or press N. Then say what is predicted and what must not influence the prediction.",
    ),
    app.table ? el("p", {}, el("strong", {}, app.table.name), " is loaded.") : null,
    el(
      "p.buttons",
      {},
      app.table
        ? el(
            "button.primary",
            { "data-key": "draw-columns", onclick: () => app.panels.data.drawColumns() },
            "Draw its columns",
          )
        : null,
      el(
        `button${app.table ? "" : ".primary"}`,
        { "data-key": "demo", onclick: () => app.openExample("demo") },
        "Start with an example",
      ),
      el("button", { "data-key": "examples", onclick: () => app.open("examples") }, "More examples"),
      el("button", { "data-key": "paste", onclick: () => app.open("paste") }, "Paste a graph"),
    ),
  );
}
