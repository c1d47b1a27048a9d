"""``ciplearn check``: from a drawing to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.output import is_terminal, say, say_headed, say_json
from ciplearn.cli.parsing import of_panel, with_groups

if TYPE_CHECKING:
    from ciplearn.causal import CausalGraph
    from ciplearn.doubt import Falsification
    from ciplearn.sources import TableFiles
    from ciplearn.sources.table_file import TableFile

_option = of_panel()


@with_groups
def check(
    graph: Annotated[str, typer.Argument(help="A file, or the graph itself: 'S -> A, A -> Y'.", metavar="GRAPH")],
    roles: options.RoleOptions,
    data: Annotated[Path | None, _option("Test the graph's independencies on this table, too.", "TABLE")] = None,
    tests: Annotated[int, _option("So many of them at most.", "NUMBER", min=1)] = 200,
    svg: Annotated[
        Path | None, _option("Write a picture of the graph, with what the table contradicts in red.", "FILE")
    ] = None,
    seed: options.Seed = 0,
    *,
    reading: options.ReadingOptions,
    answer: options.RunOptions,
) -> int:
    """Say which independence makes a predictor counterfactually invariant, or why none is certified.

    NAMES are separated by commas. With --data the roles may be left out. Exit code: 0 it holds and no data refute the
    graph, 1 it does not or they do, 2 a mistake in the call.

    For example:
      ciplearn check 'S -> {A L Y}, A -> L -> Y, A -> Y' --outcome Y --protected A --context L,S
      ciplearn check graph.txt --data people.csv --tests 50
    """
    from ciplearn._core.files import write_file

    drawn = options.read_graph(graph)
    with_roles = (roles.outcome or drawn.outcomes) and (roles.protected or drawn.exposures)
    verdict = drawn.criterion(**roles.named(drawn)) if with_roles or data is None else None
    if svg is not None:
        options.keep_inputs(svg, options.graph_file(graph), data)
    found = None
    if data is not None:
        found = _tested(drawn, reading.table(data), roles.codes, tests, seed)
    if svg is not None:
        write_file(svg, drawn.to_svg(verdict, refuted=() if found is None else found.violated))
    if answer.as_json:
        content = {} if verdict is None else verdict.to_dict()
        say_json(content if found is None else {**content, "falsification": found.to_dict()})
    else:
        if verdict is not None:
            if is_terminal():
                say_headed(verdict.headline(), "green" if verdict.holds else "red", verdict.sections())
            else:
                say(str(verdict))
        if found is not None:
            _show_tests(found)
    holds = verdict is None or verdict.holds
    return 0 if holds and not (found is not None and found.refuted) else 1


def _tested(
    graph: CausalGraph, source: TableFile | TableFiles, categories: tuple[str, ...], tests: int, seed: int
) -> Falsification:
    from ciplearn.causal.vector_columns import node_of
    from ciplearn.cli.training_table import in_their_kinds, require_nodes
    from ciplearn.sources import TableFiles

    if isinstance(source, TableFiles):
        raise InputError(f"{source.path} are several files, got for --data; pass one CSV, TSV or Parquet file.")
    with source.opened(labels=categories) as opened:
        holding = {name: node_of(name, graph.nodes) for name in opened.names}
        require_nodes(graph.observed, set(holding.values()) - {None}, opened.names)
        table = opened.read([name for name, node in holding.items() if node in graph.observed])
    return graph.falsify(in_their_kinds(table, categories), limit=tests, random_state=seed)


def _show_tests(found: Falsification) -> None:
    width = max([len("statement"), *(len(str(statement)) for statement in found.statements)])
    lines = [f"{'statement':{width}}  p         adjusted  detectable"]
    for row in found.tests.itertuples():
        numbers = "".join(f"  {value:<8.3g}" for value in (row.p, row.p_adjusted, row.detectable))
        lines.append(f"{row.statement:{width}}{numbers if row.p == row.p else '  ' + row.obstacle}")
    say("\n".join([*(lines if found.statements else []), str(found)]))
