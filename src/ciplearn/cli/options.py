"""How a command takes its options, which are the fields of a class, typed or from a file; those that several share."""

# ruff: noqa: RUF009 - what is called makes a field

from __future__ import annotations

import csv
import glob
import io
import math
import sys
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperOption

from ciplearn._core.arguments import one_of
from ciplearn._core.errors import GraphError, InputError
from ciplearn.cli.output import say

if TYPE_CHECKING:
    from ciplearn._core.workers import Engine
    from ciplearn.causal import CausalGraph
    from ciplearn.cli.training_table import FitRequest
    from ciplearn.evaluation.any_model import Foreign
    from ciplearn.routes import Goal
    from ciplearn.sources import TableFiles
    from ciplearn.sources.table_file import TableFile

ROLES = ("protected", "context", "inputs", "adjustment")  # roles that name several columns
NEEDED: Any = MISSING  # an option that has to be given

# How the names of tables end: no graph file is called so.
_TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".xlsx", ".xls")

# What graph text holds and the name of a graph file does not.
_SIGNS_OF_TEXT = ("->", "<-", "--", "→", "←", "↔", "{", "|", "\n")


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the entries of a file the defaults of the command's options; the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    # As it is written in a file -> the parameter.
    spelled = {
        str(name).lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        if parameter.name not in (None, "config", "help", "help_all")
        for name in (parameter.name, *parameter.opts)
    }
    from ciplearn._core.plain_data import read_mapping

    defaults = {}
    for key, value in read_mapping(path).items():
        parameter = spelled.get(key.replace("-", "_"))
        if parameter is None:
            from ciplearn.causal.names import nearest

            hint = nearest(key, [name.replace("_", "-") for name in spelled], "options")
            raise InputError(f"{path} sets {key!r}, which is no option of ciplearn {context.info_name}; {hint}")
        defaults[str(parameter.name)] = _as_typed(value, parameter, key, path)
    context.default_map = defaults
    return path


def _as_typed(value: Any, parameter: Any, key: str, path: Path) -> Any:
    """The value as the command line would have it, so that both are checked by the same rules."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, list | dict) for each in value)):
        raise InputError(f"{path} sets {key!r} to values within values; write one value, or a list of names.")
    if isinstance(value, bool) and not getattr(parameter, "is_flag", False):
        raise InputError(f"{path} sets {key!r} to yes or no, which it does not take; write a value, or text in quotes.")
    if isinstance(value, list):
        return join_names(value)
    return value if isinstance(value, bool) or value is None else str(value)


def of_panel(panel: str | None = None, *, hidden: bool = False) -> Callable[..., Any]:
    """Return what makes the options of a panel of ``--help``, as fields; what is hidden shows with ``--help-all``."""

    def option(text: str, metavar: str | None = None, *names: str, default: Any = None, **more: Any) -> Any:
        about = {"help": text, "metavar": metavar, "hidden": hidden, "rich_help_panel": panel} | more
        return field(default=default, metadata={"typer": typer.Option(*names, **about)}, kw_only=True)

    return option


def argument(text: str, metavar: str, default: Any = None) -> Any:
    """Return a field that is given by its place."""
    return field(default=default, metadata={"typer": typer.Argument(help=text, metavar=metavar)}, kw_only=True)


def show_all(context: typer.Context, asked: bool) -> None:
    """Show the help with every option; the callback of ``--help-all``."""
    if not asked or context.resilient_parsing:
        return
    for parameter in context.command.params:
        if isinstance(parameter, TyperOption):
            parameter.hidden = False
    text = context.get_help()
    if text:
        say(text)
    raise typer.Exit


def split_names(text: str | None, known: Container[str] = ()) -> tuple[str, ...] | None:
    """Split at commas; a name that holds a comma stands in double quotes, or is the whole text."""
    if text is None:
        return None
    if text in known:
        return (text,)
    try:
        cells = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise InputError(f"{text[:60]!r} is no list of names; write them in one line, with commas between.") from None
    return tuple(name.strip() for name in cells if name.strip())


def join_names(names: Iterable[object]) -> str:
    """Return names as one text, as options take them: with commas between, and quoted where they hold one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


def share(option: str, given: str, most: float = sys.float_info.max) -> float:
    """Return a share as a number: 2% is 0.02."""
    number = given.strip().removesuffix("%")
    try:
        value = float(number) / (1 if number == given.strip() else 100)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise InputError(f"{option} must be a share, got {given!r}; pass for example 5% or 0.05.")
    return value


# Roles have no panel of their own, so that they come first.
role, run, goal, effort = of_panel(), of_panel("Run"), of_panel("Goal"), of_panel("Effort", hidden=True)
hidden = of_panel(hidden=True)
_table = of_panel("The table", hidden=True)
_many_rows = of_panel("Many rows", hidden=True)

