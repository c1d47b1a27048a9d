"""``ciplearn fit``: from a table and a graph to a model folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.cli import options
from ciplearn.cli.output import note, printable, say, say_command, say_json, say_table
from ciplearn.cli.parsing import join_names, of_panel, with_groups
from ciplearn.cli.plan import Plan

if TYPE_CHECKING:
    from ciplearn.cli.model_folder import AnyTable
    from ciplearn.cli.training import Trained
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.report import Report
    from ciplearn.routes import Comparison
    from ciplearn.sources import TableFiles

_hidden = of_panel("Run", hidden=True)

# Text beyond this many bytes is not held in memory.
_LARGEST_IN_MEMORY = 1 << 26

# Options that say where to read, where to write and what to show: they do not change the model.
_NOT_REPEATED = ("table", "out", "overwrite", "dry_run", "config", "as_json", "address", "scratch", "meet", "report")


@with_groups
def fit(
    call: typer.Context,
    table: options.Table,
    graph: options.NeededGraph,
    out: options.NewFolder,
    roles: options.TaskOptions,
    plan: Plan,
    reading: options.ReadingOptions,
    work: options.TrainingEngineOptions,
    seed: options.Seed = 0,
    holdout: Annotated[
        float, _hidden("Share of the rows kept from training, for the audit.", "SHARE", min=0, max=0.9)
    ] = 0.2,
    missing: Annotated[str, _hidden("Rows with missing values: drop, impute or error.", "WORD")] = "drop",
    overwrite: options.Overwrite = False,
    dry_run: Annotated[bool, of_panel("Run")("Say what was understood and stop.", None, "--dry-run")] = False,
    *,
    answer: options.RunOptions,
) -> None:
    """Find the most accurate predictor that would have said the same had the protected columns been different.

    By default it meets the limits of ciplearn audit. NAMES are separated by commas.

    For example:
      ciplearn fit people.csv --graph graph.txt --outcome income --protected sex,age --out model
      ciplearn fit --config model/fit.json --vcf 5% --out stricter
    """
    from ciplearn._core.listed_folders import check_folder, listed_folder
    from ciplearn._core.memory import put_off

    put_off("scipy.stats")
    from ciplearn.cli.model_folder import write_folder
    from ciplearn.cli.streamed_fit import sampled_table, told_apart, train_streamed
    from ciplearn.cli.training import estimator, refuse_before_training, train
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.sources.table_file import TableFile

    plan = plan.settled()
    options.keep_inputs(out, table, options.graph_file(graph), answer.config)
    check_folder(out, overwrite=overwrite)
    request = roles.request(options.read_graph(graph), missing=missing, holdout=holdout, seed=seed)
    source = reading.table(table)
    stream, engine = _as_stream(source, work.engine), work.made()
    if stream is not None:
        plan = plan.streamed()
        rows = told_apart(sampled_table(stream, request, engine), stream, engine)
    elif isinstance(source, TableFile):
        with source.kept_from_pipe() as kept:
            rows = TrainingTable.read(kept, request)
    if not answer.as_json:
        describe(rows)
    model = estimator(rows, plan)
    refuse_before_training(rows, plan)
    if dry_run:
        if answer.as_json:
            say_json(rows.description())
        return
    with listed_folder(out, overwrite=overwrite) as fresh:
        trained = train(model, rows, plan) if stream is None else train_streamed(model, rows, plan, stream, engine)
        write_folder(fresh, rows, trained, fit_settings(call, rows))
    if trained.remark and trained.comparison is None:
        note(trained.remark)
    judged = plan.by_goal and table.is_file()
    report = held_out_audit(out, source, seed, plan.max_effect) if judged else None
    conclude(rows, trained, report, table, out, as_json=answer.as_json)


def _as_stream(source: AnyTable, engine: str | None) -> TableFiles | None:
    """Return the table to stream; None where it is a pipe, or small and for one process."""
    from ciplearn.sources import TableFiles

    if isinstance(source, TableFiles):
        return source
    if source.is_pipe:
        if engine is not None:
            raise InputError("What comes from a pipe cannot be read by several workers; pass files.")
        return None
    large = source.size() > _LARGEST_IN_MEMORY
    return TableFiles(str(source.path), (source,)) if large or engine is not None else None


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


def held_out_audit(
    out: Path, source: AnyTable, seed: int, max_effect: float | None, model: Any = None
) -> Report | None:
    """Audit the model on the rows kept for it, as ciplearn audit does; None where they cannot tell.

    A model from elsewhere, which the folder does not hold, is passed.
    """
    from ciplearn.cli.audit import Effort
    from ciplearn.cli.audited import Audited
    from ciplearn.cli.model_folder import LEAST_ROWS, ModelFolder
    from ciplearn.evaluation import Limits

    folder = ModelFolder.read(out, model)
    if len(folder.held_out) < LEAST_ROWS:
        return None
    try:
        subject = Audited.of_folder(folder, folder.as_in_training(source))
        return subject.report(Effort.of("standard", doubt=0), seed, limits=Limits(max_effect))
    except CiplearnError as refusal:
        note(f"the rows kept for the audit cannot judge the model: {refusal}")
        return None


def fit_settings(call: typer.Context, rows: TrainingTable) -> dict[str, Any]:
    """Return the options that repeat this training: as they were understood, and the others as they were given."""
    given = {str(option.name): call.params.get(str(option.name)) for option in call.command.params}
    roles = ("protected", "context", "inputs", "adjustment")
    understood: dict[str, Any] = {
        "graph": rows.request.graph.to_dagitty(),
        **{role: join_names(getattr(rows.verdict, role)) for role in roles},
        "outcome": rows.outcome,
    }
    understood |= {"task": rows.task, "categories": join_names(rows.request.categories) or None}
    settings = understood | {name: value for name, value in given.items() if name not in understood}
    # A role of no columns is one all the same: left out, it would be that of all.
    kept = {name: value for name, value in settings.items() if name not in _NOT_REPEATED and value is not None}
    return {name: printable(value) if isinstance(value, Path) else value for name, value in kept.items()}


def conclude(
    rows: TrainingTable,
    trained: Trained,
    report: Report | None,
    table: Path,
    out: Path,
    *,
    as_json: bool,
    predictor: str | None = None,
) -> None:
    """Say what was taken, what it costs and what to type next; ``predictor``: what the folder does not hold."""
    if as_json:
        audited = None if report is None else report.audit.to_dict()
        say_json({"folder": str(out), **trained.to_dict(), "understood": rows.description(), "audit": audited})
        return
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
    say(f"Written: {printable(out)}.")
    named = [] if predictor is None else ["--predictor", shlex.quote(predictor)]
    say_command("Next:", ["ciplearn", "audit", shlex.quote(printable(out)), again, *named, "--out", "report.html"])


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
            row["keeps"],
            str(row["rests_on"]),
        )
        for _, row in table[table["name"].isin(names)].iterrows()
    ]
    say_table([titles, *cells])
    say(comparison.reason)
    for remark in comparison.notes:
        note(remark)
