"""``ciplearn audit``: what a saved model would have said, had the protected columns been different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list
from ciplearn.cli import options
from ciplearn.cli.options import split_names
from ciplearn.cli.output import printable, progress, say, say_json

if TYPE_CHECKING:
    import pandas as pd

    from ciplearn.cli.model_folder import ModelFolder
    from ciplearn.cli.tables import TableFile
    from ciplearn.estimators.base import CIPEstimator
    from ciplearn.learning import Frontier
    from ciplearn.report import Report
    from ciplearn.scm import StructuralCausalModel


@dataclass(frozen=True)
class Effort:
    """How much to compute: points, interventions per point, draws of open noise, rows for the causal model."""

    n_points: int
    n_interventions: int
    n_draws: int
    scm_rows: int


_PRESETS = {
    "quick": Effort(200, 50, 10, 3000),
    "standard": Effort(500, 100, 10, 5000),
    "thorough": Effort(1000, 500, 100, 50_000),
}

# The trials are compared with each other, which takes fewer draws than a figure to quote.
_FOR_TRIALS = Effort(200, 50, 10, 0)

_EFFORT = "Effort"


def audit(
    model: Annotated[Path, typer.Argument(help="A folder that ciplearn fit has written.", metavar="MODEL_DIR")],
    table: options.Table,
    out: Annotated[Path, typer.Option(help="The page to write.", metavar="FILE")] = Path("report.html"),
    scm: Annotated[
        Path | None,
        typer.Option(
            help="A causal model that you know: formulas in YAML, TOML or JSON, or Python with --run-code. Default: "
            "one is estimated from the graph and the table.",
            metavar="FILE",
        ),
    ] = None,
    run_code: Annotated[bool, typer.Option("--run-code", help="Run the Python file of --scm.")] = False,
    groups: Annotated[
        str | None, typer.Option(help="Columns to show scores by. Default: the protected ones.", metavar="NAMES")
    ] = None,
    max_vcf: Annotated[
        float | None, typer.Option(help="Exit with code 1 where the interval of VCF ends above this.", min=0)
    ] = None,
    preset: Annotated[str, typer.Option(help="quick, standard or thorough.", rich_help_panel=_EFFORT)] = "standard",
    points: Annotated[
        int | None, typer.Option(help="Rows whose counterfactuals are imagined.", min=2, rich_help_panel=_EFFORT)
    ] = None,
    interventions: Annotated[
        int | None, typer.Option(help="Values of the protected columns per row.", min=2, rich_help_panel=_EFFORT)
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Draws of what a row leaves open.", min=1, rich_help_panel=_EFFORT)
    ] = None,
    scm_rows: Annotated[
        int | None, typer.Option(help="Rows the causal model is estimated from.", min=20, rich_help_panel=_EFFORT)
    ] = None,
    seed: options.Seed = 0,
    separator: options.Separator = None,
    columns: options.ColumnNames = None,
    skip: options.Skip = 0,
    na: options.MissingCells = None,
    only_na: options.OnlyMissingCells = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Measure a model and write a page about it: graph, cost of invariance, counterfactuals, test, groups, limits.

    TABLE has the outcome too. Where it is the training table, it is read as in training, and only rows that training
    never saw are judged.

    Example:

      ciplearn audit model people.csv --out report.html

      ciplearn audit model people.csv --scm known.yaml --preset thorough --max-vcf 0.01
    """
    from ciplearn._core.files import whole_file
    from ciplearn.cli.model_folder import ModelFolder

    options.choice("--preset", preset, _PRESETS)
    asked = {"n_points": points, "n_interventions": interventions, "n_draws": draws, "scm_rows": scm_rows}
    effort = replace(_PRESETS[preset], **{name: value for name, value in asked.items() if value is not None})
    options.keep_inputs(out, table, model, scm, config)
    folder = ModelFolder.read(model)
    own: dict[str, Any] = {
        "points": effort.n_points,
        "interventions": effort.n_interventions,
        "draws": effort.n_draws,
        "scm_rows": effort.scm_rows,
        "scm": None if scm is None else printable(Path(scm.name)),
        "run_code": run_code or None,
        "groups": groups,
        "seed": seed,
        "separator": separator,
        "columns": columns,
        "skip": skip or None,
        "na": na,
        "only_na": only_na or None,
    }
    names = [printable(Path(path.name)) for path in (model, table, out)]
    settings = {
        f"ciplearn fit {folder.training['table']['name']} --config fit.yaml --out {names[0]}": folder.training[
            "settings"
        ],
        f"ciplearn audit {names[0]} {names[1]} --config audit.yaml --out {names[2]}": {
            name: value for name, value in own.items() if value is not None
        },
    }
    with (
        options.table_file(table, separator, columns, skip, na, only_na).kept_from_pipe() as kept,
        # Opened first: a place that cannot be written to is found out before the work is done.
        whole_file(out) as stream,
    ):
        source = folder.as_in_training(kept)
        report = _report(folder, source, scm, run_code, effort, split_names(groups), seed, settings)
        stream.write(report.to_html().encode())
    if as_json:
        say_json(_result(report, out))
    else:
        for sentence in report.summary():
            say(sentence)
        say(f"Written: {printable(out)}")
    return int(max_vcf is not None and report.audit.vcf.interval[1] > max_vcf)


