"""Options that several commands share, typed or from a file, and what they mean together."""

from __future__ import annotations

import csv
import glob
import io
import os
from collections.abc import Container, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.listed_folders import CHECKSUMS, listed_files
from ciplearn._core.mapping_files import read_mapping

if TYPE_CHECKING:
    from ciplearn._core.engine import Engine
    from ciplearn.causal import CausalGraph
    from ciplearn.sources import TableFiles
    from ciplearn.sources.table_file import TableFile


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the entries of a file the defaults of the command's options; the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    options = _spelled(context)
    parameters = {str(parameter.name): parameter for parameter in context.command.params}
    defaults = {}
    for key, value in read_mapping(path).items():
        name = options.get(key.replace("-", "_"))
        if name is None:
            from ciplearn.causal.names import nearest

            hint = nearest(key, [spelled.replace("_", "-") for spelled in options], "options")
            raise InputError(f"{path} sets {key!r}, which is no option of ciplearn {context.info_name}; {hint}")
        defaults[name] = _as_typed(value, parameters[name], key, path)
    context.default_map = defaults
    return path


def _spelled(context: typer.Context) -> dict[str, str]:
    """How each option may be written in a file -> the name of its parameter."""
    spelled = {}
    for parameter in context.command.params:
        if parameter.name in (None, "config", "help"):
            continue
        for name in (parameter.name, *parameter.opts):
            spelled[str(name).lstrip("-").replace("-", "_")] = str(parameter.name)
    return spelled


