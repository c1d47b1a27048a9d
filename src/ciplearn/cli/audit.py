"""``ciplearn audit``: what a saved model would have said, had the protected columns been different."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.names import split_names
from ciplearn.cli.output import say, say_json

if TYPE_CHECKING:
    from ciplearn.report import Report

# Points, interventions a point, draws of open noise, rows for the causal model.
_PRESETS = {"quick": (200, 50, 10, 3000), "standard": (500, 100, 10, 5000), "thorough": (1000, 500, 100, 50_000)}

_EFFORT = "Effort"


def audit(
    model: Annotated[Path, typer.Argument(help="A folder that ciplearn fit has written.", metavar="MODEL_DIR")],
    table: Annotated[Path, typer.Argument(help="A CSV, TSV or Parquet file with the outcome.", metavar="TABLE")],
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
        int | None, typer.Option(help="Values of the protected columns a row.", min=2, rich_help_panel=_EFFORT)
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
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Measure a model and write a page about it: graph, cost of invariance, counterfactuals, test, groups, limits.

    Where TABLE is the training table, it is read as in training, and only rows that training never saw are judged.

    Example:

      ciplearn audit model people.csv --out report.html

      ciplearn audit model people.csv --scm known.yaml --preset thorough --max-vcf 0.01
    """
    from ciplearn._core.files import whole_file
    from ciplearn.cli.auditing import Effort, audited
    from ciplearn.cli.model_folder import ModelFolder

    if preset not in _PRESETS:
        raise InputError(f"--preset must be one of {', '.join(_PRESETS)}, got {preset!r}; name one of these.")
    asked = (points, interventions, draws, scm_rows)
    effort = Effort(*(given or default for given, default in zip(asked, _PRESETS[preset], strict=True)))
    folder = ModelFolder.read(model)
    source = folder.opened(options.table_file(table, separator, columns, skip, na))
    options.keep_inputs(out, table, model, scm, config)
    own: dict[str, Any] = {
        "points": effort.n_points,
        "interventions": effort.n_interventions,
        "draws": effort.n_draws,
        "scm_rows": effort.scm_rows,
        "scm": None if scm is None else scm.name,
        "run_code": run_code or None,
        "groups": groups,
        "seed": seed,
        "separator": separator,
        "columns": columns,
        "skip": skip or None,
        "na": na,
    }
    settings = {
        f"ciplearn fit {folder.training['table']['name']} --config fit.yaml --out {model.name}": folder.training[
            "settings"
        ],
        f"ciplearn audit {model.name} {table.name} --config audit.yaml --out {out.name}": {
            name: value for name, value in own.items() if value is not None
        },
    }
    # Opened first: a place that cannot be written to is found out before the work is done.
    with whole_file(out) as stream:
        report = audited(folder, source, scm, run_code, effort, split_names(groups), seed, settings)
        stream.write(report.to_html().encode())
    if as_json:
        say_json(_result(report, out))
    else:
        for sentence in report.summary():
            say(sentence)
        say(f"Written: {out}")
    return int(max_vcf is not None and report.audit.vcf.interval[1] > max_vcf)


def _result(report: Report, out: Path) -> dict[str, Any]:
    trials = report.trials()
    return {
        **report.audit.to_dict(),
        "summary": report.summary(),
        "verdict": report.audit.verdict.to_dict(),
        "trials": [] if trials is None else trials.to_dict(orient="records"),
        "groups": [vars(group) for group in report.group_scores()],
        "file": str(out),
    }
