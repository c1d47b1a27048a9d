// One stop of a walk: its figures, how to keep it, what its audit says, and what it is compared with.
import { download, el, tableOf } from "../dom.js";
import { said, within } from "../figures.js";
import { term } from "../prose.js";

const percent = (share) => (share === null || share === undefined ? "–" : `${said(100 * share)} %`);

/** What was measured at a stop, beside the predictor without a constraint. */
export function figuresOf(app, run, stop, scoreName) {
  const loss = run.task === "classification" ? "cross-entropy" : "mean squared error";
  const before = run.stops.find((one) => one.key === run.free);
  const row = (name, key, show = said) => [name, show(stop[key]), before ? show(before[key]) : "–"];
  const rows = [row(scoreName, "score"), row(loss, "loss")];
  if (stop.effect !== null) rows.push(row("largest change on average", "effect"), row("rows that move too far", "moved", percent));
  rows.push(row(term(app, "VCF"), "vcf"), row("VCF relative to the variance of predictions", "relative"));
  const words = [
    stop.weaker ? `This stop enforces only ${stop.weaker}, which is weaker than ${app.verdict.statement}, what the verdict is about.` : null,
    stop.shrinks ? "It only makes all differences between rows smaller alike: nothing is gained." : null,
    stop.rests_on ? `Rests on ${stop.rests_on}.` : null,
  ].filter(Boolean);
  return [
    tableOf("figures", ["", "this stop", "without a constraint"], rows, "Measured on rows that did not train it"),
    words.map((text, place) => el(place || !(stop.weaker || stop.shrinks) ? "p.hint" : "p.card.warn", {}, text)),
  ];
}

/** Keep a stop, and take what it leaves. */
export function keeping(app, run, stop) {
  const kept = run.kept[stop.key];
  const get = async (what) => {
    const file = await app.askFor({ do: "download", run: run.name, stop: stop.key, what }, "train");
    if (file.error) return;
    const bytes = () => Uint8Array.from(atob(file.base64), (letter) => letter.charCodeAt(0));
    download(file.name, file.text ?? new Blob([bytes()], { type: file.type }));
    app.notices.show("download", `${file.name} was downloaded.`, "info", [], 5000);
  };
  const ask = async (message, button) => {
    button.disabled = true;
    await app.askFor({ ...message, run: run.name }, "train");
    app.panels.train.show();
  };
  const busy = kept?.status === "running";
  const done = kept?.status === "done";
  const button = (what, label, disabled = false) =>
    el("button", { "data-key": `get|${what}`, disabled, onclick: () => get(what) }, label);
  const words = done
    ? "A model folder and a report, as the command line writes them."
    : (kept?.phase ?? "Keeping writes a model folder, and audits it on rows that no training has seen.");
  return el(
    "div.card",
    {},
    el("h3", {}, done ? "Kept" : "Keep this stop"),
    el("p", {}, words),
    busy ? el("progress", { max: kept.total, value: kept.done, "aria-label": "Keeping" }) : null,
    el(
      "p.buttons",
      {},
      busy
        ? el("button", { "data-key": "cancel-keep", onclick: ({ target }) => ask({ do: "cancel" }, target) }, "Cancel")
        : el(
            "button.primary",
            {
              "data-key": "keep",
              disabled: run.status === "running" || done || run.models || !stop.model,
              onclick: ({ target }) => ask({ do: "keep", stop: stop.key }, target),
            },
            "Keep",
          ),
      button("model", "Model folder", !done),
      button("report", "Report", !done),
      button("command", "Command line", !stop.has_command),
      button("script", "Python script", run.models),
    ),
  );
}

// Scores of groups that an audit may have, as people call them.
const SCORES = { positive_rate: "positive decisions", auc: "AUC", fpr: "false positives", fnr: "false negatives", calibration: "outcome − prediction", error: "error" };

/** The audit on rows that no training has seen, of a kept stop or of the one that was taken. */
const auditOf = (run, stop) => run.kept[stop.key]?.audit ?? (stop.key === run.chosen ? run.audit : null);

/** Whether a stop does what was asked: by its audit, else by the rows on which stops were compared. */
export function verdictOn(run, stop) {
  const audit = auditOf(run, stop);
  const card = (passes, title, ...words) => el(`div.card.verdict.${passes ? "good" : "warn"}`, {}, el("h3", {}, title), words);
  if (audit) {
    const { state, headline, checks } = audit.conclusion;
    return card(
      state === "passes",
      state[0].toUpperCase() + state.slice(1),
      el("p", {}, headline),
      el(
        "ul.plain",
        {},
        checks.map((check) => el("li", {}, `${check.holds ? "✓" : "✗"} ${check.name} ${check.sentence}`)),
      ),
      el("p.hint", {}, `Audited on ${audit.n_rows} rows that no training has seen.`),
    );
  }
  if (stop.allowed === null) return card(false, "Cannot be told", el("p", {}, "No limit was asked of this stop: its figures stand below."));
  const [asked, passes, fails] =
    run.recipe.goal === "limits"
      ? ["the limits", "Passes", "Fails"]
      : ["to the goal", "Keeps to the goal", "Does not keep to the goal"];
  const why = stop.keeps?.startsWith("no: ") ? `: ${stop.keeps.slice(4)}` : "";
  return card(
    stop.allowed,
    stop.allowed ? passes : fails,
    el("p", {}, stop.allowed ? `This stop keeps ${asked}.` : `This stop does not keep ${asked}${why}.`),
    el("p.hint", {}, "Measured on rows that did not train it; an audit of it comes with Keep."),
  );
}

/** The figures of the audit. */
export function audited(run, stop, sections) {
  const audit = auditOf(run, stop);
  if (!audit) return null;
  const { vcf } = audit;
  const figure = (value, interval) => within(value === null ? null : { value, low: interval?.[0], high: interval?.[1] });
  const rows = [
    ["VCF", figure(vcf.value, vcf.interval)],
    ["VCF relative to the variance of predictions", figure(vcf.relative, vcf.relative_interval)],
  ];
  if (vcf.flips) rows.push(["decisions that would flip", figure(vcf.flips.value, vcf.flips.interval)]);
  const own = (audit.groups ?? []).filter((group) => group.model === "this model");
  const scores = Object.keys(SCORES).filter((name) => own.some((group) => group[name] !== null));
  const cell = (group, name) => figure(group[name], [group[`${name}_low`], group[`${name}_high`]]);
  return [
    tableOf("figures", ["", ""], rows, "Of the audit, with 95 % intervals"),
    own.length
      ? sections.make(
          "By group, with 95 % intervals",
          false,
          tableOf(
            "groups",
            ["group", ...scores.map((name) => SCORES[name])],
            own.map((group) => [
              [`${group.columns}: ${group.group}`, el("small", {}, `${group.n_rows} rows`)],
              ...scores.map((name) => cell(group, name)),
            ]),
          ),
        )
      : null,
  ];
}

/** The baselines in figures. */
export function compared(run, scoreName, sections) {
  const beside = run.stops.filter((stop) => stop.baseline);
  if (!beside.length) return null;
  const rows = beside.map((stop) => [stop.name, said(stop.score), said(stop.vcf), said(stop.relative)]);
  return sections.make("Compared with", false, tableOf("groups", ["", scoreName, "VCF", "relative"], rows));
}
