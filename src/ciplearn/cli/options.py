"""Options that several commands share, and what they mean together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.files import CHECKSUMS, listed_files
from ciplearn.cli.config import read_config
from ciplearn.cli.names import split_names

if TYPE_CHECKING:
    from ciplearn.causal import CausalGraph
    from ciplearn.cli.tables import TableFile

_TABLE, _ROLES = "The table", "Roles"

Json = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0, max=2**31 - 1)]
Config = Annotated[
    Path | None,
    typer.Option(
        help="A YAML, TOML or JSON file with any of these options; what is typed beats it.",
        callback=read_config,
        is_eager=True,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the model that the folder holds; other files in it stay.")
]
Separator = Annotated[
    str | None,
    typer.Option(help="Between cells. Default: comma, or tab in .tsv files.", metavar="TEXT", rich_help_panel=_TABLE),
]
ColumnNames = Annotated[
    str | None,
    typer.Option("--columns", help="Names, for text without a header line.", metavar="NAMES", rich_help_panel=_TABLE),
]
Skip = Annotated[int, typer.Option(help="Lines to pass over at the top.", min=0, rich_help_panel=_TABLE)]
MissingCells = Annotated[
    str | None,
    typer.Option(
        "--na",
        help="More cells that mean missing, beside '?', NA and empty ones.",
        metavar="TEXTS",
        rich_help_panel=_TABLE,
    ),
]


def _role(what: str, metavar: str = "NAMES") -> Any:
    return typer.Option(help=what, metavar=metavar, rich_help_panel=_ROLES)


Outcome = Annotated[str | None, _role("What is predicted.", "NAME")]
Protected = Annotated[str | None, _role("What the prediction should not follow.")]
Context = Annotated[str | None, _role("What a person is known by. Default: all observed nodes but the outcome.")]
Inputs = Annotated[str | None, _role("What the predictor sees. Default: all observed nodes but the outcome.")]
Adjustment = Annotated[str | None, _role("What to condition on. Default: the largest certifying set in the context.")]

# What graph text holds and the name of a graph file does not.
_SIGNS_OF_TEXT = ("->", "<-", "--", "→", "←", "↔", "{", "\n")


def read_graph(graph: str) -> CausalGraph:
    """Read a graph from a file, or from the text itself."""
    from ciplearn.causal import CausalGraph

    if _is_file(graph):
        return CausalGraph.from_file(graph)
    if any(sign in graph for sign in _SIGNS_OF_TEXT):
        return CausalGraph.from_text(graph)
    raise GraphError(f"{graph!r} is neither a file nor a graph; give a path, or edges such as 'A -> B'.")


def table_file(path: Path, separator: str | None, columns: str | None, skip: int, missing: str | None) -> TableFile:
    """Return the table that the options describe."""
    from ciplearn.cli.tables import TableFile

    if separator is not None:
        separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
        if len(separator) != 1:
            raise InputError(f"--separator must be one character, got {separator!r}; pass for example ';'.")
    return TableFile(path, separator, split_names(columns), skip, split_names(missing) or ())


def keep_inputs(out: Path, *inputs: Path | None) -> None:
    """Refuse a place to write that is read by the same command, holds what is read, or is a part of it."""
    place = Path(os.path.realpath(out))
    for read in inputs:
        if read is None or not read.exists():
            continue
        known = Path(os.path.realpath(read))
        if place == known or (place.is_file() and place.samefile(known)):
            raise InputError(f"{out} is what this command reads; pass the name of another file to write.")
        if place in known.parents:
            raise InputError(f"{read} is read, and lies in {out}; pass another place to write.")
        if known in place.parents and place.is_file():
            listed = listed_files(known)
            if not listed or place.relative_to(known).as_posix() in {*listed, CHECKSUMS}:
                raise InputError(f"{out} is a part of {read}, which is read; pass the name of another file to write.")


def graph_file(graph: str) -> Path | None:
    """Return the file that a graph is read from, if it is one."""
    return Path(graph) if _is_file(graph) else None


def _is_file(graph: str) -> bool:
    try:
        return Path(graph).exists()
    except OSError:
        # Text longer than a path may be.
        return False
