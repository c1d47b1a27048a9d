"""What a repair stands on: the model as it is asked, and the worlds of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import check_cells
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tables import checked_table
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import Names, as_names
from ciplearn.causal.vector_columns import node_of
from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.levels import Levels
from ciplearn.repairing.needed_part import needed_part
from ciplearn.repairing.ratio import causes_of, density_ratio
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm import StructuralCausalModel, fit_scm

# Rows that a causal model is estimated from.
_MODEL_ROWS = 50_000


def ground(
    model: Any,
    table: pd.DataFrame,
    graph: CausalGraph | None,
    outcome: str,
    protected: Names,
    scm: StructuralCausalModel | None,
    inputs: Sequence[str] | None,
    generator: np.random.Generator,
) -> tuple[Asked, Worlds, pd.DataFrame]:
    """Check what `repair` was given; return the model, the worlds, and the columns of the table that matter."""
    checked_table(table, "table")
    if not isinstance(outcome, str):
        raise InputTypeError(f"outcome must be the name of a node, got {type(outcome).__name__}; pass for example 'Y'.")
    if table.empty:
        raise InputError("table has no rows; pass at least 20.")
    if scm is not None and not isinstance(scm, StructuralCausalModel):
        raise InputTypeError(
            f"scm must be a StructuralCausalModel, got {type(scm).__name__}; leave it out to have one estimated."
        )
    if (scm is None or graph is not None) and not isinstance(graph, CausalGraph):
        raise InputTypeError(
            f"graph must be a CausalGraph, got {type(graph).__name__}; build one with CausalGraph.from_text(...)."
        )
    drawn: CausalGraph = graph if graph is not None else scm.graph  # type: ignore[union-attr]
    names = drawn.known_observed(as_names(protected, "protected"), "protected")
    if not names:
        raise InputError("Nothing is protected; name the variables whose change is imagined.")
    nodes = {column: node_of(column, drawn.nodes) for column in map(str, table.columns)}
    known = table[[column for column in table.columns if nodes[str(column)] in drawn.observed]]
    missing = next((name for name in (*names, outcome) if name not in map(nodes.get, known.columns)), None)
    if missing is not None:
        raise InputError(f"The table has no column of {missing!r}; add it, or name a node that the table shows.")
    if outcome in names:
        raise InputError(f"{outcome!r} is the outcome and protected at once; name other protected variables.")
    near = [node for node in causes_of(drawn, names) if node not in map(nodes.get, known.columns)]
    if near:
        raise InputError(f"The table has no column of {near[0]!r}, beside which the law of A differs; add it.")
    for column in known.columns:
        check_cells(known[column])
    ignored = [column for column in table.columns if column not in known.columns]
    asked = Asked.of(model, known, outcome, ignored, inputs)
    columns = [column for column in known.columns if nodes[column] in names]
    levels = Levels.of(known[columns], generator)
    if scm is None:
        read = {nodes[column] for column in asked.inputs}
        part = needed_part(drawn, names, read, outcome, own_law=not levels.listed)
        rows = sample_with_every_label(known, _MODEL_ROWS, generator)
        scm = fit_scm(part, rows, random_state=int(generator.integers(2**31)))
    ratio = density_ratio(scm, drawn, names, levels, known, generator)
    worlds = Worlds(scm, names, asked.inputs, levels, ratio, int(generator.integers(2**31)), unknown=(outcome,))
    return asked, worlds, known
