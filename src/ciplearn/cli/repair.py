"""``ciplearn repair``: a model that exists already, changed as little as possible until it meets a goal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.fit import conclude, describe, fit_settings, held_out_audit
from ciplearn.cli.output import progress
from ciplearn.cli.parsing import with_groups

if TYPE_CHECKING:
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.evaluation.any_model import Foreign
    from ciplearn.routes import Comparison, Goal


@with_groups
def repair(
    call: typer.Context,
    table: options.Table,
    graph: options.NeededGraph,
    out: options.NewFolder,
    roles: options.TaskOptions,
    approved: options.ModelOptions,
    wish: options.GoalOptions,
    reading: options.ReadingOptions,
    report: Annotated[Path | None, typer.Option(help="Also write a page, before and after.", metavar="FILE")] = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    *,
    answer: options.RunOptions,
) -> None:
    """Change a model as little as possible, so that it says the same had the protected columns been different.

    The model is asked and never trained. An ONNX file is kept in the folder; a model of a Python module is named again
    with --predictor wherever the folder is used.

    For example:
      ciplearn repair people.csv --predictor trees:model --config model/fit.json --out repaired
    """
    from ciplearn._core.files import write_file
    from ciplearn._core.listed_folders import check_folder, listed_folder
    from ciplearn.cli.model_folder import lacks_its_model, write_folder
    from ciplearn.cli.training import Trained
    from ciplearn.cli.training_table import TrainingTable
    from ciplearn.learning import Frontier
    from ciplearn.sources.table_file import TableFile

    options.named_goal(**vars(wish))
    options.keep_inputs(out, table, options.graph_file(graph), answer.config)
    check_folder(out, overwrite=overwrite)
    request = roles.request(options.read_graph(graph), seed=seed)
    foreign = approved.foreign(request.inputs, request.graph.observed)
    if foreign is None or None not in (approved.predictor, approved.onnx):
        raise InputError("Repair needs one model, got two or none; pass --predictor or --onnx.")
    if request.inputs is None:
        request = replace(request, inputs=foreign.inputs)
    source = reading.table(table)
    if not isinstance(source, TableFile):
        raise InputError(f"Repair takes one table in memory, got several files at {table}; pass one of them.")
    rows = TrainingTable.read(source, request)
    if not answer.as_json:
        describe(rows)
    with progress("repairing", "step", None) as bar:
        comparison = _repaired(foreign, rows, wish.goal(), seed, bar)
    model = comparison.model
    if approved.onnx is not None:
        model = replace(model, asked=replace(model.asked, model=Path(approved.onnx)))
    trained = Trained(model, {}, Frontier(()), comparison.reason, {}, comparison)
    with listed_folder(out, overwrite=overwrite) as fresh:
        write_folder(fresh, rows, trained, fit_settings(call, rows))
    page = held_out_audit(out, source, seed, wish.max_effect, comparison.model)
    if page is not None and report is not None:
        write_file(report, page.to_html())
    named = approved.predictor if lacks_its_model(out) else None
    conclude(rows, trained, page, table, out, as_json=answer.as_json, predictor=named)


def _repaired(foreign: Foreign, rows: TrainingTable, goal: Goal, seed: int, bar: Any) -> Comparison:
    """Judge every strength on halves of the rows, and take the one that the goal asks for."""
    from ciplearn.estimators import CIPClassifier, CIPRegressor, Problem
    from ciplearn.estimators.criteria import judging_splits
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
