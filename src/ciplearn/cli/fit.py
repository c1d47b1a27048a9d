"""``ciplearn fit`` and ``repair``: from a table and a graph, or a model that exists already, to a model folder."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.files import write_file
from ciplearn._core.listed_folders import check_folder, listed_folder
from ciplearn.cli import options
from ciplearn.cli.commands import Fit, Repair
from ciplearn.cli.model_folder import LEAST_ROWS, AnyTable, ModelFolder, lacks_its_model, write_folder
from ciplearn.cli.output import note, printable, progress, say, say_command, say_json, say_table
from ciplearn.cli.parsing import join_names
from ciplearn.cli.streamed_fit import sampled_table, told_apart, train_streamed
from ciplearn.cli.training import Trained, estimator, refuse_before_training, train
from ciplearn.cli.training_table import FitRequest, TrainingTable
from ciplearn.learning import Frontier
from ciplearn.sources import TableFiles
from ciplearn.sources.table_file import TableFile, shortened

if TYPE_CHECKING:
    # What compares and audits is loaded where it is asked for: a training on a large table does without.
    from ciplearn.report import Report
    from ciplearn.routes import Comparison

# Text beyond this many bytes is not held in memory.
_LARGEST_IN_MEMORY = 1 << 26

# Options that say where to read, where to write and what to show: they do not change the model.
_NOT_REPEATED = {"table", "out", "overwrite", "dry_run", "config", "help_all", "as_json", "report"}
_NOT_REPEATED |= {"address", "scratch", "meet"}


def fit(asked: Fit) -> None:
    """Compare, choose, train, write the folder, and judge the model on the rows kept for that."""
    plan = asked.settled()
    request = _request(asked, missing=asked.missing, holdout=asked.holdout)
    source = asked.source(asked.table)
    stream, engine = _as_stream(source, asked.engine), asked.made(scratch=asked.scratch, meet=asked.meet)
    if stream is not None:
        plan = plan.streamed()
        rows = told_apart(sampled_table(stream, request, engine), stream, engine)
    elif isinstance(source, TableFile):
        with source.kept_from_pipe() as kept:
            rows = TrainingTable.read(kept, request)
    if not asked.as_json:
        _describe(rows)
    model = estimator(rows, plan)
    refuse_before_training(rows, plan)
    if asked.dry_run:
        if asked.as_json:
            say_json(rows.description())
        return

    def trained() -> Trained:
        return train(model, rows, plan) if stream is None else train_streamed(model, rows, plan, stream, engine)

    found = _written(asked, rows, trained)
    if found.remark and found.comparison is None:
        note(found.remark)
    judged = plan.by_goal and asked.table.is_file()
    report = _held_out_audit(asked, source) if judged else None
    _conclude(asked, rows, found, report)


def repair(asked: Repair) -> None:
    """Judge every strength of a model from elsewhere on halves of the rows, and write the one that a goal takes."""
    from ciplearn.estimators import CIPClassifier, CIPRegressor, Problem
    from ciplearn.estimators.criteria import judging_splits
    from ciplearn.evaluation.any_model import Numbers, Probabilities
    from ciplearn.repairing import Repaired
    from ciplearn.routes.comparison import compared
    from ciplearn.routes.repaired import RepairRoute

    goal, request, source = asked.goal(), _request(asked), asked.source(asked.table)
    foreign = asked.foreign(request.inputs, request.graph.observed)
    if foreign is None or None not in (asked.predictor, asked.onnx):
        raise InputError("Repair needs one model, got two or none; pass --predictor or --onnx.")
    if not isinstance(source, TableFile):
        raise InputError(f"Repair takes one table in memory, got several files at {asked.table}; pass one of them.")
    inputs = foreign.inputs if request.inputs is None else request.inputs
    rows = TrainingTable.read(source, replace(request, inputs=inputs))
    if not asked.as_json:
        _describe(rows)
    X, y = rows.training()
    problem = Problem(X.assign(**{rows.outcome: y}), rows.request.graph, rows.roles, rows.task)
    labels = y if problem.is_classification else None
    model = Numbers(foreign) if labels is None else Probabilities(foreign, sorted(set(labels)))
    splits = judging_splits(X, y, 0.5, asked.seed, labels, 2, 2)
    network = CIPRegressor() if labels is None else CIPClassifier()
    with progress("repairing", "step", None) as bar:
        routes = [RepairRoute()]
        found = compared(problem, network, {"model": model}, routes, goal, splits, seed=asked.seed, verbose=bar)
    kept = found.model
    if not isinstance(kept, Repaired):
        # It was taken as it is, for want of a repaired one, and is no data that a folder holds.
        raise InputError(next(iter(found.notes), found.reason))
    if asked.onnx is not None:
        kept = replace(kept, asked=replace(kept.asked, model=Path(asked.onnx)))
    trained = _written(asked, rows, lambda: Trained(kept, {}, Frontier(()), found.reason, {}, found))
    page = _held_out_audit(asked, source, found.model)
    if page is not None and asked.report is not None:
        write_file(asked.report, page.to_html())
    _conclude(asked, rows, trained, page, predictor=asked.predictor if lacks_its_model(asked.out) else None)


def _request(asked: Fit | Repair, **more: Any) -> FitRequest:
    """What is asked of the table; what stands in the way of the folder is found out before any work is done."""
    options.keep_inputs(asked.out, asked.table, options.graph_file(asked.graph), asked.config)
    check_folder(asked.out, overwrite=asked.overwrite)
    return asked.request(options.read_graph(asked.graph), seed=asked.seed, **more)


def _as_stream(source: AnyTable, engine: str | None) -> TableFiles | None:
    """Return the table to stream; None where it is a pipe, or small and for one process."""
    if isinstance(source, TableFiles):
        return source
    if source.is_pipe:
        if engine is not None:
            raise InputError("What comes from a pipe cannot be read by several workers; pass files.")
        return None
    large = source.size() > _LARGEST_IN_MEMORY
    return TableFiles(str(source.path), (source,)) if large or engine is not None else None


def _describe(rows: TrainingTable) -> None:
    """Say what was understood."""
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


def _written(asked: Fit | Repair, rows: TrainingTable, train: Callable[[], Trained]) -> Trained:
    """Train, and write what that has left."""
    with listed_folder(asked.out, overwrite=asked.overwrite) as fresh:
        trained = train()
        write_folder(fresh, rows, trained, _settings(asked, rows))
    return trained


def _settings(asked: Fit | Repair, rows: TrainingTable) -> dict[str, Any]:
    """Return the options that repeat this training: as they were understood, and the others as they were given."""
    understood: dict[str, Any] = {
        "graph": rows.request.graph.to_dagitty(),
        **{role: join_names(getattr(rows.verdict, role)) for role in ("protected", "context", "inputs", "adjustment")},
        "outcome": rows.outcome,
        "task": rows.task,
        "categories": join_names(rows.request.categories) or None,
    }
    settings = understood | {name: value for name, value in vars(asked).items() if name not in understood}
    # A role of no columns is one all the same: left out, it would be that of all.
    kept = {name: value for name, value in settings.items() if name not in _NOT_REPEATED and value is not None}
    return {name: printable(value) if isinstance(value, Path) else value for name, value in kept.items()}


def _held_out_audit(asked: Fit | Repair, source: AnyTable, model: Any = None) -> Report | None:
    """Audit the model on the rows kept for it, as ciplearn audit does; None where they cannot tell.

    A model from elsewhere, which the folder does not hold, is passed.
    """
    from ciplearn.cli.audited import Audited, Effort
    from ciplearn.evaluation import Limits

    folder = ModelFolder.read(asked.out, model)
    if len(folder.held_out) < LEAST_ROWS:
        return None
    try:
        subject = Audited.of_folder(folder, folder.as_in_training(source))
        return subject.report(Effort.of("standard", doubt=0), asked.seed, limits=Limits(asked.max_effect))
    except CiplearnError as refusal:
        note(f"the rows kept for the audit cannot judge the model: {refusal}")
        return None


def _conclude(
    asked: Fit | Repair, rows: TrainingTable, trained: Trained, report: Report | None, predictor: str | None = None
) -> None:
    """Say what was taken, what it costs and what to type next; ``predictor``: what the folder does not hold."""
    if asked.as_json:
        audited = None if report is None else report.audit.to_dict()
        say_json({"folder": str(asked.out), **trained.to_dict(), "understood": rows.description(), "audit": audited})
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
    again = shlex.quote(printable(asked.table)) if asked.table.is_file() else "TABLE"
    say(f"Written: {printable(asked.out)}.")
    named = [] if predictor is None else ["--predictor", shlex.quote(predictor)]
    say_command(
        "Next:", ["ciplearn", "audit", shlex.quote(printable(asked.out)), again, *named, "--out", "report.html"]
    )


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
