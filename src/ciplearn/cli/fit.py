"""``ciplearn fit``: from a table and a graph to a model folder."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn.cli import options
from ciplearn.cli.fit_shown import conclude, describe, result
from ciplearn.cli.options import join_names, split_names
from ciplearn.cli.output import note, printable, say_json

if TYPE_CHECKING:
    from ciplearn.cli.model_folder import AnyTable
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.report import Report
    from ciplearn.routes import Goal

# Least epochs and least steps of a training, gammas to try. Steps, because a small table has few of them per epoch.
_PRESETS = {"quick": (10, 500, 6), "standard": (20, 2000, 9), "thorough": (60, 6000, 12)}

# Panels of ``--help``.
_goal = partial(typer.Option, rich_help_panel="Goal")
_choice = partial(typer.Option, rich_help_panel="Route, penalty and gamma")
_network = partial(typer.Option, rich_help_panel="Network")

# Options that say where to read, where to write and what to show: they do not change the model.
_NOT_REPEATED = ("table", "out", "overwrite", "dry_run", "config", "as_json", "address", "scratch", "meet", "report")


def fit(
    call: typer.Context,
    table: options.Table,
    graph: Annotated[str, typer.Option(help="A graph file, or the graph itself: 'S -> A, A -> Y'.", metavar="GRAPH")],
    out: Annotated[Path, typer.Option(help="The model folder to write.", metavar="FOLDER")],
    outcome: options.Outcome = None,
    protected: options.Protected = None,
    context: options.Context = None,
    inputs: options.Inputs = None,
    adjustment: options.Adjustment = None,
    task: options.Task = None,
    max_effect: options.MaxEffect = None,
    vcf: options.ShareLeft = None,
    strict: options.StrictGoal = False,
    tolerance: Annotated[
        float | None,
        _goal(
            help="The paper's way to ask: vary as little as possible, and lose at most this share of what a predictor "
            "without a penalty explains.",
            min=0,
        ),
    ] = None,
    learner: Annotated[
        str, _goal(help="network, boosted or linear; auto compares all three and takes the best for the goal.")
    ] = "auto",
    route: Annotated[
        str,
        _choice(
            help="repair changes a model as little as possible, in seconds; independence, counterfactual, line or "
            "left-out (the protected columns are not looked at) trains along that route, within the tolerance. auto is "
            "repair, or all trained routes with --tolerance. With --gamma or --penalty: independence."
        ),
    ] = "auto",
    gamma: Annotated[float | None, _choice(help="Weight of the penalty.", min=0, max=1e9)] = None,
    measure: Annotated[
        str | None,
        _choice(
            help="What the tolerance is about: loss (squared error or log loss, the default), score (R² or accuracy), "
            "auc or balanced_accuracy."
        ),
    ] = None,
    penalty: Annotated[
        str | None,
        _choice(
            help="residual-hscic, hscic, hscic-paper, circe, hsic or mmd. Default: residual-hscic, or hsic where "
            "nothing is conditioned on."
        ),
    ] = None,
    compare: Annotated[bool, _choice(help="With --gamma, also train without a penalty, to show what it costs.")] = True,
    refit: Annotated[
        bool,
        _choice(
            "--refit",
            help="Train once more on the rows that judged, too. Default: keep the very model that was judged.",
        ),
    ] = False,
    on_violation: Annotated[
        str, _choice(help="raise or warn, where the graph does not certify the statement.")
    ] = "raise",
    preset: Annotated[str, _network(help="quick, standard or thorough: epochs and gammas to try.")] = "standard",
    epochs: Annotated[int | None, _network(help="Instead of the preset's.", min=1)] = None,
    batch_size: Annotated[int, _network(help="Rows of a step.", min=2)] = 256,
    learning_rate: Annotated[float, _network(help="Of Adam.", min=0)] = 3e-3,
    hidden: Annotated[str, _network(help="Widths of the hidden layers.")] = "64,64",
    device: Annotated[str, _network(help="auto, cpu or cuda.")] = "auto",
    seed: options.Seed = 0,
    holdout: Annotated[
        float, options.of_run(help="Share of the rows kept from training, for the audit.", min=0, max=0.9)
    ] = 0.2,
    missing: Annotated[
        str, typer.Option(help="Rows with missing values: drop, impute or error.", rich_help_panel="The table")
    ] = "drop",
    categories: options.Categories = None,
    separator: options.Separator = None,
    columns: options.ColumnNames = None,
    skip: options.Skip = 0,
    na: options.MissingCells = None,
    only_na: options.OnlyMissingCells = False,
    engine: options.EngineName = None,
    workers: options.WorkerCount = None,
    address: options.Address = None,
    scratch: options.Scratch = None,
    meet: options.Meet = None,
    overwrite: options.Overwrite = False,
    dry_run: Annotated[bool, options.of_run("--dry-run", help="Say what was understood and stop.")] = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Find the most accurate predictor that would have said the same had the protected columns been different.

    Without options it meets the limits of ciplearn audit, and says what that costs.

    NAMES are separated by commas; a name with a comma stands in double quotes.

    Example:

      ciplearn fit people.csv --graph graph.txt --outcome income --protected sex,age --out model

      ciplearn fit people.csv --graph graph.txt --outcome income --protected sex --vcf 5% --out model

      ciplearn fit --config fit.yaml --gamma 3

      ciplearn fit 'rows/*.parquet' --graph graph.txt --outcome income --protected sex --engine ray --out model
    """
    from ciplearn._core.listed_folders import check_folder, listed_folder
    from ciplearn._core.memory import put_off

    put_off("scipy.stats")
    from ciplearn.cli.model_folder import write_folder
    from ciplearn.cli.streamed_fit import as_stream, sampled_table, told_apart, train_streamed
    from ciplearn.cli.training import Plan, estimator, refuse_before_training, train
    from ciplearn.cli.training_table import FitRequest, TrainingTable
    from ciplearn.sources.table_file import TableFile

    if tolerance is not None and tolerance > 1:
        note(f"A tolerance of {tolerance:g} allows to lose more than all that is explained; a tenth of it is 0.1.")
    if gamma is not None and tolerance is not None:
        raise InputError(f"Both --gamma {gamma:g} and --tolerance {tolerance:g} were given; pass one of them.")
    options.choice("--preset", preset, _PRESETS)
    options.choice("--route", route, ("auto", "repair", "independence", "counterfactual", "line", "left-out"))
    options.choice("--learner", learner, ("auto", "network", "boosted", "linear"))
    if gamma is not None or penalty is not None or refit:
        if route not in ("auto", "independence"):
            raise InputError(f"--gamma, --penalty and --refit are for the independence route, got --route {route}.")
        route = "independence"
    asked = named_goal(max_effect=max_effect, vcf=vcf, strict=strict, tolerance=tolerance)
    if asked and asked != "tolerance" and route not in ("auto", "repair"):
        raise InputError(f"--{asked} is met by repair, got --route {route}; leave one of them out.")
    options.keep_inputs(out, table, options.graph_file(graph), config)
    check_folder(out, overwrite=overwrite)
    drawn = options.read_graph(graph)
    request = FitRequest(
        graph=drawn,
        outcome=outcome,
        protected=split_names(protected, drawn.nodes),
        context=split_names(context, drawn.nodes),
        inputs=split_names(inputs, drawn.nodes),
        adjustment=split_names(adjustment, drawn.nodes),
        categories=split_names(categories) or (),
        task=task,
        missing=missing,
        holdout=holdout,
        seed=seed,
    )
    source = options.table_files(table, separator, columns, skip, na, only_na)
    stream = as_stream(source, engine)
    work = options.engine(engine, workers, address, scratch, meet)
    if stream is not None:
        rows = told_apart(sampled_table(stream, request, work), stream, work)
    elif isinstance(source, TableFile):
        with source.kept_from_pipe() as kept:
            rows = TrainingTable.read(kept, request)
    # A table beyond memory is trained with a penalty, batch by batch.
    by_goal = stream is None and route in ("auto", "repair") and tolerance is None
    if asked and asked != "tolerance" and not by_goal:
        raise InputError(f"--{asked} needs a table in memory, got one that streams; pass --tolerance, or fewer rows.")
    plan = Plan(
        goal=goal_of(max_effect, vcf, strict) if by_goal else None,
        learner=learner,
        gamma=gamma,
        tolerance=tolerance,
        measure=measure or "loss",
        route=route,
        penalty=penalty,
        on_violation=on_violation,
        compare=compare,
        refit=refit,
        trials=_PRESETS[preset][2],
        network={
            "epochs": epochs or epochs_of(preset, len(rows.training()[0]), batch_size),
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "hidden": _widths(hidden),
            "device": device,
            "early_stopping": True,
        },
    )
    if not as_json:
        describe(rows)
    model = estimator(rows, plan)
    refuse_before_training(rows, plan)
    if dry_run:
        if as_json:
            say_json(rows.description())
        return
    settings = fit_settings(call, rows)
    with listed_folder(out, overwrite=overwrite) as fresh:
        if stream is None:
            trained = train(model, rows, plan)
        else:
            trained = train_streamed(model, rows, plan, stream, work, epochs)
        training = {
            "task": rows.task,
            "outcome": rows.outcome,
            "columns": rows.kinds,
            "table": {**rows.identity, "rows": rows.n_rows},
            "understood": rows.description(),
            "roles": rows.roles.to_dict(),
            "gamma": getattr(trained.model, "gamma_", None),
            "tolerance": plan.allowed,
            "measure": plan.measure,
            "remark": trained.remark,
            "settings": settings,
        }
        if trained.comparison is not None:
            training["comparison"] = trained.comparison.to_dict()
        write_folder(
            fresh,
            trained.model,
            trained.scores,
            trained.models,
            trained.trace,
            rows.held_out,
            training,
            rows.trained_rows(),
        )
    if trained.remark and trained.comparison is None:
        note(trained.remark)
    report = held_out_audit(out, source, seed, max_effect) if by_goal and table.is_file() else None
    if as_json:
        audited = None if report is None else report.audit.to_dict()
        say_json({**result(rows, plan, trained, out), "audit": audited})
    else:
        conclude(rows, trained, report, table, out)


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