GRAPH_HELP = "A graph file, or the graph itself: 'sex -> job -> pay', or in tiers 'sex | job | pay'."


@dataclass(frozen=True)
class Effort:
    """How much to compute: in a training, and in an audit."""

    epochs: int  # at least
    steps: int  # at least, because a small table has few of them per epoch
    gammas: int  # to try
    n_points: int
    n_interventions: int  # per point
    n_draws: int
    scm_rows: int  # that the causal model is estimated from
    doubt: int  # other graphs to ask about

    @classmethod
    def of(cls, preset: str, **asked: Any) -> Effort:
        """Take a preset, and what was asked for beside it."""
        one_of(preset, "--preset", PRESETS)
        return replace(PRESETS[preset], **{name: value for name, value in asked.items() if value is not None})


PRESETS = {
    "quick": Effort(10, 500, 6, 200, 50, 10, 3000, 0),
    "standard": Effort(20, 2000, 9, 500, 100, 10, 5000, 20),
    "thorough": Effort(60, 6000, 12, 1000, 500, 100, 50_000, 200),
}


@dataclass(frozen=True)
class JsonOption:
    """How a command answers."""

    as_json: bool = run("Write JSON to standard output.", None, "--json", default=False)


@dataclass(frozen=True)
class RunOptions(JsonOption):
    """Where options come from, and how a command answers."""

    config: Path | None = run(
        "A YAML, TOML or JSON file with options; what is typed beats it.", "FILE", callback=read_config, is_eager=True
    )
    help_all: bool = role(
        "Show every option.", None, "--help-all", default=False, callback=show_all, is_eager=True, expose_value=False
    )


@dataclass(frozen=True)
class SeedOption:
    """What chance begins with."""

    seed: int = of_panel("Run", hidden=True)("Same seed, same result.", "NUMBER", default=0, min=0, max=2**31 - 1)


@dataclass(frozen=True)
class StrengthOption:
    """The knob of a repaired model."""

    strength: float | None = hidden(
        "Turn the knob of a repaired model: 0 is the model itself, inf is strict.", "NUMBER", min=0
    )


@dataclass(frozen=True)
class RoleOptions:
    """Roles of columns, as typed."""

    outcome: str | None = role("What is predicted.", "NAME")
    protected: str | None = role("What the prediction should not follow.", "NAMES")
    context: str | None = role("What a person is known by. Default: all but the outcome.", "NAMES")
    inputs: str | None = role("What the predictor sees. Default: all but the outcome.", "NAMES")
    adjustment: str | None = hidden(
        "What to condition on. Default: the largest certifying set in the context.", "NAMES"
    )
    categories: str | None = role("Columns of numbers that are codes.", "NAMES")

    def roles(self, graph: CausalGraph) -> dict[str, Any]:
        """Return the roles as lists of names, as the criterion takes them."""
        return {"outcome": self.outcome} | {role: split_names(getattr(self, role), graph.nodes) for role in ROLES}

    @property
    def codes(self) -> tuple[str, ...]:
        """The columns that are categories, whatever they look like."""
        return split_names(self.categories) or ()


