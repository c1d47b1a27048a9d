"""``ciplearn audit``: what a model would have said, had the protected columns been different."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.output import printable, say, say_command, say_json
from ciplearn.cli.parsing import choice, join_names, of_panel, split_names, with_groups

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
        choice("--preset", preset, _PRESETS)
        return replace(_PRESETS[preset], **{name: value for name, value in asked.items() if value is not None})


_PRESETS = {
    "quick": Effort(200, 50, 10, 3000, 0),
    "standard": Effort(500, 100, 10, 5000, 20),
    "thorough": Effort(1000, 500, 100, 50_000, 200),
}

# Options that say where to read, where to write and what to show.
_NOT_REPEATED = ("model", "table", "out", "config", "as_json", "preset")

# Rows that are shown where nobody has named some, and predictions cannot tell which are affected most.
_SHOWN = 6

_option, _hidden, _effort = of_panel(), of_panel(hidden=True), of_panel("Effort", hidden=True)


@dataclass(frozen=True, kw_only=True)
class SubjectOptions:
    """What ``audit`` and ``imagine`` share: the model or its roles, the table, how much to compute."""

    model: Annotated[
        Path | None,
        typer.Argument(help="A folder of ciplearn fit; left out where roles are named.", metavar="[MODEL_DIR]"),
    ] = None
    table: Annotated[
        Path | None, typer.Argument(help="A CSV, TSV or Parquet file, or - for standard input.", metavar="TABLE")
    ] = None
    graph: options.Graph = None
    roles: options.TaskOptions
    reading: options.ReadingOptions
    scm: Annotated[
        Path | None,
        _hidden(
            "A causal model that you know: formulas in YAML, TOML or JSON, or Python with --run-code. Default: one is "
            "estimated from the graph and the table.",
            "FILE",
        ),
    ] = None
    run_code: Annotated[bool, _hidden("Run the Python file of --scm.", None, "--run-code")] = False
    individuals: Annotated[
        str | None, _hidden("Numbers of rows to show, counted from 0. Default: those affected most.", "NUMBERS")
    ] = None
    preset: Annotated[str, of_panel("Run")("quick, standard or thorough.", "NAME")] = "standard"
    points: Annotated[int | None, _effort("Rows whose counterfactuals are imagined.", "NUMBER", min=2)] = None
    interventions: Annotated[int | None, _effort("Values of the protected columns per row.", "NUMBER", min=2)] = None
    draws: Annotated[int | None, _effort("Draws of what a row leaves open.", "NUMBER", min=1)] = None
    scm_rows: Annotated[int | None, _effort("Rows the causal model is estimated from.", "NUMBER", min=20)] = None
    seed: options.Seed = 0


@dataclass(frozen=True)
class OtherModelOptions(options.ModelOptions):
    """A model to audit that is not that of a folder."""

    predictions: Annotated[
        Path | None, _option("Predictions for the rows that ciplearn imagine has written.", "FILE")
    ] = None
    positive: Annotated[
        str | None, _hidden("Which of two labels is the positive decision. Default: the second in order.", "LABEL")
    ] = None

    @property
    def named(self) -> list[str]:
        """The ways in which a model is named."""
        return [name for name in ("predictor", "onnx", "predictions") if getattr(self, name) is not None]

    def foreign(self, inputs: Sequence[str] | None, columns: Collection[str]) -> Foreign | None:
        """Return the model, or what it has said."""
        from ciplearn.cli.imagine import from_predictions

        if self.predictions is not None:
            return from_predictions(Path(self.predictions), inputs)
        return super().foreign(inputs, columns)


@dataclass(frozen=True, eq=False)
class AuditCall:
    """What was typed, read: the folder if there is one, another graph than its own, rows to show, all options."""

    asked: SubjectOptions
    table: Path
    folder: ModelFolder | None
    graph: CausalGraph | None
    individuals: list[int] | None
    effort: Effort
    params: Mapping[str, Any]
    other: OtherModelOptions | None = None  # the model to audit, where it is not that of the folder

    @classmethod
    def of(
        cls,
        asked: SubjectOptions,
        params: Mapping[str, Any],
        other: OtherModelOptions | None = None,
        strength: float | None = None,
        doubt: int | None = None,
    ) -> AuditCall:
        """Read the folder and the graph, and refuse options that contradict each other."""
        from ciplearn.cli.model_folder import ModelFolder, lacks_its_model

        effort = Effort.of(
            asked.preset,
            n_points=asked.points,
            n_interventions=asked.interventions,
            n_draws=asked.draws,
            scm_rows=asked.scm_rows,
            doubt=doubt,
        )
        places = [Path(each) for each in (asked.model, asked.table) if each is not None]
        named = [] if other is None else other.named
        if len(named) > 1:
            raise InputError(f"Both {' and '.join(f'--{name}' for name in named)} were given; audit one at a time.")
        graph = None if asked.graph is None else options.read_graph(asked.graph)
        if not places or (len(places) == 1 and (graph is None or (not named and other is not None))):
            raise InputError(
                f"An audit needs MODEL_DIR and TABLE, got {' '.join(map(str, places)) or 'none'}; without MODEL_DIR "
                "pass --graph, the roles, and one of --predictor, --onnx and --predictions."
            )
        folder = None
        if len(places) == 2:
            # A repaired model whose own is not in the folder is audited with the one that is named.
            if other is not None and other.predictor is not None and lacks_its_model(places[0]):
                repaired, other = other.foreign(None, ()), replace(other, predictor=None)
                folder = ModelFolder.read(places[0], foreign=repaired)
            else:
                folder = ModelFolder.read(places[0])
        if folder is not None and strength is not None:
            folder = folder.at(strength)
        given = [name for name, value in vars(asked.roles).items() if value is not None]
        typed = [name for name in given if name != "inputs" or not named]
        if folder is not None and typed:
            raise InputError(f"{places[0]} has its roles already, got --{typed[0]} too; leave one of them out.")
        return cls(asked, places[-1], folder, graph, _row_numbers(asked.individuals), effort, params, other)

    @contextmanager
    def opened(self) -> Iterator[AnyTable]:
        """Yield the table as it is described, or as training has read it."""
        with self.asked.reading.table(self.table).kept_from_pipe() as kept:
            yield kept if self.folder is None else self.folder.as_in_training(kept)

    def foreign(self) -> Foreign | None:
        """Return the model that was named."""
        return None if self.other is None else self.other.foreign(self.inputs, self.known_columns)

    def subject(self, source: AnyTable, foreign: Foreign | None, positive: str | None = None) -> Audited:
        """Bring together the model, its roles and the rows that judge it."""
        from ciplearn._core.memory import give_back_what_is_freed
        from ciplearn.cli.audited import Audited

        give_back_what_is_freed()
        if self.folder is not None:
            return Audited.of_folder(self.folder, source, self.graph, foreign, positive)
        if self.graph is None or foreign is None:
            raise InputError("Without MODEL_DIR an audit needs --graph and a model; pass both.")
        request = self.asked.roles.request(self.graph, seed=self.asked.seed)
        return Audited.of_table(source, request, foreign, positive)

    def report(self, subject: Audited, **more: Any) -> Report:
        """Measure the model under the causal model that was named, or under an estimated one."""
        asked = self.asked
        return subject.report(self.effort, asked.seed, asked.scm, run_code=asked.run_code, **more)

    @property
    def places(self) -> list[Path]:
        """The folder, if any, and the table."""
        return [self.table] if self.folder is None else [self.folder.path, self.table]

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        graph = None if self.asked.graph is None else options.graph_file(self.asked.graph)
        return [*self.places, graph, self.asked.scm]

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns that were named as inputs, in their order."""
        return split_names(self.asked.roles.inputs, self.known_columns)

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns that a model may read."""
        if self.graph is not None:
            return self.graph.observed
        return () if self.folder is None else tuple(self.folder.kinds)

    @property
    def settings(self) -> dict[str, Any]:
        """The options that repeat it, in the form of an option file; zero is one, a flag that is off is not."""
        effort = {name.removeprefix("n_"): value for name, value in vars(self.effort).items()}
        given = {
            name: printable(Path(value.name)) if isinstance(value, Path) else value
            for name, value in self.params.items()
            if name not in _NOT_REPEATED and value is not None and value is not False
        }
        return given | effort

    def fixed_individuals(self, subject: Audited) -> list[Any]:
        """The rows to show where they cannot depend on predictions: those asked for, or the first."""
        return self.individuals or subject.rows.index[:_SHOWN].tolist()


@with_groups
def audit(
    call: typer.Context,
    asked: SubjectOptions,
    other: OtherModelOptions,
    out: Annotated[Path, _option("The page to write.", "FILE")] = Path("report.html"),
    groups: Annotated[str | None, _hidden("Columns to show scores by. Default: the protected ones.", "NAMES")] = None,
    max_effect: options.MaxEffect = None,
    max_vcf: Annotated[
        float | None, _hidden("The most that VCF may be, up to the end of its interval.", "NUMBER", min=0)
    ] = None,
    gate: Annotated[
        bool, of_panel("Run")("Exit with code 1 where the model does not pass.", show_default=False)
    ] = True,
    strength: options.Strength = None,
    profile: Annotated[
        str, _option("decision, bias-audit (rates by group) or model-card.", "NAME", show_default=False)
    ] = "decision",
    doubt: Annotated[
        int | None,
        _effort(
            "How wrong may graph and causal model be? So many other graphs, 0 for none. Default: 20, 0 with --preset "
            "quick, 200 with thorough.",
            "NUMBER",
            min=0,
        ),
    ] = None,
    *,
    answer: options.RunOptions,
) -> int:
    """Measure a model and write a page about it: does it pass, effects, groups, cost, doubts, individuals, reasons.

    Rows that trained are known again and left out. With MODEL_DIR, any other model is audited beside that one.

    For example:
      ciplearn audit model people.csv --out report.html
      ciplearn audit people.csv --predictor trees:model --graph g.txt --outcome income --protected sex
    """
    from ciplearn._core.columns import CLASSIFICATION
    from ciplearn._core.files import whole_file
    from ciplearn.evaluation.conclusion import PASSES, Limits
    from ciplearn.report.groups import BiasAudit

    choice("--profile", profile, ("decision", "bias-audit", "model-card"))
    # Predictions that were written down cannot be asked about rows of other graphs.
    told = other.predictions is not None
    audited = AuditCall.of(asked, call.params, other, strength, 0 if told else doubt)
    options.keep_inputs(out, *audited.files, answer.config, other.onnx, other.predictions)
    with (
        audited.opened() as source,
        # Opened first: a place that cannot be written to is found out before the work is done.
        whole_file(out) as stream,
    ):
        subject = audited.subject(source, audited.foreign(), other.positive)
        if max_effect is not None and max_effect > 1 and subject.task == CLASSIFICATION:
            raise InputError(
                f"--max-effect is of a probability here, which cannot move by {max_effect:g}; pass 0.05 for 5 points."
            )
        found = audited.report(subject, groups=split_names(groups), limits=Limits(max_effect, max_vcf))
        remedy, next_steps = "", _next_steps(subject, audited)
        if audited.effort.doubt:
            remedy, next_steps = _remedy(subject, audited, found)
        report = replace(
            found,
            # The rows that are affected most are known only when all were asked about.
            individuals=audited.fixed_individuals(subject) if told else audited.individuals,
            settings=_settings(audited, out),
            next_steps=next_steps,
            remedy=remedy,
        )
        stream.write(report.to_html(profile).encode())
    if answer.as_json:
        rates = {"bias_audit": BiasAudit.of(report).to_dict()} if profile == "bias-audit" else {}
        say_json({**report.to_dict(), **rates, "file": printable(out)})
    else:
        for sentence in report.summary():
            say(sentence)
        if command := report.next_steps.get(report.conclusion.state):
            say_command("Next:", [shlex.quote(word) for word in shlex.split(command)])
        say(f"Written: {printable(out)}")
    return int(gate and report.conclusion.state != PASSES)


def _settings(asked: AuditCall, out: Path) -> dict[str, dict[str, Any]]:
    """What repeats the audit, and the training before it."""
    folder, words = asked.folder, [printable(Path(path.name)) for path in asked.places]
    audited = {
        f"ciplearn audit {' '.join(words)} --config audit.yaml --out {printable(Path(out.name))}": asked.settings
    }
    if folder is None:
        return audited
    trained = f"ciplearn {_made_by(folder)} {folder.training['table']['name']} --config fit.json --out {words[0]}"
    return {trained: folder.training["settings"], **audited}


def _made_by(folder: ModelFolder) -> str:
    """The command that has written a folder: a model from elsewhere was repaired."""
    return "repair" if {"predictor", "onnx"} & set(folder.training["settings"]) else "fit"


def _next_steps(subject: Audited, asked: AuditCall) -> dict[str, str]:
    """What to type next, by the conclusion."""
    from ciplearn.cli.model_folder import GRAPH, OPTIONS

    table, folder = shlex.quote(printable(Path(asked.table.name))), asked.folder
    roles = subject.verdict
    if folder is None or not subject.is_ours:
        graph = shlex.quote(asked.asked.graph or ("GRAPH" if folder is None else f"{folder.path.name}/{GRAPH}"))
        named = f"--outcome {shlex.quote(roles.outcome)} --protected {shlex.quote(join_names(roles.protected))}"
        fit = f"ciplearn fit {table} --graph {graph} {named} --out model"
        return {"passes": f"ciplearn check {graph} --data {table}", "fails": fit, "useless": fit}
    name, training = printable(Path(folder.path.name)), folder.training
    again = f"ciplearn {_made_by(folder)} {table} --config {shlex.quote(f'{name}/{OPTIONS}')}"
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


def _remedy(subject: Audited, asked: AuditCall, report: Report) -> tuple[str, dict[str, str]]:
    """What was tried where a model of ours fails, itself repaired in full, and what to type next."""
    from ciplearn.cli.model_folder import GRAPH
    from ciplearn.evaluation.conclusion import FAILS, PASSES, USELESS
    from ciplearn.repairing import Repaired

    steps = _next_steps(subject, asked)
    strict = subject.strict_end(report.audit, asked.asked.seed) if report.conclusion.state == FAILS else None
    if strict is None or asked.folder is None:
        return "", steps
    end = strict.conclusion.state
    if end != PASSES:
        how = {FAILS: "still fails", USELESS: "is useless"}.get(end, "cannot be told from these rows to pass")
        del steps[FAILS]
        advice = "Ask for a larger limit, let it read other columns, or collect more rows."
        return f"Nothing useful passes: repaired in full, this model {how}. {advice}", steps
    name, table = printable(Path(asked.folder.path.name)), shlex.quote(printable(Path(asked.table.name)))
    steps[FAILS] = f"ciplearn audit {name} {table} --strength inf"
    if not isinstance(asked.folder.model, Repaired):
        roles = subject.verdict
        named = f"--outcome {shlex.quote(roles.outcome)} --protected {shlex.quote(join_names(roles.protected))}"
        steps[FAILS] = f"ciplearn fit {table} --graph {shlex.quote(f'{name}/{GRAPH}')} {named} --strict --out stricter"
    return "Repaired in full, this model passes on the same rows:", steps


def _row_numbers(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--individuals must be numbers of rows, got {text!r}; pass for example 12,40.") from error