def named_goal(**goals: Any) -> str:
    """Return the one goal that was named, as an option is; more than one contradict each other."""
    named = [name.replace("_", "-") for name, value in goals.items() if value]
    if len(named) > 1:
        raise InputError(f"Both --{named[0]} and --{named[1]} were given; ask for one of them.")
    return named[0] if named else ""


def goal_of(max_effect: float | None, vcf: str | None, strict: bool) -> Goal:
    """Return the goal that options name; the usual limits where they name none."""
    from ciplearn.evaluation import Limits
    from ciplearn.routes import ShareOfVCF, Strict, WithinLimits

    if strict:
        return Strict()
    return WithinLimits(Limits(max_effect)) if vcf is None else ShareOfVCF(_share(vcf))


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise InputError(f"--vcf must be a share, got {text!r}; pass for example 5%.") from error


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


def epochs_of(preset: str, rows: int, batch_size: int) -> int:
    """Return the epochs of a preset for so many rows."""
    epochs, steps, _ = _PRESETS[preset]
    return max(epochs, math.ceil(steps / math.ceil(rows / batch_size)))


def _widths(hidden: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(width) for width in hidden.split(",") if width.strip())
    except ValueError:
        widths = (0,)
    if any(width < 1 for width in widths):
        raise InputError(f"--hidden must be whole numbers above zero, got {hidden!r}; pass for example 64,64.")
    return widths
