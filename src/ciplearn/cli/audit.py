"""``ciplearn audit``: what a model would have said, had the protected columns been different."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.options import join_names, split_names
from ciplearn.cli.output import printable, say, say_json

if TYPE_CHECKING:
    from ciplearn.causal import CausalGraph
    from ciplearn.cli.audited import Audited
    from ciplearn.cli.model_folder import AnyTable, ModelFolder
    from ciplearn.evaluation.any_model import Foreign
    from ciplearn.report import Report


@dataclass(frozen=True)
class Effort:
    """How much to compute: points, interventions per point, draws, rows for the causal model, graphs to doubt."""

    n_points: int
    n_interventions: int
    n_draws: int
    scm_rows: int
    doubt: int

    @classmethod
    def of(cls, preset: str, **asked: Any) -> Effort:
        """Take a preset, and what was asked for beside it."""
        return replace(_PRESETS[preset], **{name: value for name, value in asked.items() if value is not None})


_PRESETS = {
    "quick": Effort(200, 50, 10, 3000, 0),
    "standard": Effort(500, 100, 10, 5000, 20),
    "thorough": Effort(1000, 500, 100, 50_000, 200),
}

# Options and arguments that name files and folders.
_FILES = ("model", "table", "scm", "config", "out", "onnx", "predictions")

# Ways to name a model, and roles that a folder brings along.
_MODELS = ("predictor", "onnx", "predictions")
_ROLES = ("outcome", "protected", "context", "inputs", "adjustment", "task", "categories")

# Options that say where to read, where to write and what to show.
_NOT_REPEATED = ("model", "table", "out", "config", "as_json", "preset")

# Rows that are shown where nobody has named some, and predictions cannot tell which are affected most.
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class AuditCall:
    """What was typed: the table, where roles come from, how much to compute.

    Attributes
    ----------
    table : Path
    folder : ModelFolder, optional
    graph : CausalGraph, optional
        Another graph than that of the folder.
    effort : Effort
    individuals : list of int, optional
        Numbers of rows to show.
    params : mapping
        All options, as they were typed.
    """

    table: Path
    folder: ModelFolder | None
    graph: CausalGraph | None
    effort: Effort
    individuals: list[int] | None
    params: Mapping[str, Any]

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> AuditCall:
        """Read the options that ``audit`` and ``imagine`` share."""
        from ciplearn.cli.model_folder import ModelFolder

        # Older typers leave the names of files in a context as text.
        named_files = {name: Path(params[name]) for name in _FILES if params.get(name) is not None}
        params = {**params, **named_files}
        options.choice("--preset", params["preset"], _PRESETS)
        places = [params[name] for name in ("model", "table") if params[name] is not None]
        named = [name for name in _MODELS if params.get(name) is not None]
        if len(named) > 1:
            raise InputError(f"Both {' and '.join(f'--{name}' for name in named)} were given; audit one at a time.")
        graph = None if params["graph"] is None else options.read_graph(params["graph"])
        if not places or (len(places) == 1 and (graph is None or (not named and "predictor" in params))):
            raise InputError(
                f"An audit needs MODEL_DIR and TABLE, got {' '.join(map(str, places)) or 'none'}; without MODEL_DIR "
                "pass --graph, the roles, and one of --predictor, --onnx and --predictions."
            )
        folder = ModelFolder.read(places[0]) if len(places) == 2 else None
        if folder is not None and params.get("strength") is not None:
            folder = folder.at(params["strength"])
        typed = [name for name in _ROLES if params[name] is not None and (name != "inputs" or not named)]
        if folder is not None and typed:
            raise InputError(f"{places[0]} has its roles already, got --{typed[0]} too; leave one of them out.")
        return cls(
            places[-1],
            folder,
            graph,
            Effort.of(
                params["preset"],
                n_points=params["points"],
                n_interventions=params["interventions"],
                n_draws=params["draws"],
                scm_rows=params["scm_rows"],
                doubt=params.get("doubt"),
            ),
            _row_numbers(params["individuals"]),
            params,
        )

    @contextmanager
    def opened(self) -> Iterator[AnyTable]:
        """Yield the table as it is described, or as training has read it."""
        reading = [self.params[name] for name in ("separator", "columns", "skip", "na", "only_na")]
        with options.table_files(self.table, *reading).kept_from_pipe() as kept:
            yield kept if self.folder is None else self.folder.as_in_training(kept)

    def subject(self, source: AnyTable, foreign: Foreign | None) -> Audited:
        """Bring together the model, its roles and the rows that judge it."""
        from ciplearn._core.memory import give_back_what_is_freed
        from ciplearn.cli.audited import Audited
        from ciplearn.cli.training_table import FitRequest

        give_back_what_is_freed()

        positive = self.params.get("positive")
        if self.folder is not None:
            return Audited.of_folder(self.folder, source, self.graph, foreign, positive)
        if self.graph is None or foreign is None:
            raise InputError("Without MODEL_DIR an audit needs --graph and a model; pass both.")
        nodes, given = self.graph.nodes, self.params
        request = FitRequest(
            graph=self.graph,
            outcome=given["outcome"],
            protected=split_names(given["protected"], nodes),
            context=split_names(given["context"], nodes),
            inputs=split_names(given["inputs"], nodes),
            adjustment=split_names(given["adjustment"], nodes),
            categories=split_names(given["categories"]) or (),
            task=given["task"],
            seed=given["seed"],
        )
        return Audited.of_table(source, request, foreign, positive)

    @property
    def places(self) -> list[Path]:
        """The folder, if any, and the table."""
        return [self.table] if self.folder is None else [self.folder.path, self.table]

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        drawn = self.params["graph"]
        graph = None if drawn is None else options.graph_file(drawn)
        return [*self.places, graph, self.params["scm"], self.params["config"]]

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns that were named as inputs, in their order."""
        return split_names(self.params["inputs"], self.known_columns)

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns that a model may read."""
        if self.graph is not None:
            return self.graph.observed
        return () if self.folder is None else tuple(self.folder.kinds)

    @property
    def graph_name(self) -> str:
        """The graph as it was typed, for commands to come."""
        from ciplearn.cli.model_folder import GRAPH

        if self.params["graph"] is not None:
            return shlex.quote(self.params["graph"])
        return shlex.quote("GRAPH" if self.folder is None else f"{self.folder.path.name}/{GRAPH}")

    @property
    def options(self) -> dict[str, Any]:
        """The options that repeat it, in the form of an option file."""
        effort = {"points": "n_points", "interventions": "n_interventions", "draws": "n_draws"}
        effort |= {"scm_rows": "scm_rows", "doubt": "doubt"}
        given = {
            name: printable(Path(value.name)) if isinstance(value, Path) else value
            for name, value in self.params.items()
            if name not in _NOT_REPEATED and _was_said(value)
        }
        return given | {name: getattr(self.effort, field) for name, field in effort.items()}

    def fixed_individuals(self, subject: Audited) -> list[Any]:
        """The rows to show where they cannot depend on predictions: those asked for, or the first."""
        return self.individuals or subject.rows.index[:_SHOWN].tolist()


def audit(
    call: typer.Context,
    model: options.ModelOrTable = None,
    table: options.TableAfterModel = None,
    out: Annotated[Path, typer.Option(help="The page to write.", metavar="FILE")] = Path("report.html"),
    predictor: options.PredictorName = None,
    onnx: options.OnnxFile = None,
    predictions: options.PredictionsFile = None,
    positive: options.Positive = None,
    graph: options.Graph = None,
    outcome: options.Outcome = None,
    protected: options.Protected = None,
    context: options.Context = None,
    inputs: options.Inputs = None,
    adjustment: options.Adjustment = None,
    task: options.Task = None,
    scm: options.KnownModel = None,
    run_code: options.RunCode = False,
    groups: Annotated[
        str | None, typer.Option(help="Columns to show scores by. Default: the protected ones.", metavar="NAMES")
    ] = None,
    max_effect: options.MaxEffect = None,
    max_vcf: Annotated[
        float | None, typer.Option(help="The most that VCF may be, up to the end of its interval.", min=0)
    ] = None,
    strength: options.Strength = None,
    gate: Annotated[bool, typer.Option(help="Exit with code 1 where the model does not pass.")] = True,
    individuals: options.Individuals = None,
    profile: Annotated[
        str,
        typer.Option(help="decision, bias-audit (selection rates and impact ratios by group) or model-card."),
    ] = "decision",
    preset: options.Preset = "standard",
    points: options.Points = None,
    interventions: options.Interventions = None,
    draws: options.Draws = None,
    scm_rows: options.ScmRows = None,
    doubt: options.Doubt = None,
    seed: options.Seed = 0,
    categories: options.Categories = None,
    separator: options.Separator = None,
    columns: options.ColumnNames = None,
    skip: options.Skip = 0,
    na: options.MissingCells = None,
    only_na: options.OnlyMissingCells = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Measure a model and write a page about it: does it pass, effects, groups, cost, doubts, individuals, reasons.

    TABLE has the outcome too. Where it is the training table, it is read as in training. Rows that trained are known
    again in any table, counted and left out. Any other model is audited by its name, its ONNX file or its predictions;
    with MODEL_DIR, on the same rows and beside that model.

    Example:

      ciplearn audit model people.csv --out report.html

      ciplearn audit people.csv --predictor trees:model --graph graph.txt --outcome income --protected sex

      ciplearn audit model people.csv --onnx trees.onnx
    """
    from ciplearn._core.columns import CLASSIFICATION
    from ciplearn._core.files import whole_file
    from ciplearn.evaluation.conclusion import PASSES, Limits

    options.choice("--profile", profile, ("decision", "bias-audit", "model-card"))
    # Options that the body does not name are read from `call.params` by `AuditCall.of`, which two commands share.
    asked = AuditCall.of(call.params)
    options.keep_inputs(out, *asked.files, onnx, predictions)
    with (
        asked.opened() as source,
        # Opened first: a place that cannot be written to is found out before the work is done.
        whole_file(out) as stream,
    ):
        subject = asked.subject(source, _foreign(asked, predictor, onnx, predictions))
        if max_effect is not None and max_effect > 1 and subject.task == CLASSIFICATION:
            raise InputError(
                f"--max-effect is of a probability here, which cannot move by {max_effect:g}; pass 0.05 for 5 points."
            )
        # Predictions that were written down cannot be asked about rows of other graphs.
        effort = asked.effort if predictions is None else replace(asked.effort, doubt=0)
        found = subject.report(
            effort, seed, scm, run_code=run_code, groups=split_names(groups), limits=Limits(max_effect, max_vcf)
        )
        report = replace(
            found,
            # The rows that are affected most are known only when all were asked about.
            individuals=asked.individuals if predictions is None else asked.fixed_individuals(subject),
            settings=_settings(asked, out),
            next_steps=_next_steps(subject, asked),
        )
        stream.write(report.to_html(profile).encode())
    if as_json:
        say_json({**report.to_dict(), **_of_profile(report, profile), "file": printable(out)})
    else:
        for sentence in report.summary():
            say(sentence)
        say(f"Written: {printable(out)}")
    return int(gate and report.conclusion.state != PASSES)