@dataclass(frozen=True)
class TaskOptions(RoleOptions):
    """Roles of columns, and what is learnt."""

    task: str | None = hidden("classification or regression. Default: by the outcome's values.", "TASK")

    def request(self, graph: CausalGraph, **more: Any) -> FitRequest:
        """Return what is asked of a table."""
        from ciplearn.cli.training_table import FitRequest

        return FitRequest(graph, **self.roles(graph), categories=self.codes, task=self.task, **more)


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is written down."""

    separator: str | None = _table("Between cells. Default: comma, or tab in .tsv files.", "TEXT")
    columns: str | None = _table("Names, for text without a header line.", "NAMES")
    skip: int = _table("Lines to pass over at the top.", "NUMBER", default=0, min=0, max=100_000)
    na: str | None = _table("More cells that mean missing, beside '?', NA, None, null and empty ones.", "TEXTS")
    only_na: bool = _table(
        "Only empty cells and those of --na are missing: NA, None, null and '?' are values.",
        None,
        "--only-na",
        default=False,
    )

    def source(self, path: Path) -> TableFile | TableFiles:
        """Return the table that a path names: a file, or all files of a folder or of a pattern."""
        from ciplearn.sources import TableFiles
        from ciplearn.sources.table_file import TableFile

        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator or "", self.separator)
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise InputError(f"--separator must be one character, got {separator!r}; pass for example ';'.")
        reading: dict[str, Any] = {"separator": separator, "columns": split_names(self.columns), "skip": self.skip}
        reading |= {"missing": split_names(self.na) or (), "only_missing": self.only_na}
        if path.is_dir() or (glob.has_magic(str(path)) and not path.exists()):
            return TableFiles.matching(path).read_as(reading)
        return TableFile(Path("/dev/stdin") if str(path) == "-" else path, **reading)


@dataclass(frozen=True)
class TableToModel(SeedOption):
    """From a table and a graph to a model folder."""

    table: Path = argument("CSV, TSV or Parquet: a file, a folder, a pattern, or -.", "TABLE", NEEDED)
    graph: str = role(GRAPH_HELP, "GRAPH", "--graph", default=NEEDED)
    out: Path = role("The model folder to write.", "FOLDER", "--out", default=NEEDED)
    overwrite: bool = run(
        "Replace the model in the folder; other files in it stay.", None, "--overwrite", default=False
    )


@dataclass(frozen=True)
class EngineOptions:
    """Who does the work."""

    engine: str | None = _many_rows("ray: work on several workers.", "ENGINE")
    workers: int | None = _many_rows("Of the engine. Default: 2.", "NUMBER", min=1)
    address: str | None = _many_rows("Of a Ray cluster. Default: one is started here.", "TEXT")

    def made(self, **more: Any) -> Engine:
        """Return the engine; ``more``: its further options."""
        from ciplearn._core.workers import OneProcess

        others: dict[str, Any] = {"workers": self.workers, "address": self.address, **more}
        if self.engine is None:
            for name, given in others.items():
                if given is not None:
                    raise InputError(f"--{name} is for --engine ray, got no engine; pass --engine ray too.")
            return OneProcess()
        one_of(self.engine, "--engine", ("ray",))
        from ciplearn.scale import RayEngine

        return RayEngine(**others | {"workers": self.workers or 2})


@dataclass(frozen=True)
class TrainingEngineOptions(EngineOptions):
    """Who does the work of a training, and where workers meet."""

    scratch: Path | None = _many_rows("A folder that all workers see, for encoded rows and checkpoints.", "FOLDER")
    meet: str | None = _many_rows("Where workers of a training meet. Default: this machine alone.", "HOST:PORT")


@dataclass(frozen=True)
class EffectOption:
    """The limit of an effect."""

    max_effect: float | None = goal(
        "The most that the protected columns may move a prediction. Default: 0.05 of a probability, or a tenth of the "
        "outcome's deviation.",
        "NUMBER",
        min=0,
    )


@dataclass(frozen=True)
class GoalOptions(EffectOption):
    """What is asked of a predictor."""

    vcf: str | None = goal("Keep at most this share of the variance over worlds: 5%.", "SHARE")
    strict: bool = goal("The same in every world, whatever it costs.", None, "--strict", default=False)

    def goal(self) -> Goal:
        """Return the goal that is named; the usual limits where none is."""
        from ciplearn.evaluation import Limits
        from ciplearn.routes import ShareOfVCF, Strict, WithinLimits

        named_goal(max_effect=self.max_effect, vcf=self.vcf, strict=self.strict)
        if self.strict:
            return Strict()
        if self.vcf is None:
            return WithinLimits(Limits(self.max_effect))
        return ShareOfVCF(share("--vcf", self.vcf, 1))


def named_goal(**goals: Any) -> str:
    """Return the one goal that was named, as an option is; more than one contradict each other."""
    named = [name.replace("_", "-") for name, value in goals.items() if value is not None and value is not False]
    if len(named) > 1:
        raise InputError(f"Both --{named[0]} and --{named[1]} were given; ask for one of them.")
    return named[0] if named else ""


@dataclass(frozen=True)
class ModelOptions:
    """A model from elsewhere that can be asked."""

    predictor: str | None = role("A name in a module: a fitted model, or a function of a table.", "MODULE:NAME")
    onnx: Path | None = role("An ONNX file.", "FILE")

    def foreign(self, inputs: Sequence[str] | None, columns: Collection[str]) -> Foreign | None:
        """Return the model; ``inputs``: those of a table of numbers, in order; ``columns``: all that there are."""
        from ciplearn.evaluation.any_model import from_module, from_onnx

        if self.predictor is not None:
            return from_module(self.predictor)
        return None if self.onnx is None else from_onnx(Path(self.onnx), inputs, columns)


def read_graph(graph: str) -> CausalGraph:
    """Read a graph from a file, or from the text itself."""
    from ciplearn.causal import CausalGraph

    if _is_file(graph):
        if graph.lower().endswith(_TABLES):
            raise GraphError(f"{graph} is a table, not a graph; pass a graph file, or edges such as 'A -> B'.")
        return CausalGraph.from_file(graph)
    if any(sign in graph for sign in _SIGNS_OF_TEXT):
        return CausalGraph.from_text(graph)
    raise GraphError(f"{graph!r} is neither a file nor a graph; give a path, or edges such as 'A -> B'.")


def graph_file(graph: str) -> Path | None:
    """Return the file that a graph is read from, if it is one."""
    return Path(graph) if _is_file(graph) else None


def _is_file(graph: str) -> bool:
    try:
        return bool(graph) and Path(graph).exists()
    except OSError:
        # Text longer than a path may be.
        return False
