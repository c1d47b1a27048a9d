// Files that are dropped on the page: graphs and tables, told apart by their names.
import { readGraph } from "./dialogs.js";

const TABLE = /\.(csv|tsv|parquet)(\.gz)?$/i;

/** A text may be either: on the drawing or in a window it is a graph, elsewhere a table. */
const isGraph = (name, target) =>
  /\.txt$/i.test(name) ? Boolean(target.closest(".stage, dialog")) : !TABLE.test(name);

/** Listen wherever a file may fall: one that misses its place must not replace the page. Returns how to stop. */
export function listenToDrops(app) {
  const over = (event) => event.preventDefault();
  const dropped = async (event) => {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    if (!isGraph(file.name, event.target)) return app.panels.data.send(file);
    const problem = await readGraph(app, await file.text());
    if (problem) return app.notices.show("open", `${file.name}: ${problem}`, "warn");
    app.notices.clear("open");
    return app.root.querySelector("dialog[open]")?.close();
  };
  app.root.addEventListener("dragover", over);
  app.root.addEventListener("drop", dropped);
  return () => {
    app.root.removeEventListener("dragover", over);
    app.root.removeEventListener("drop", dropped);
  };
}
