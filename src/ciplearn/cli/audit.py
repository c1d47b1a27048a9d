"""``ciplearn audit``: what a saved model would have said, had the protected columns been different."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list
from ciplearn.cli import options
from ciplearn.cli.options import join_names, split_names
from ciplearn.cli.output import printable, progress, say, say_json

if TYPE_CHECKING:
    import pandas as pd

    from ciplearn.cli.model_folder import ModelFolder
    from ciplearn.estimators.base import CIPEstimator
    from ciplearn.evaluation import Audit
    from ciplearn.learning import Frontier
    from ciplearn.report import Report
    from ciplearn.scm import StructuralCausalModel
    from ciplearn.sources.table_file import TableFile


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
    max_effect: Annotated[
        float | None,
        typer.Option(help="Exit with code 1 where a paired effect may be above this.", min=0),
    ] = None,
    max_vcf: Annotated[
        float | None, typer.Option(help="Exit with code 1 where the interval of VCF ends above this.", min=0)
    ] = None,
    individuals: Annotated[
        str | None,
        typer.Option(help="Numbers of rows to show, counted from 0. Default: those affected most.", metavar="NUMBERS"),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(help="decision, bias-audit (selection rates and impact ratios by group) or model-card."),
    ] = "decision",
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
    options.choice("--profile", profile, ("decision", "bias-audit", "model-card"))
    rows_to_show = None if individuals is None else _row_numbers(individuals)
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
        "individuals": individuals,
        "max_effect": max_effect,
        "max_vcf": max_vcf,
        "profile": profile,
        "seed": seed,
        "separator": separator,
        "columns": columns,
        "skip": skip or None,
        "na": na,
        "only_na": only_na or None,
    }
    names = [printable(Path(path.name)) for path in (model, table, out)]
    settings = {
        f"ciplearn fit {folder.training['table']['name']} --config fit.json --out {names[0]}": folder.training[
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
        found = _report(folder, source, scm, run_code, effort, split_names(groups), seed, settings)
        report = replace(
            found,
            max_effect=max_effect,
            max_vcf=max_vcf,
            individuals=rows_to_show,
            next_steps=_next_steps(folder, names),
        )
        stream.write(report.to_html(profile).encode())
    if as_json:
        say_json({**report.to_dict(), **_of_profile(report, profile), "file": printable(out)})
    else:
        for sentence in report.summary():
            say(sentence)
        say(f"Written: {printable(out)}")
    limits = {"effect": max_effect, "vcf": max_vcf}
    return int(any(limits.get(check.asks) is not None and not check.holds for check in report.conclusion.checks))


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
    from ciplearn.estimators.preparation import LINE
    from ciplearn.evaluation import audit as measure
    from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
    from ciplearn.report import Report
    from ciplearn.scm import fit_scm
    from ciplearn.scm.scm_file import read_scm

    torch.set_num_threads(1)
    if folder.model.graph is None or folder.model.verdict_ is None:
        raise InputError(f"{folder.path} was trained without a graph; fit it with one to audit it here.")
    judge, every, about, unknown = folder.rows(source)
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
        trials, comparison = folder.trials(), folder.comparison
        # Routes were judged by fit, and baselines are not kept.
        trace = None if comparison is not None else _on_audited_rows(folder, trials, found, judge, effort, seed)
        bar.update()
    training = folder.training
    return Report(
        audit=found,
        model=folder.model,
        rows=judge,
        free=None if folder.is_unconstrained else trials.get(0.0),
        comparison=comparison,
        title=f"Predicting {folder.outcome}, and {as_list(found.verdict.protected)}",
        frontier=trace,
        chosen=None if folder.model.route_ == LINE else training["gamma"],
        rule=_how_trained(folder),
        penalty=_penalty_name(folder.model),
        groups=groups,
        unknown=unknown,
        about_rows=f"Audited on: {about[0].lower() if about.startswith('All') else about[0]}{about[1:]}",
        settings=settings,
    )


def _labelled(folder: ModelFolder, rows: pd.DataFrame) -> pd.DataFrame:
    """Make labels of the outcome a category, whatever they look like: a causal model needs to know."""
    if folder.training["task"] != "classification":
        return rows
    return rows.assign(**{folder.outcome: rows[folder.outcome].astype("category")})


def _on_audited_rows(
    folder: ModelFolder,
    trials: Mapping[float, CIPEstimator],
    found: Audit,
    rows: pd.DataFrame,
    effort: Effort,
    seed: int,
) -> Frontier | None:
    """Measure every trial as the model itself was measured: the same rows, the same imagined ones, one number each."""
    from ciplearn.evaluation import variance_of_counterfactuals
    from ciplearn.evaluation.predictors import Predictor
    from ciplearn.evaluation.scores import predictive_scores
    from ciplearn.learning import Frontier
    from ciplearn.learning.frontier import Point

    points = folder.trace.points
    if not points:
        return None
    # What was trained once more is measured, not the trial that it came from.
    models = {**trials, folder.training["gamma"]: folder.model}
    vcf = variance_of_counterfactuals(
        {str(gamma): model for gamma, model in models.items()},
        found.scm,
        rows,
        found.verdict.protected,
        effort.n_points,
        effort.n_interventions,
        seed,
        context=found.vcf.context,
        inputs=found.inputs,
        n_draws=effort.n_draws,
    )
    measured = []
    for point in points:
        predictor = Predictor(models[point.gamma], found.method, found.inputs)
        scores = predictive_scores(predictor, predictor.in_blocks(rows), rows[folder.outcome])
        loss, score = ("mse", "r2") if "mse" in scores else ("log_loss", "accuracy")
        penalty = {name: value for name, value in point.measures.items() if name == "penalty"}
        own = {"loss": scores[loss], "score": scores[score], **penalty, "vcf": vcf[str(point.gamma)].value}
        measured.append(Point(point.gamma, point.seed, own))
    return Frontier(tuple(measured))


def _next_steps(folder: ModelFolder, names: Sequence[str]) -> dict[str, str]:
    """What to type next, by the conclusion."""
    from ciplearn.cli.model_folder import GRAPH, OPTIONS

    table, training = shlex.quote(names[1]), folder.training
    again = f"ciplearn fit {table} --config {shlex.quote(f'{names[0]}/{OPTIONS}')}"
    tolerance = training["tolerance"]
    stricter = f"--gamma {10 * training['gamma'] or 1:g}" if tolerance is None else f"--tolerance {2 * tolerance:g}"
    return {
        "passes": f"ciplearn check {shlex.quote(f'{names[0]}/{GRAPH}')} --data {table}",
        "fails": f"{again} {stricter} --out stricter",
        "useless": f"{again} --context {shlex.quote(join_names(folder.model.roles_.protected))} --out smaller-context",
    }


def _row_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--individuals must be numbers of rows, got {text!r}; pass for example 12,40.") from error


def _of_profile(report: Report, profile: str) -> dict[str, Any]:
    from ciplearn.report.bias_audit import BiasAudit

    return {"bias_audit": BiasAudit.of(report).to_dict()} if profile == "bias-audit" else {}


def _how_trained(folder: ModelFolder) -> str:
    from ciplearn.estimators.preparation import COUNTERFACTUAL, LINE

    training, model = folder.training, folder.model
    gamma, route = f"here gamma = {training['gamma']:.3g}.", model.route_
    if route == LINE:
        how = (
            "The model lies on the straight line from a predictor on inputs that nothing protected acts on to one "
            "without a constraint."
        )
    elif route == COUNTERFACTUAL:
        how = f"Training adds gamma times the variance of predictions over imagined rows to the loss; {gamma}"
    else:
        how = f"Training adds gamma times a measure of the contrary ({_penalty_name(model)}) to the loss; {gamma}"
    if training["tolerance"] is None:
        return f"{how} Gamma was fixed by hand."
    if "comparison" in training:
        return f"{how} {training['remark']}"
    return (
        f"{how} It is the largest gamma tried that loses at most {training['tolerance']:.3g} of what a predictor "
        f"without a penalty explains, measured by its {training['measure']} on rows that training does not see. "
        f"{training['remark']}".strip()
    )


def _penalty_name(model: CIPEstimator) -> str:
    if model.penalty is not None:
        return type(model.penalty).__name__
    return "ResidualHSCIC" if model.independence_ is not None and model.independence_.given else "HSIC"