def _as_typed(value: Any, parameter: Any, key: str, path: Path) -> Any:
    """The value as the command line would have it, so that both are checked by the same rules."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, list | dict) for each in value)):
        raise InputError(
            f"{path} sets {key!r} to values within values, which no option takes; write a value or a list of names."
        )
    if isinstance(value, bool) and not getattr(parameter, "is_flag", False):
        raise InputError(f"{path} sets {key!r} to yes or no, which it does not take; write a value, or text in quotes.")
    if isinstance(value, list):
        return join_names(value)
    return value if isinstance(value, bool) or value is None else str(value)


# One per panel of ``--help``. Roles come first, which typer grants to options without a panel.
_table = partial(typer.Option, rich_help_panel="The table")
_role = partial(typer.Option, metavar="NAMES")
of_run = partial(typer.Option, rich_help_panel="Run")
_many_rows = partial(typer.Option, rich_help_panel="Many rows")
_effort = partial(typer.Option, rich_help_panel="Effort")
_any_model = partial(typer.Option, rich_help_panel="Any model")

Table = Annotated[
    Path,
    typer.Argument(
        help="A CSV, TSV or Parquet file, a folder of them, a pattern such as 'rows/*.parquet', or - for standard "
        "input.",
        metavar="TABLE",
    ),
]
ModelOrTable = Annotated[
    Path | None,
    typer.Argument(
        help="A folder that ciplearn fit has written; left out where a graph and roles are named.",
        metavar="[MODEL_DIR]",
    ),
]
TableAfterModel = Annotated[
    Path | None, typer.Argument(help="A CSV, TSV or Parquet file, or - for standard input.", metavar="TABLE")
]

EngineName = Annotated[str | None, _many_rows("--engine", help="ray: work on several workers.")]
WorkerCount = Annotated[int | None, _many_rows("--workers", help="Of the engine. Default: 2.", min=1)]
Address = Annotated[str | None, _many_rows(help="Of a Ray cluster. Default: one is started here.", metavar="TEXT")]
Scratch = Annotated[
    Path | None,
    _many_rows(help="A folder that all workers see, for encoded rows and checkpoints.", metavar="FOLDER"),
]
Meet = Annotated[
    str | None, _many_rows(help="Where workers of a training meet. Default: this machine alone.", metavar="HOST:PORT")
]

Json = Annotated[bool, of_run("--json", help="Write JSON to standard output.")]
Seed = Annotated[int, of_run(help="Same seed, same result.", min=0, max=2**31 - 1)]
Config = Annotated[
    Path | None,
    of_run(
        help="A YAML, TOML or JSON file with any of these options; what is typed beats it.",
        callback=read_config,
        is_eager=True,
    ),
]
Overwrite = Annotated[
    bool, of_run("--overwrite", help="Replace the model that the folder holds; other files in it stay.")
]

Separator = Annotated[str | None, _table(help="Between cells. Default: comma, or tab in .tsv files.", metavar="TEXT")]
ColumnNames = Annotated[str | None, _table("--columns", help="Names, for text without a header line.", metavar="NAMES")]
Skip = Annotated[int, _table(help="Lines to pass over at the top.", min=0, max=100_000)]
MissingCells = Annotated[
    str | None,
    _table("--na", help="More cells that mean missing, beside '?', NA, None, null and empty ones.", metavar="TEXTS"),
]
OnlyMissingCells = Annotated[
    bool,
    _table(
        "--only-na",
        help="Take only empty cells and those of --na for missing: NA, None, null and '?' are then values.",
    ),
]
Categories = Annotated[str | None, _table(help="Columns of numbers that are codes.", metavar="NAMES")]

Graph = Annotated[
    str | None, _role(help="A graph file, or the graph itself. Default: the graph of MODEL_DIR.", metavar="GRAPH")
]
Outcome = Annotated[str | None, _role(help="What is predicted.", metavar="NAME")]
Protected = Annotated[str | None, _role(help="What the prediction should not follow.")]
Context = Annotated[str | None, _role(help="What a person is known by. Default: all observed nodes but the outcome.")]
Inputs = Annotated[str | None, _role(help="What the predictor sees. Default: all observed nodes but the outcome.")]
Adjustment = Annotated[
    str | None, _role(help="What to condition on. Default: the largest certifying set in the context.")
]
Task = Annotated[
    str | None,
    _role(help="classification or regression. Default: classification for text and for two values.", metavar=None),
]

KnownModel = Annotated[
    Path | None,
    typer.Option(
        help="A causal model that you know: formulas in YAML, TOML or JSON, or Python with --run-code. Default: "
        "one is estimated from the graph and the table.",
        metavar="FILE",
    ),
]
RunCode = Annotated[bool, typer.Option("--run-code", help="Run the Python file of --scm.")]
Individuals = Annotated[
    str | None,
    typer.Option(help="Numbers of rows to show, counted from 0. Default: those affected most.", metavar="NUMBERS"),
]

Preset = Annotated[str, _effort(help="quick, standard or thorough.")]
Points = Annotated[int | None, _effort(help="Rows whose counterfactuals are imagined.", min=2)]
Interventions = Annotated[int | None, _effort(help="Values of the protected columns per row.", min=2)]
Draws = Annotated[int | None, _effort(help="Draws of what a row leaves open.", min=1)]
ScmRows = Annotated[int | None, _effort(help="Rows the causal model is estimated from.", min=20)]
Doubt = Annotated[
    int | None,
    _effort(
        help="How wrong may graph and causal model be? So many other graphs, 0 for none. Default: 20, 0 with --preset "
        "quick, 200 with thorough.",
        min=0,
    ),
]

PredictorName = Annotated[
    str | None,
    _any_model(
        "--predictor",
        help="Audit what a name in a Python module is, as package.module:name: a fitted model, a function of a table, "
        "or a function that makes one. The module is imported, which runs it.",
        metavar="NAME",
    ),
]
OnnxFile = Annotated[Path | None, _any_model("--onnx", help="Audit an ONNX file.", metavar="FILE")]
PredictionsFile = Annotated[
    Path | None,
    _any_model(
        "--predictions",
        help="Audit predictions for the rows that ciplearn imagine has written, by their id.",
        metavar="FILE",
    ),
]
Positive = Annotated[
    str | None,
    _any_model(help="Which of two labels is the positive decision. Default: the second in order.", metavar="LABEL"),
]

_goal = partial(typer.Option, rich_help_panel="Goal")
MaxEffect = Annotated[
    float | None,
    _goal(
        help="The most that a change of the protected columns may move a prediction, in the outcome's unit; of a "
        "probability, 5 points are 0.05. Default: 0.05 for probabilities, else a tenth of the outcome's deviation.",
        min=0,
    ),
]
ShareLeft = Annotated[
    str | None, _goal("--vcf", help="Keep at most this share of the variance over worlds, such as 5%.", metavar="SHARE")
]
StrictGoal = Annotated[bool, _goal("--strict", help="The same in every world, whatever it costs.")]
Strength = Annotated[
    float | None,
    typer.Option(help="Turn the knob of a repaired model: 0 is the model itself, inf is strict.", min=0),
]

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


def table_files(
    path: Path, separator: str | None, columns: str | None, skip: int, missing: str | None, only_missing: bool
) -> TableFile | TableFiles:
    """Return the table that the options describe: a file, or all files of a folder or of a pattern."""
    from ciplearn.sources import TableFiles
    from ciplearn.sources.table_file import TableFile

    if separator is not None:
        separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
        if len(separator) != 1 or separator in '"\r\n':
            raise InputError(f"--separator must be one character, got {separator!r}; pass for example ';'.")
    reading: dict[str, Any] = {"separator": separator, "columns": split_names(columns), "skip": skip}
    reading |= {"missing": split_names(missing) or (), "only_missing": only_missing}
    if path.is_dir() or (glob.has_magic(str(path)) and not path.exists()):
        return TableFiles.matching(path).read_as(reading)
    return TableFile(Path("/dev/stdin") if str(path) == "-" else path, **reading)


def engine(
    name: str | None, workers: int | None, address: str | None, scratch: Path | None, meet: str | None = None
) -> Engine:
    """Return who does the work."""
    from ciplearn._core.engine import OneProcess

    if name is None:
        for option, given in (("--workers", workers), ("--address", address), ("--scratch", scratch), ("--meet", meet)):
            if given is not None:
                raise InputError(f"{option} is for --engine ray, got no engine; pass --engine ray too.")
        return OneProcess()
    choice("--engine", name, ("ray",))
    from ciplearn.scale import RayEngine

    return RayEngine(workers or 2, address, scratch=scratch, meet=meet)


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


def choice(option: str, given: str, known: Iterable[str]) -> str:
    """Return what was given, or refuse it where it is none of what an option takes."""
    if given not in known:
        raise InputError(f"{option} must be one of {', '.join(known)}, got {given!r}; name one of these.")
    return given


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
