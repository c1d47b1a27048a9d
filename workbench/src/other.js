// Results of another drawing, or of another table: said, dimmed, and two ways on.
import { el } from "./dom.js";
import { fromJson } from "./document.js";

/** Whether a run was trained for something else than what is drawn now. */
export const isOther = ({ verdict }, run) => verdict !== undefined && run.fingerprint !== verdict.fingerprint;

/** Say so, with a way to what the run was trained for and a way to train for what is drawn; nothing where they agree. */
export function sayOther(app, run) {
  if (!isOther(app, run)) return null;
  const show = async () => {
    const answer = await app.ask({ do: "show", run: run.name });
    if (answer.error) return app.notices.show("train", answer.error, "warn");
    app.editor.apply(fromJson(answer.document), "showed what was trained for", "load");
    return app.tookTable(answer.table);
  };
  return el(
    "div.card.warn",
    { role: "status" },
    el("p", {}, "Trained for another drawing or table: show it, or train again."),
    el(
      "p.buttons",
      {},
      el("button", { "data-key": "show-trained", onclick: show }, "Show it"),
      el("button", { "data-key": "train-again", onclick: () => app.panels.train.again() }, "Train again"),
    ),
  );
}