def _report(
    folder: ModelFolder,
    source: TableFile,
    scm_file: Path | None,
    run_code: bool,
    effort: Effort,
    groups: Sequence[str] | None,
    seed: int,
    settings: Mapping[str, Mapping[str, Any]],
) -> Report:
    """Measure a saved model on a table."""
    import torch

    from ciplearn._core.random import as_generator
    from ciplearn.evaluation import audit as measure
    from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
    from ciplearn.report import Report
    from ciplearn.scm import fit_scm
    from ciplearn.scm.scm_file import read_scm

    torch.set_num_threads(1)
    if folder.model.graph is None or folder.model.verdict_ is None:
        raise InputError(f"{folder.path} was trained without a graph; fit it with one to audit it here.")
    judge, every, about = folder.rows(source)
    judge, every = _labelled(folder, judge), _labelled(folder, every)
    with progress("causal model", "step", total=3) as bar:
        if scm_file is None:
            learnt_from = sample_with_every_label(every, effort.scm_rows, as_generator(seed))
            scm: StructuralCausalModel = fit_scm(folder.model.graph, learnt_from, None, seed)

        else:
            scm = read_scm(scm_file, folder.model.graph, run_code=run_code)
        bar.update()
        bar.set_description_str("counterfactuals")
        found = measure(
            folder.model,
            scm,
            judge,
            # On the graph as it was drawn: an estimated model has its own version of latent nodes.
            verdict=folder.model.verdict_,
            n_points=effort.n_points,
            n_interventions=effort.n_interventions,
            n_draws=effort.n_draws,
            random_state=seed,
        )
        bar.update()
        bar.set_description_str("gammas tried")
        trace = _with_vcf(folder, scm, judge, found.verdict.protected, seed)
        bar.update()
    training = folder.training
    return Report(
        audit=found,
        model=folder.model,
        rows=judge,
        title=f"Predicting {folder.outcome}, and {as_list(found.verdict.protected)}",
        frontier=trace,
        chosen=training["gamma"],
        rule=_rule(training),
        penalty=_penalty_name(folder.model),
        groups=groups,
        about_rows=f"Audited on: {about[0].lower() if about.startswith('All') else about[0]}{about[1:]}",
        settings=settings,
    )


def _labelled(folder: ModelFolder, rows: pd.DataFrame) -> pd.DataFrame:
    """Make labels of the outcome a category, whatever they look like: a causal model needs to know."""
    if folder.training["task"] != "classification":
        return rows
    return rows.assign(**{folder.outcome: rows[folder.outcome].astype("category")})


def _with_vcf(
    folder: ModelFolder, scm: StructuralCausalModel, rows: pd.DataFrame, protected: Sequence[str], seed: int
) -> Frontier | None:
    """Add the variance of counterfactuals to the trace: one set of counterfactual rows for all models."""
    from ciplearn.evaluation import variance_of_counterfactuals
    from ciplearn.learning import Frontier
    from ciplearn.learning.frontier import Point

    points = folder.trace.points
    if not points:
        return None
    inputs = [column for column in rows.columns if column != folder.outcome]
    found = variance_of_counterfactuals(
        {str(place): model for place, model in enumerate(folder.trials().values())},
        scm,
        rows,
        protected,
        _FOR_TRIALS.n_points,
        _FOR_TRIALS.n_interventions,
        seed,
        inputs=inputs,
        n_draws=_FOR_TRIALS.n_draws,
    )
    return Frontier(
        tuple(
            Point(point.gamma, point.seed, {**point.measures, "vcf": vcf.value})
            for point, vcf in zip(points, found.values(), strict=True)
        )
    )


def _rule(training: Mapping[str, Any]) -> str:
    if training["tolerance"] is None:
        return "Gamma was fixed by hand."
    return (
        f"It is the largest gamma tried that loses at most {training['tolerance']:.3g} of what a predictor without a "
        f"penalty explains, measured by its {training['measure']} on rows that training does not see. "
        f"{training['remark']}".strip()
    )


def _penalty_name(model: CIPEstimator) -> str:
    if model.penalty is not None:
        return type(model.penalty).__name__
    return "ResidualHSCIC" if model.independence_ is not None and model.independence_.given else "HSIC"


def _result(report: Report, out: Path) -> dict[str, Any]:
    trials = report.trials()
    return {
        **report.audit.to_dict(),
        "summary": report.summary(),
        "verdict": report.audit.verdict.to_dict(),
        "trials": [] if trials is None else trials.to_dict(orient="records"),
        "groups": [vars(group) for group in report.group_scores()],
        "file": printable(out),
    }
