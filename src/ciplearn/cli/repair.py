"""``ciplearn repair``: a model that exists already, changed as little as possible until it meets a goal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.fit import fit_settings, goal_of, held_out_audit, named_goal
from ciplearn.cli.fit_shown import describe
from ciplearn.cli.options import split_names
from ciplearn.cli.output import note, printable, progress, say, say_json

if TYPE_CHECKING:
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.routes import Comparison, Goal


def repair(
    call: typer.Context,
    table: options.Table,
    graph: Annotated[str, typer.Option(help="A graph file, or the graph itself.", metavar="GRAPH")],
    out: Annotated[Path, typer.Option(help="The model folder to write.", metavar="FOLDER")],
    predictor: options.PredictorName = None,
    onnx: options.OnnxFile = None,
    overwrite: options.Overwrite = False,
    report: Annotated[Path | None, typer.Option(help="Also write a page, before and after.", metavar="FILE")] = None,
    outcome: options.Outcome = None,
    protected: options.Protected = None,
    inputs: options.Inputs = None,
    task: options.Task = None,
    max_effect: options.MaxEffect = None,
    vcf: options.ShareLeft = None,
    strict: options.StrictGoal = False,
    seed: options.Seed = 0,
    categories: options.Categories = None,
    separator: options.Separator = None,
    columns: options.ColumnNames = None,
    skip: options.Skip = 0,
    na: options.MissingCells = None,
    only_na: options.OnlyMissingCells = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Change a model as little as possible, so that it says the same had the protected columns been different.

    The model is asked and never trained. An ONNX file is kept in the folder; a model of a Python module is named again
    with --predictor wherever the folder is used.

    Example:

      ciplearn repair people.csv --predictor trees:model --graph graph.txt --outcome income --protected sex --out model
    """
    from ciplearn._core.listed_folders import check_folder, listed_folder
    from ciplearn.cli.model_folder import write_folder
    from ciplearn.cli.training_table import FitRequest, TrainingTable
    from ciplearn.evaluation.any_model import from_module, from_onnx
    from ciplearn.learning import Frontier
    from ciplearn.sources.table_file import TableFile

    named_goal(max_effect=max_effect, vcf=vcf, strict=strict)
    if (predictor is None) == (onnx is None):
        raise InputError("Repair needs one model, got two or none; pass --predictor or --onnx.")
    options.keep_inputs(out, table, options.graph_file(graph), config)
    check_folder(out, overwrite=overwrite)
    drawn = options.read_graph(graph)
    read = split_names(inputs, drawn.nodes)
    foreign = from_module(predictor) if predictor is not None else from_onnx(Path(str(onnx)), read, drawn.observed)
    request = FitRequest(
        graph=drawn,
        outcome=outcome,
        protected=split_names(protected, drawn.nodes),
        inputs=read or foreign.inputs,
        categories=split_names(categories) or (),
        task=task,
        seed=seed,
    )
    source = options.table_files(table, separator, columns, skip, na, only_na)
    if not isinstance(source, TableFile):
        raise InputError(f"Repair takes one table in memory, got several files at {table}; pass one of them.")
    rows = TrainingTable.read(source, request)
    if not as_json:
        describe(rows)
    with progress("repairing", "step", None) as bar:
        comparison = _repaired(foreign, rows, goal_of(max_effect, vcf, strict), seed, bar)
    model = comparison.model
    if onnx is not None:
        model = replace(model, asked=replace(model.asked, model=Path(onnx)))
    training = {
        "task": rows.task,
        "outcome": rows.outcome,
        "columns": rows.kinds,
        "table": {**rows.identity, "rows": rows.n_rows},
        "understood": rows.description(),
        "roles": rows.roles.to_dict(),
        "gamma": None,
        "tolerance": None,
        "measure": "loss",
        "remark": comparison.reason,
        "settings": fit_settings(call, rows),
        "comparison": comparison.to_dict(),
    }
    with listed_folder(out, overwrite=overwrite) as fresh:
        write_folder(fresh, model, {}, {}, Frontier(()), rows.held_out, training, rows.trained_rows())
    page = held_out_audit(out, source, seed, max_effect, comparison.model)
    if page is not None and report is not None:
        from ciplearn._core.files import write_file

        write_file(report, page.to_html())
    if as_json:
        audited = None if page is None else page.audit.to_dict()
        say_json({"folder": str(out), "comparison": comparison.to_dict(), "audit": audited})
        return
    say(comparison.reason)
    for remark in comparison.notes:
        note(remark)
    if page is not None:
        say(f"On rows kept for the audit: {page.summary()[0]}")
    say(f"Written: {printable(out)}.")


def _repaired(foreign: Any, rows: TrainingTable, goal: Goal, seed: int, bar: Any) -> Comparison:
    """Judge every strength on halves of the rows, and take the one that the goal asks for."""
    from ciplearn.estimators import CIPClassifier, CIPRegressor, Problem
    from ciplearn.estimators.splits import judging_splits
    from ciplearn.evaluation.any_model import Numbers, Probabilities
    from ciplearn.routes.comparison import compared
    from ciplearn.routes.repaired import RepairRoute

    X, y = rows.training()
    problem = Problem(X.assign(**{rows.outcome: y}), rows.request.graph, rows.roles, rows.task)
    labels = y if problem.is_classification else None
    model = Numbers(foreign) if labels is None else Probabilities(foreign, sorted(set(labels)))
    splits = judging_splits(X, y, 0.5, seed, labels, 2, 2)
    network = CIPRegressor() if labels is None else CIPClassifier()
    return compared(problem, network, {"model": model}, [RepairRoute()], goal, splits, seed=seed, verbose=bar)
