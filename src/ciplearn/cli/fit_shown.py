"""What ``ciplearn fit`` says before and after training."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn.cli.output import note, printable, say, say_table

if TYPE_CHECKING:
    from ciplearn.cli.training import Plan, Trained
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.report import Report
    from ciplearn.routes import Comparison


def describe(rows: TrainingTable) -> None:
    """Say what was understood."""
    from ciplearn.sources.table_file import shortened

    said = rows.description()
    say(
        f"{said['rows']} rows; {said['dropped']} left out because a value is missing; {said['training']} to train on, "
        f"{said['held_out']} kept for the audit."
    )
    if said["copies"]:
        looked_at = said["training"] + said["held_out"] + said["dropped"]
        say(f"{said['copies']} of {looked_at} rows are copies of others; copies train together, or judge together.")
    titles = ("column", "kind", "values", "roles")
    cells = [(c["name"], c["kind"], c["values"], ", ".join(c["roles"]) or "not used") for c in said["columns"]]
    say_table([titles, *cells])
    if said["ignored"]:
        say(f"Not in the graph, so not used: {shortened(said['ignored'])}.")
    if said["constant"]:
        say(f"The same in all rows, so nothing can be learnt from it: {shortened(said['constant'])}.")
    say(f"{said['task'].capitalize()}. {rows.verdict.headline()}")


def result(rows: TrainingTable, plan: Plan, trained: Trained, out: Path) -> dict[str, Any]:
    """Return what a fit has come to as JSON-ready data."""
    return {
        "folder": str(out),
        "gamma": getattr(trained.model, "gamma_", None),
        "tolerance": plan.allowed,
        "measure": plan.measure,
        "scores": trained.scores,
        "trials": trained.trace.table.drop(columns="seed").to_dict(orient="records") if trained.trace.points else [],
        "remark": trained.remark,
        "understood": rows.description(),
        "comparison": None if trained.comparison is None else trained.comparison.to_dict(),
    }


def _show_routes(comparison: Comparison) -> None:
    """What was taken, what it is compared with, and of each path where it does best."""
    table = comparison.table
    free = table.set_index("name").loc[comparison.free, "vcf"]
    paths = table.groupby(["kind", "learner"], sort=False)
    best = [part[part["allowed"]] if part["allowed"].any() else part for _, part in paths]
    names = {comparison.chosen, *(part.loc[part["loss"].idxmin(), "name"] for part in best)}
    titles = ("candidate", "loss", "score", "VCF left", "keeps to the goal", "rests on")
    cells = [
        (
            f"{'> ' if row['name'] == comparison.chosen else '  '}{row['name']}",
            f"{row['loss']:.4g}",
            f"{row['score']:.3f}",
            "unknown" if row["vcf"] != row["vcf"] or not free else f"{100 * row['vcf'] / free:.1f} %",
            "yes" if row["allowed"] else "no",
            str(row["rests_on"]),
        )
        for _, row in table[table["name"].isin(names)].iterrows()
    ]
    say_table([titles, *cells])
    say(comparison.reason)
    for remark in comparison.notes:
        note(remark)


def conclude(rows: TrainingTable, trained: Trained, report: Report | None, table: Path, out: Path) -> None:
    """Say what was taken, what it costs and what to type next."""
    score = "accuracy" if rows.task == "classification" else "R²"
    if trained.comparison is not None:
        _show_routes(trained.comparison)
    elif trained.trace.points:
        known = trained.trace.table.set_index("gamma")
        free = known.loc[0.0]
        say(f"Without a penalty: {score} {free['score']:.3f}, penalty {free['penalty']:.2e} (on rows that judge).")
        if trained.model.gamma_ in known.index and trained.model.gamma_ > 0:
            used = known.loc[trained.model.gamma_]
            say(f"At gamma = {trained.model.gamma_:.3g}: {score} {used['score']:.3f}, penalty {used['penalty']:.2e}.")
    if trained.scores:
        say(f"On rows kept for the audit: {score} {trained.scores['score']:.3f}.")
    if report is not None:
        say(f"On rows kept for the audit: {report.summary()[0]}")
    again = shlex.quote(printable(table)) if table.is_file() else "TABLE"
    folder = shlex.quote(printable(out))
    say(f"Written: {printable(out)}. Next: ciplearn audit {folder} {again} --out report.html")
