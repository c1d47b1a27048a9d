"""Options that several commands share, and what they mean together."""

# ruff: noqa: RUF009 - what is called makes a field

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.listed_folders import CHECKSUMS, listed_files
from ciplearn.cli.parsing import NEEDED, argument, choice, of_panel, read_config, share, show_all, split_names

if TYPE_CHECKING:
    from ciplearn._core.engine import Engine
    from ciplearn.causal import CausalGraph
    from ciplearn.cli.training_table import FitRequest
    from ciplearn.evaluation.any_model import Foreign
    from ciplearn.routes import Goal
    from ciplearn.sources import TableFiles
    from ciplearn.sources.table_file import TableFile


# Roles have no panel of their own, so that they come first.
role, run, goal, effort = of_panel(), of_panel("Run"), of_panel("Goal"), of_panel("Effort", hidden=True)
hidden = of_panel(hidden=True)
_table = of_panel("The table", hidden=True)
_many_rows = of_panel("Many rows", hidden=True)


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
        lists = ("protected", "context", "inputs", "adjustment")
        return {"outcome": self.outcome} | {role: split_names(getattr(self, role), graph.nodes) for role in lists}

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
    graph: str = role("A graph file, or the graph itself: 'S -> A, A -> Y'.", "GRAPH", "--graph", default=NEEDED)
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
        from ciplearn._core.engine import OneProcess

        others: dict[str, Any] = {"workers": self.workers, "address": self.address, **more}
        if self.engine is None:
            for name, given in others.items():
                if given is not None:
                    raise InputError(f"--{name} is for --engine ray, got no engine; pass --engine ray too.")
            return OneProcess()
        choice("--engine", self.engine, ("ray",))
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


# How the names of tables end: no graph file is called so.
_TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".xlsx", ".xls")

# What graph text holds and the name of a graph file does not.
_SIGNS_OF_TEXT = ("->", "<-", "--", "→", "←", "↔", "{", "|", "\n")


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


def keep_inputs(out: Path, *inputs: Path | None) -> None:
    """Refuse a place to write that is read by the same command, holds what is read, or is a part of it."""
    place = Path(os.path.realpath(out))
    for read in (path for given in inputs if given is not None for path in _files_of(given)):
        known = Path(os.path.realpath(read))
        if place == known or (place.is_file() and place.samefile(read)):
            raise InputError(f"{out} is what this command reads; pass the name of another file to write.")
        if place in known.parents:
            raise InputError(f"{read} is read, and lies in {out}; pass another place to write.")
        if known in place.parents and place.is_file():
            listed = listed_files(known)
            if not listed or place.relative_to(known).as_posix() in {*listed, CHECKSUMS}:
                raise InputError(f"{out} is a part of {read}, which is read; pass the name of another file to write.")


def _files_of(given: Path) -> list[Path]:
    """Return what exists under a name: itself, or all that it matches as a pattern."""
    if given.exists():
        return [given]
    return [Path(name) for name in glob.glob(str(given), recursive=True)] if glob.has_magic(str(given)) else []


def graph_file(graph: str) -> Path | None:
    """Return the file that a graph is read from, if it is one."""
    return Path(graph) if _is_file(graph) else None


def _is_file(graph: str) -> bool:
    try:
        return bool(graph) and Path(graph).exists()
    except OSError:
        # Text longer than a path may be.
        return False
