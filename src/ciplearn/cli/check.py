"""``ciplearn check``: from a drawing to a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ciplearn.cli import options
from ciplearn.cli.output import is_terminal, say, say_headed, say_json

if TYPE_CHECKING:
    from ciplearn.causal import Verdict


def check(
    graph: Annotated[str, typer.Argument(help="A file, or the graph itself: 'S -> A, A -> Y'.", metavar="GRAPH")],
    outcome: options.Outcome = None,
    protected: options.Protected = None,
    context: options.Context = None,
    inputs: options.Inputs = None,
    adjustment: options.Adjustment = None,
    as_json: options.Json = False,
) -> int:
    """Say which independence makes a predictor counterfactually invariant, or why none is certified.

    NAMES are separated by commas. Exit code: 0 it holds, 1 it does not, 2 a mistake in the call.

    Example:

      ciplearn check 'S -> {A L Y}, A -> L -> Y, A -> Y' --outcome Y --protected A --context L,S
    """
    drawn = options.read_graph(graph)
    verdict = drawn.criterion(
        outcome=outcome,
        protected=options.split_names(protected, drawn.nodes),
        context=options.split_names(context, drawn.nodes),
        inputs=options.split_names(inputs, drawn.nodes),
        adjustment=options.split_names(adjustment, drawn.nodes),
    )
    if as_json:
        say_json(verdict.to_dict())
    else:
        _show(verdict)
    return 0 if verdict.holds else 1


def _show(verdict: Verdict) -> None:
    if not is_terminal():
        say(str(verdict))
        return
    say_headed(verdict.headline(), "green" if verdict.holds else "red", verdict.sections())
