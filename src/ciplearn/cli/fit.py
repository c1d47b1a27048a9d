"""``ciplearn fit``: from a table and a graph to a model folder."""

from __future__ import annotations

import math
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.options import join_names, split_names
from ciplearn.cli.output import note, printable, say, say_json, say_table

if TYPE_CHECKING:
    from ciplearn.cli.training import Plan, Trained
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.routes import Comparison

# Least epochs and least steps of a training, gammas to try. Steps, because a small table has few of them per epoch.
_PRESETS = {"quick": (10, 500, 6), "standard": (20, 2000, 9), "thorough": (60, 6000, 12)}

# Panels of ``--help``.
_choice = partial(typer.Option, rich_help_panel="Penalty and gamma")
_network = partial(typer.Option, rich_help_panel="Network")

# Options that say where to read, where to write and what to show: they do not change the model.
_NOT_REPEATED = ("table", "out", "overwrite", "dry_run", "config", "as_json", "address", "scratch", "meet")


def fit(
    call: typer.Context,
    table: options.Table,
    graph: Annotated[
        str,
        typer.Option(
            help="A graph file, or the graph itself: 'S -> A, A -> Y'.", metavar="GRAPH", rich_help_panel="Roles"
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write.", metavar="FOLDER")],
    overwrite: options.Overwrite = False,
    outcome: options.Outcome = None,
    protected: options.Protected = None,
    context: options.Context = None,
    inputs: options.Inputs = None,
    adjustment: options.Adjustment = None,
    task: options.Task = None,
    gamma: Annotated[float | None, _choice(help="Weight of the penalty.", min=0, max=1e9)] = None,
    tolerance: Annotated[
        float | None,
        _choice(
            help="Search the largest gamma that loses at most this share of what a predictor without a penalty "
            "explains. Default: 0.1.",
            min=0,
        ),
    ] = None,
    route: Annotated[
        str,
        _choice(
            help="auto trains every route to invariance, judges all on other rows and keeps the best within the "
            "tolerance; independence, counterfactual, line or left-out (the protected columns are not looked at) takes "
            "that one. With --gamma or --penalty: independence."
        ),
    ] = "auto",
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
        float, typer.Option(help="Share of the rows kept from training, for the audit.", min=0, max=0.9)
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what was understood and stop.")] = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Train a predictor that would have said the same had the protected columns been different.

    NAMES are separated by commas; a name with a comma stands in double quotes.

    Example:

      ciplearn fit people.csv --graph graph.txt --outcome income --protected sex,age --out model

      ciplearn fit people.csv --graph graph.txt --outcome income --protected sex --tolerance 0.05 --out model

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
    options.choice("--route", route, ("auto", "independence", "counterfactual", "line", "left-out"))
    if gamma is not None or penalty is not None or refit:
        if route not in ("auto", "independence"):
            raise InputError(f"--gamma, --penalty and --refit are for the independence route, got --route {route}.")
        route = "independence"
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
    plan = Plan(
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
        _describe(rows)
    model = estimator(rows, plan)
    refuse_before_training(rows, plan)
    if dry_run:
        if as_json:
            say_json(rows.description())
        return
    settings = _settings(call, rows)
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
            "gamma": trained.model.gamma_,
            "tolerance": plan.allowed,
            "measure": plan.measure,
            "remark": trained.remark,
            "settings": settings,
        }
        if trained.comparison is not None:
            training["comparison"] = _said(trained.comparison)
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
    if as_json:
        say_json(_result(rows, plan, trained, out))
    else:
        _conclude(rows, trained, table, out)


def _said(comparison: Comparison) -> dict[str, Any]:
    """The comparison of routes as JSON-ready data."""
    from ciplearn._core.plain_data import fields_as_data

    return fields_as_data(comparison, "table", "models", "scm", "judge", candidates=comparison.table)


def _settings(call: typer.Context, rows: TrainingTable) -> dict[str, Any]:
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
    return {name: value for name, value in settings.items() if name not in _NOT_REPEATED and value is not None}


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


def _describe(rows: TrainingTable) -> None:
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


def _result(rows: TrainingTable, plan: Plan, trained: Trained, out: Path) -> dict[str, Any]:
    return {
        "folder": str(out),
        "gamma": trained.model.gamma_,
        "tolerance": plan.allowed,
        "measure": plan.measure,
        "scores": trained.scores,
        "trials": trained.trace.table.drop(columns="seed").to_dict(orient="records") if trained.trace.points else [],
        "remark": trained.remark,
        "understood": rows.description(),
        "comparison": None if trained.comparison is None else _said(trained.comparison),
    }


def _show_routes(comparison: Comparison) -> None:
    """Each route where it does best within the tolerance, or nearest to it, beside the baselines."""
    from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LINE
    from ciplearn.routes.candidates import FREE

    titles = ("route", "loss", "score", "VCF left", "within tolerance", "rests on")
    table = comparison.table
    free = table.loc[table["kind"] == FREE, "vcf"].iloc[0]
    shown = table[(table["name"] == comparison.chosen) | ~table["kind"].isin((INDEPENDENCE, COUNTERFACTUAL, LINE))]
    best = table[table["allowed"]].sort_values("vcf").groupby("kind", sort=False).head(1)
    nearest = table[~table["kind"].isin(best["kind"])].sort_values("loss").groupby("kind", sort=False).head(1)
    rows = table[table["name"].isin([*shown["name"], *best["name"], *nearest["name"]])]
    cells = [
        (
            f"{'> ' if row['name'] == comparison.chosen else '  '}{row['name']}",
            f"{row['loss']:.4g}",
            f"{row['score']:.3f}",
            "unknown" if row["vcf"] != row["vcf"] or not free else f"{100 * row['vcf'] / free:.1f} %",
            "yes" if row["allowed"] else "no",
            str(row["rests_on"]),
        )
        for _, row in rows.iterrows()
    ]
    say_table([titles, *cells])
    for remark in comparison.notes:
        note(remark)
    say(comparison.reason)


def _conclude(rows: TrainingTable, trained: Trained, table: Path, out: Path) -> None:
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
    again = shlex.quote(printable(table)) if table.is_file() else "TABLE"
    folder = shlex.quote(printable(out))
    say(f"Written: {printable(out)}. Next: ciplearn audit {folder} {again} --out report.html")
