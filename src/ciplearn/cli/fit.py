"""``ciplearn fit`` and ``repair``: from a table and a graph, or a model that exists already, to a model folder."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.files import check_folder, listed_folder, write_file
from ciplearn._core.wording import as_list, shortened
from ciplearn.cli import options
from ciplearn.cli.commands import Fit, Repair
from ciplearn.cli.model_folder import LEAST_ROWS, AnyTable, ModelFolder, lacks_its_model, write_folder
from ciplearn.cli.options import ROLES, Effort, join_names
from ciplearn.cli.output import keep_inputs, note, printable, progress, say, say_command, say_json, say_table
from ciplearn.cli.training import Trained, estimator, refuse_untrainable, sampled_table, told_apart, train, train_stream
from ciplearn.cli.training_table import FitRequest, TrainingTable
from ciplearn.sources import TableFiles
from ciplearn.sources.table_file import TableFile

if TYPE_CHECKING:
    # What compares and audits is loaded where it is asked for: a training on a large table does without.
    from ciplearn.report import Report
    from ciplearn.routes import Comparison

_LARGEST_IN_MEMORY = 1 << 26  # text beyond this many bytes is not held in memory

# Options that say where to read, where to write and what to show: they do not change the model.
_NOT_REPEATED = {"table", "out", "overwrite", "dry_run", "config", "help_all", "as_json", "report"}
_NOT_REPEATED |= {"address", "scratch", "meet"}

_MEANING = (
    "On rows that did not train: loss is the {}, score the {}, VCF left how much predictions still follow {}. Strength "
    "is how strictly a model was repaired (corrected: by added trees; blindly: without what labels tell of one person)."
)


def fit(asked: Fit) -> None:
    """Compare, choose, train, write the folder, and judge the model on the rows kept for that."""
    if (done := fitted(asked)) is not None:
        _conclude(asked, *done)


def fitted(asked: Fit) -> tuple[TrainingTable, Trained, Report | None] | None:
    """Do what `fit` does, and return it; None where that is only looked at."""
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
    refuse_untrainable(rows, plan)
    if asked.dry_run:
        if asked.as_json:
            say_json(rows.description())
        return None
    streamed = None if stream is None else partial(train_stream, model, rows, plan, stream, engine)
    trained = _written(asked, rows, streamed or partial(train, model, rows, plan))
    if trained.remark and trained.comparison is None:
        note(trained.remark)
    report = _held_out_audit(asked, source) if plan.by_goal and asked.table.is_file() else None
    return rows, trained, report


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
    with progress("repairing", "step") as bar:
        how: dict[str, Any] = {"seed": asked.seed, "verbose": bar}
        comparison = compared(problem, network, {"model": model}, [RepairRoute()], goal, splits, **how)
    kept = comparison.model
    if not isinstance(kept, Repaired):
        # It was taken as it is, for want of a repaired one, and is no data that a folder holds.
        raise InputError(next(iter(comparison.notes), comparison.reason))
    if asked.onnx is not None:
        kept = replace(kept, asked=replace(kept.asked, model=Path(asked.onnx)))
    trained = _written(asked, rows, lambda: Trained(kept, remark=comparison.reason, comparison=comparison))
    page = _held_out_audit(asked, source, comparison.model)
    if page is not None and asked.report is not None:
        write_file(asked.report, page.to_html())
    _conclude(asked, rows, trained, page, predictor=asked.predictor if lacks_its_model(asked.out) else None)


def _request(asked: Fit | Repair, **more: Any) -> FitRequest:
    """What is asked of the table; what stands in the way of the folder is found out before any work is done."""
    keep_inputs(asked.out, asked.table, options.graph_file(asked.graph), asked.config)
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
    told = rows.description()
    say(
        f"{told['rows']} rows; {told['dropped']} left out because a value is missing; {told['training']} to train on, "
        f"{told['held_out']} kept for the audit."
    )
    if gaps := rows.training(held_out=True)[0].isna().any(axis=1).sum():
        say(f"{gaps} of those kept for the audit miss a value: an audit leaves them out, as it imagines whole rows.")
    if told["copies"]:
        looked_at = told["training"] + told["held_out"] + told["dropped"]
        say(f"{told['copies']} of {looked_at} rows are copies of others; copies train together, or judge together.")
    titles = ("column", "kind", "values", "roles")
    cells = [(c["name"], c["kind"], c["values"], ", ".join(c["roles"]) or "not used") for c in told["columns"]]
    say_table([titles, *cells])
    if told["ignored"]:
        say(f"Not in the graph, so not used: {shortened(told['ignored'])}.")
    if told["constant"]:
        say(f"The same in all rows, so nothing can be learnt from it: {shortened(told['constant'])}.")
    say(f"{told['task'].capitalize()}. {rows.verdict.in_words()}")


def _written(asked: Fit | Repair, rows: TrainingTable, train: Callable[[], Trained]) -> Trained:
    """Train, and write what that has left, with the options that repeat it: those understood, the others as given."""
    understood: dict[str, Any] = {
        "graph": rows.request.graph.to_dagitty(),
        **{role: join_names(getattr(rows.verdict, role)) for role in ROLES},
        "outcome": rows.outcome,
        "task": rows.task,
        "categories": join_names(rows.request.categories) or None,
    }
    settings = understood | {name: value for name, value in vars(asked).items() if name not in understood}
    # A role of no columns is one all the same: left out, it would be that of all.
    kept = {name: value for name, value in settings.items() if name not in _NOT_REPEATED and value is not None}
    plain = {name: printable(value) if isinstance(value, Path) else value for name, value in kept.items()}
    with listed_folder(asked.out, overwrite=asked.overwrite) as fresh:
        trained = train()
        write_folder(fresh, rows, trained, plain)
    return trained


def _held_out_audit(asked: Fit | Repair, source: AnyTable, model: Any = None) -> Report | None:
    """Audit the model on the rows kept for it, as ciplearn audit does; None where they cannot tell.

    A model from elsewhere, which the folder does not hold, is passed.
    """
    from ciplearn.cli.audit import report_on
    from ciplearn.cli.audited import Audited
    from ciplearn.evaluation import Limits

    folder = ModelFolder.read(asked.out, model)
    if len(folder.held_out) < LEAST_ROWS:
        return None
    try:
        subject = Audited.of_folder(folder, folder.as_in_training(source))
        return report_on(subject, Effort.of("standard", doubt=0), asked.seed, limits=Limits(asked.max_effect))
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
        _show_routes(trained.comparison, rows, asked.max_effect is None)
    elif trained.trace:
        points, gamma = {point.gamma: point.measures for point in trained.trace}, trained.model.gamma_
        free = points[0.0]
        say(f"Without a penalty: {score} {free['score']:.3f}, penalty {free['penalty']:.2e} (on rows that judge).")
        if gamma in points and gamma > 0:
            used = points[gamma]
            say(f"At gamma = {gamma:.3g}: {score} {used['score']:.3f}, penalty {used['penalty']:.2e}.")
    if trained.scores:
        say(f"On rows kept for the audit: {score} {trained.scores['score']:.3f}.")
    if report is not None:
        say(f"On rows kept for the audit: {report.summary()[0]}")
    again = shlex.quote(printable(asked.table)) if asked.table.is_file() else "TABLE"
    say(f"Written: {printable(asked.out)}.")
    named = [] if predictor is None else ["--predictor", shlex.quote(predictor)]
    folder = shlex.quote(printable(asked.out))
    say_command("Next:", ["ciplearn", "audit", folder, again, *named, "--out", "report.html"])


def _show_routes(comparison: Comparison, rows: TrainingTable, by_default: bool) -> None:
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
    labels, limit, who = rows.task == "classification", comparison.limit, as_list(rows.verdict.protected)
    goal = ""
    if limit is not None and "effect" in table:
        most = f"{100 * limit:.3g} points" if labels else f"{limit:.3g}"
        most = f"a tenth of the spread of {rows.outcome}, {most}," if by_default and not labels else most
        goal = f" The goal: changing {who} moves a prediction by at most {most} on average, and by more for few rows."
    say(_MEANING.format("log loss" if labels else "squared error", "accuracy" if labels else "R²", who) + goal)
    say(comparison.reason)
    for remark in comparison.notes:
        note(remark)
