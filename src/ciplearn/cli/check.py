"""``ciplearn check``: from a drawing to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciplearn._core.errors import InputError
from ciplearn._core.files import write_file
from ciplearn.causal import CausalGraph
from ciplearn.cli import options
from ciplearn.cli.commands import Check
from ciplearn.cli.output import is_terminal, keep_inputs, say, say_headed, say_json, say_table

if TYPE_CHECKING:
    from ciplearn.doubt import Falsification


def check(asked: Check) -> int:
    """Show the verdict on a graph, and what a table says about it; 1 where either is against it."""
    drawn = options.read_graph(asked.graph)
    with_roles = (asked.outcome or drawn.outcomes) and (asked.protected or drawn.exposures)
    verdict = drawn.criterion(**asked.roles(drawn)) if with_roles or asked.data is None else None
    if asked.svg is not None:
        keep_inputs(asked.svg, options.graph_file(asked.graph), asked.data)
    falsification = None if asked.data is None else _tested(drawn, asked.data, asked)
    if asked.svg is not None:
        write_file(asked.svg, drawn.to_svg(verdict, refuted=() if falsification is None else falsification.violated))
    if asked.as_json:
        content = {} if verdict is None else verdict.to_dict()
        say_json(content if falsification is None else {**content, "falsification": falsification.to_dict()})
    else:
        if verdict is not None and is_terminal():
            say_headed(verdict.headline(), "green" if verdict.holds else "red", verdict.sections())
        elif verdict is not None:
            say(str(verdict))
        if falsification is not None:
            _show_tests(falsification)
    holds = verdict is None or verdict.holds
    return 0 if holds and not (falsification is not None and falsification.refuted) else 1


def _tested(graph: CausalGraph, data: Path, asked: Check) -> Falsification:
    from ciplearn.causal.names import node_of
    from ciplearn.cli.training_table import in_their_kinds, require_nodes
    from ciplearn.sources import TableFiles

    source = asked.source(data)
    if isinstance(source, TableFiles):
        raise InputError(f"{source.path} are several files, got for --data; pass one CSV, TSV or Parquet file.")
    with source.opened(labels=asked.codes) as opened:
        holding = {name: node_of(name, graph.nodes) for name in opened.names}
        require_nodes(graph.observed, set(holding.values()) - {None}, opened.names)
        table = opened.read([name for name, node in holding.items() if node in graph.observed])
    return graph.falsify(in_their_kinds(table, asked.codes), limit=asked.tests, random_state=asked.seed)


def _show_tests(falsification: Falsification) -> None:
    rows = [("statement", "p", "adjusted", "detectable")]
    for row in falsification.tests.itertuples():
        numbers = [f"{value:.3g}" for value in (row.p, row.p_adjusted, row.detectable)]
        rows.append((row.statement, *(numbers if row.p == row.p else (row.obstacle, "", ""))))
    if falsification.statements:
        say_table(rows)
    say(str(falsification))
