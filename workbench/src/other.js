// Results of another drawing, or of another table: said, dimmed, and two ways on.
import { el } from "./dom.js";
import { fromJson } from "./document.js";

/** Whether a run was trained for something else than what is drawn now. */
export const isOther = ({ verdict }, run) => verdict !== undefined && run.fingerprint !== verdict.fingerprint;

// The parts of a fingerprint, in their order.
const PARTS = ["another drawing", "other roles", "other kinds of columns", "another table"];

/** What is another: another drawing has other roles, too. */
function differences({ verdict }, run) {
  const [now, then] = [verdict, run].map(({ fingerprint }) => fingerprint?.split("-") ?? []);
  if (now.length !== then.length) return "another drawing or table";
  const other = PARTS.filter((_, place) => now[place] !== then[place] && !(place === 1 && now[0] !== then[0]));
  return other.join(", ").replace(/, ([^,]*)$/, " and $1");
}

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
    el("p", {}, `Trained for ${differences(app, run)}: show it, or train again.`),
    el(
      "p.buttons",
      {},
      el("button", { "data-key": "show-trained", onclick: show }, "Show it"),
      el("button", { "data-key": "train-again", onclick: () => app.panels.train.again() }, "Train again"),
    ),
  );
}
