// One stop of a walk: its figures, how to keep it, and what it is compared with.
import { download, el } from "../dom.js";
import { said, within } from "../figures.js";

/** A figure in a narrow column: its interval below it. */
const figureCell = (figure) =>
  el("td", {}, said(figure?.value), figure ? el("small", {}, `${said(figure.low)} to ${said(figure.high)}`) : null);

/** What was measured at a stop, in all and by group. */
export function figuresOf(run, stop, scoreName, sections) {
  const loss = run.task === "classification" ? "cross-entropy" : "mean squared error";
  const group = run.task === "classification" ? "accuracy" : "squared error";
  const rows = [
    [scoreName, stop.score],
    [loss, stop.loss],
    ["VCF", stop.vcf],
    ["VCF relative to the variance of predictions", stop.relative],
  ];
  if (stop.flips) rows.push(["decisions that would flip", stop.flips]);
  return [
    el(
      "table.figures",
      {},
      el("caption", {}, "At this stop, with 95 % intervals"),
      el(
        "tbody",
        {},
        rows.map(([name, figure]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, within(figure)))),
      ),
    ),
    stop.groups?.length
      ? sections.make(
          "By group, with 95 % intervals",
          false,
          el(
            "div.scroll",
            {},
            el(
              "table.groups",
              {},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  ["group", group, "mean prediction", "VCF"].map((title) => el("th", { scope: "col" }, title)),
                ),
              ),
              el(
                "tbody",
                {},
                stop.groups.map((entry) =>
                  el(
                    "tr",
                    {},
                    el("th", { scope: "row" }, `${entry.column}: ${entry.label}`, el("small", {}, `${entry.rows} rows`)),
                    [entry.score, entry.prediction, entry.vcf].map(figureCell),
                  ),
                ),
              ),
            ),
          ),
        )
      : null,
  ];
}

/** Keep a stop, and take what it leaves. */
export function keeping(app, run, stop) {
  const kept = run.kept[stop.key];
  const get = async (what) => {
    const file = await app.ask({ do: "download", run: run.name, stop: stop.key, what });
    if (file.error) return app.notices.show("train", file.error, "warn");
    const content =
      file.text ??
      new Blob([Uint8Array.from(atob(file.base64), (letter) => letter.charCodeAt(0))], { type: file.type });
    download(file.name, content);
    return app.notices.show("download", `${file.name} was downloaded.`, "info", [], 5000);
  };
  const ask = async (message, button) => {
    button.disabled = true;
    const answer = await app.ask({ ...message, run: run.name });
    if (answer.error) app.notices.show("train", answer.error, "warn");
    app.panels.train.show();
  };
  const busy = kept?.status === "running";
  const button = (what, label, disabled = false) =>
    el("button", { "data-key": `get|${what}`, disabled, onclick: () => get(what) }, label);
  return el(
    "div.card",
    {},
    el("h3", {}, kept?.status === "done" ? "Kept" : "Keep this stop"),
    el(
      "p",
      {},
      kept
        ? kept.phase === "Done"
          ? "Audited on rows that neither training nor this walk has seen."
          : kept.phase
        : stop.route === "independence"
          ? "Keeping trains it by the command line and audits it on rows that neither training nor this walk has seen."
          : "Keeping audits this very model on rows that neither training nor this walk has seen.",
    ),
    busy ? el("progress", { max: kept.total, value: kept.done, "aria-label": "Keeping" }) : null,
    el(
      "p.buttons",
      {},
      busy
        ? el(
            "button",
            { "data-key": "cancel-keep", onclick: ({ target }) => ask({ do: "cancel" }, target) },
            "Cancel",
          )
        : el(
            "button.primary",
            {
              "data-key": "keep",
              disabled: run.status === "running" || kept?.status === "done" || run.models,
              onclick: ({ target }) => ask({ do: "keep", stop: stop.key }, target),
            },
            "Keep",
          ),
      button("model", "Model folder", kept?.status !== "done"),
      button("report", "Report", kept?.status !== "done"),
      button("command", "Command line", run.models || stop.route !== "independence"),
      button("script", "Python script", run.models),
    ),
  );
}

/** The baselines in figures. */
export function compared(run, scoreName, sections) {
  if (!run.baselines.length) return null;
  return sections.make(
    "Compared with",
    false,
    el(
      "div.scroll",
      {},
      el(
        "table.groups",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["", scoreName, "VCF", "relative"].map((title) => el("th", { scope: "col" }, title)),
          ),
        ),
        el(
          "tbody",
          {},
          run.baselines.map((baseline) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, baseline.name),
              [baseline.score, baseline.vcf, baseline.relative].map(figureCell),
            ),
          ),
        ),
      ),
    ),
  );
}
