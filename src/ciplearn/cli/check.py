"""``ciplearn check``: from a drawing to a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ciplearn._core.errors import GraphError
from ciplearn.cli.output import is_terminal, say, say_headed

if TYPE_CHECKING:
    from ciplearn.causal import CausalGraph, Verdict

# What graph text holds and the name of a graph file does not.
_SIGNS_OF_TEXT = ("->", "<-", "--", "→", "←", "↔", "{", "\n")


def check(
    graph: Annotated[str, typer.Argument(help="A file, or the graph itself: 'S -> A, A -> Y'.", metavar="GRAPH")],
    outcome: Annotated[str | None, typer.Option(help="What is predicted.", metavar="NAME")] = None,
    protected: Annotated[
        str | None, typer.Option(help="What the prediction should not follow.", metavar="NAMES")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(help="What a person is known by. Default: all observed nodes but the outcome.", metavar="NAMES"),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(help="What the predictor sees. Default: all observed nodes but the outcome.", metavar="NAMES"),
    ] = None,
    adjustment: Annotated[
        str | None,
        typer.Option(help="What to condition on. Default: the largest certifying set in the context.", metavar="NAMES"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> int:
    """Say which independence makes a predictor counterfactually invariant, or why none is certified.

    NAMES are separated by commas. Exit code: 0 it holds, 1 it does not, 2 a mistake in the call.
    """
    drawn = _read(graph)
    verdict = drawn.criterion(
        outcome=outcome,
        protected=_names(drawn, protected),
        context=_names(drawn, context),
        inputs=_names(drawn, inputs),
        adjustment=_names(drawn, adjustment),
    )
    if as_json:
        say(json.dumps(verdict.to_dict(), ensure_ascii=False, indent=2))
    else:
        _show(verdict)
    return 0 if verdict.holds else 1


def _read(graph: str) -> CausalGraph:
    from ciplearn.causal import CausalGraph

    if _is_file(graph):
        return CausalGraph.from_file(graph)
    if any(sign in graph for sign in _SIGNS_OF_TEXT):
        return CausalGraph.from_text(graph)
    raise GraphError(f"{graph!r} is neither a file nor a graph; give a path, or edges such as 'A -> B'.")


def _is_file(graph: str) -> bool:
    try:
        return Path(graph).exists()
    except OSError:
        # Text longer than a path may be.
        return False


def _names(graph: CausalGraph, option: str | None) -> tuple[str, ...] | None:
    """Split at commas, unless the whole is the name of a node."""
    if option is None:
        return None
    if option in graph.nodes:
        return (option,)
    return tuple(name.strip() for name in option.split(",") if name.strip())


def _show(verdict: Verdict) -> None:
    if not is_terminal():
        say(str(verdict))
        return
    say_headed(verdict.headline(), "green" if verdict.holds else "red", verdict.sections())
