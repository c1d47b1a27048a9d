// One stop of a walk: its figures, how to keep it, and what it is compared with.
import { download, el } from "../dom.js";
import { within } from "../figures.js";

/** What was measured at a stop, in all and by group. */
export function figuresOf(run, stop, scoreName) {
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
      ? el(
          "details.section",
          {},
          el("summary", {}, "By group"),
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
                  ["group", "rows", group, "mean prediction", "VCF"].map((title) => el("th", { scope: "col" }, title)),
                ),
              ),
              el(
                "tbody",
                {},
                stop.groups.map((entry) =>
                  el(
                    "tr",
                    {},
                    el("th", { scope: "row" }, `${entry.column}: ${entry.label}`),
                    el("td", {}, entry.rows),
                    el("td", {}, within(entry.score)),
                    el("td", {}, within(entry.prediction)),
                    el("td", {}, within(entry.vcf)),
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
    return download(file.name, content);
  };
  const keep = async () => {
    const answer = await app.ask({ do: "keep", run: run.name, stop: stop.key });
    if (answer.error) app.notices.show("train", answer.error, "warn");
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
        ? el("button", { "data-key": "cancel-keep", onclick: () => app.ask({ do: "cancel", run: run.name }) }, "Cancel")
        : el(
            "button.primary",
            {
              "data-key": "keep",
              disabled: run.status === "running" || kept?.status === "done" || run.models,
              onclick: keep,
            },
            "Keep",
          ),
      button("model", "Model folder", kept?.status !== "done"),
      button("report", "Report", kept?.status !== "done"),
      button("command", "Command line", stop.route !== "independence"),
      button("script", "Python script"),
    ),
  );
}

/** The baselines in figures. */
export function compared(run, scoreName) {
  if (!run.baselines.length) return null;
  return el(
    "details.section",
    {},
    el("summary", {}, "Compared with"),
    el(
      "div.scroll",
      {},
      el(
        "table",
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
              el("td", {}, within(baseline.score)),
              el("td", {}, within(baseline.vcf)),
              el("td", {}, within(baseline.relative)),
            ),
          ),
        ),
      ),
    ),
  );
}