def _foreign(asked: AuditCall, predictor: str | None, onnx: Path | None, predictions: Path | None) -> Foreign | None:
    """The model that was named instead of that of the folder."""
    from ciplearn.cli.imagine import from_predictions
    from ciplearn.evaluation.any_model import from_module, from_onnx

    if predictor is not None:
        return from_module(predictor)
    if onnx is not None:
        return from_onnx(onnx, asked.inputs, asked.known_columns)
    return None if predictions is None else from_predictions(predictions, asked.inputs)


def _settings(asked: AuditCall, out: Path) -> dict[str, dict[str, Any]]:
    """What repeats the audit, and the training before it."""
    folder, words = asked.folder, [printable(Path(path.name)) for path in asked.places]
    audited = {f"ciplearn audit {' '.join(words)} --config audit.yaml --out {printable(Path(out.name))}": asked.options}
    if folder is None:
        return audited
    trained = f"ciplearn fit {folder.training['table']['name']} --config fit.json --out {words[0]}"
    return {trained: folder.training["settings"], **audited}


def _next_steps(subject: Audited, asked: AuditCall) -> dict[str, str]:
    """What to type next, by the conclusion."""
    from ciplearn.cli.model_folder import GRAPH, OPTIONS

    table, folder = shlex.quote(printable(Path(asked.table.name))), asked.folder
    roles = subject.verdict
    if folder is None or not subject.is_ours:
        graph = asked.graph_name
        named = f"--outcome {shlex.quote(roles.outcome)} --protected {shlex.quote(join_names(roles.protected))}"
        fit = f"ciplearn fit {table} --graph {graph} {named} --out model"
        return {"passes": f"ciplearn check {graph} --data {table}", "fails": fit, "useless": fit}
    name, training = printable(Path(folder.path.name)), folder.training
    again = f"ciplearn fit {table} --config {shlex.quote(f'{name}/{OPTIONS}')}"
    tolerance, gamma = training["tolerance"], training["gamma"]
    stricter = "--strict"
    if tolerance is not None:
        stricter = f"--tolerance {2 * tolerance or 0.1:g}"
    elif gamma is not None:
        stricter = f"--gamma {10 * gamma or 1:g}"
    return {
        "cannot be told": f"ciplearn audit {name} MORE_ROWS.csv",
        "passes": f"ciplearn check {shlex.quote(f'{name}/{GRAPH}')} --data {table}",
        "fails": f"{again} {stricter} --out stricter",
        "useless": f"{again} --context {shlex.quote(join_names(roles.protected))} --out smaller-context",
    }


def _was_said(value: Any) -> bool:
    """Whether the value of an option is one to repeat: zero is, a flag that is off and what nobody has set are not."""
    return value is not None and value is not False


def _row_numbers(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--individuals must be numbers of rows, got {text!r}; pass for example 12,40.") from error


def _of_profile(report: Report, profile: str) -> dict[str, Any]:
    from ciplearn.report.bias_audit import BiasAudit

    return {"bias_audit": BiasAudit.of(report).to_dict()} if profile == "bias-audit" else {}
