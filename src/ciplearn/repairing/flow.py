"""`repair`: the best invariant predictor for any fitted model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import check_cells, checked_table
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import RandomState, as_generator
from ciplearn._core.wording import as_list
from ciplearn._core.workers import on_one_thread
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import Names, as_names, node_of
from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.formula import BlindEnd, Engine, Formula
from ciplearn.repairing.measured import CORRECTION, Curve, chosen
from ciplearn.repairing.ratio import Levels, causes_of, density_ratio
from ciplearn.repairing.repaired import Repaired
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm import StructuralCausalModel, fit_scm

_MODEL_ROWS = 50_000  # that a causal model is estimated from
_MEASURED_ROWS, _CALIBRATION_ROWS = 500, 1000  # that strengths are measured on, and that intervals rest on


@on_one_thread
def repair(
    model: Any,
    table: pd.DataFrame,
    *,
    graph: CausalGraph | None = None,
    outcome: str,
    protected: Names,
    scm: StructuralCausalModel | None = None,
    inputs: Sequence[str] | None = None,
    random_state: RandomState = 0,
) -> Repaired:
    """Return the best invariant predictor for a fitted model, with a knob between the two.

    Of all predictors with the same variance of counterfactuals it is the one that differs least from the model, in
    mean square: see `Repaired.at` for the knob. Without a goal it is strict, that is the same in every world.

    Parameters
    ----------
    model
        A scikit-learn estimator or pipeline, boosted trees by their scikit-learn face, a ciplearn model, a function of
        a frame, or the path of an ONNX file. It is asked and never trained.
    table : DataFrame
        Rows with the columns of the model, the protected ones, what comes between, and the outcome. Intervals and sets
        of labels are exact if the model was not trained on these rows; see also `Repaired.calibrated`.
    graph : CausalGraph, optional
        Needed unless ``scm`` is given.
    outcome : str
    protected : name or list of names
        A; several change together.
    scm : StructuralCausalModel, optional
        What imagines rows in other worlds. By default it is estimated from the table.
    inputs : list of columns, optional
        What the model reads. Default: what it remembers from its fit, or else all but the outcome.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> from ciplearn import datasets, repair
    >>> from sklearn.linear_model import LinearRegression
    >>> world = datasets.applicants()
    >>> people = world.sample(400, random_state=0)
    >>> read = ["training", "hours", "age"]
    >>> model = LinearRegression().fit(people[read], people["income"])
    >>> repaired = repair(model, people, scm=world, outcome="income", protected="sex")
    >>> women, men = (world.counterfactual(people, {"sex": sex}) for sex in "fm")
    >>> bool(abs(repaired.predict(women) - repaired.predict(men)).max() < 1e-5)
    True
    """
    generator = as_generator(random_state)
    asked, worlds, known = ground(model, table, graph, outcome, protected, scm, inputs, generator)
    choice = chosen(asked, worlds, known, generator)
    engine: Engine = Formula(asked, worlds)
    if choice.rests_on == CORRECTION:
        engine = Correction.of(asked, worlds, known, generator)
    engine = BlindEnd(engine, worlds) if choice.blind else engine
    measured = Curve.of(engine, worlds, known.iloc[np.sort(generator.permutation(len(known))[:_MEASURED_ROWS])])
    notes = (*_notes(worlds), choice.note, *([] if choice.floor is None else [str(choice.floor)]))
    repaired = Repaired(
        asked, worlds, engine, measured, outcome, rests_on=choice.rests_on, floor=choice.floor, notes=notes, table=known
    )
    several = asked.classes is None and asked(known.head(1)).shape[1] > 1
    if several:
        return repaired
    return repaired.calibrated(known.iloc[generator.permutation(len(known))[:_CALIBRATION_ROWS]])


def _notes(worlds: Worlds) -> tuple[str, ...]:
    scm = worlds.scm
    who, graph = as_list(worlds.protected), scm.graph
    moved = scm.between(worlds.protected, worlds.inputs)
    if not moved and not set(scm.columns(worlds.protected)) & set(worlds.inputs):
        return (f"The model reads neither {who} nor anything that {who} acts on, so all strengths are the model.",)
    if set(worlds.inputs) <= set(scm.columns(sorted(graph.descendants(worlds.protected) - graph.latent))):
        return (
            f"Everything that the model reads comes from {who}: what is left of a strict prediction rests on the noise "
            "that the causal model reads off the rows, and on nothing else.",
        )
    return ()


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
        raise InputTypeError(f"scm must be a StructuralCausalModel, got {type(scm).__name__}; leave it out if unknown.")
    if (scm is None or graph is not None) and not isinstance(graph, CausalGraph):
        raise InputTypeError(
            f"graph must be a CausalGraph, got {type(graph).__name__}; use CausalGraph.from_text(...)."
        )
    drawn: CausalGraph = graph if graph is not None else scm.graph  # type: ignore[union-attr]
    names = drawn.known_observed(as_names(protected, "protected"), "protected")
    if not names:
        raise InputError("Nothing is protected; name the variables whose change is imagined.")
    nodes = {column: node_of(column, drawn.nodes) for column in map(str, table.columns)}
    known = table[[column for column in table.columns if nodes[str(column)] in drawn.observed]].reset_index(drop=True)
    missing = next((name for name in (*names, outcome) if name not in map(nodes.get, known.columns)), None)
    if missing is not None:
        raise InputError(f"The table has no column of {missing!r}; add it, or name a node that the table shows.")
    if outcome in names:
        raise InputError(f"{outcome!r} is the outcome and protected at once; name other protected variables.")
    near = [node for node in causes_of(drawn, names, outcome) if node not in map(nodes.get, known.columns)]
    if near:
        raise InputError(f"The table has no column of {near[0]!r}, beside which the law of A differs; add it.")
    for column in known.columns:
        check_cells(known[column])
    ignored = [column for column in table.columns if column not in known.columns]
    asked = Asked.of(model, known, outcome, ignored, inputs)
    levels = Levels.of(known[[column for column in known.columns if nodes[column] in names]], generator)
    if len(levels) < 2:
        raise InputError(f"{names[0]!r} is the same in all {len(known)} rows; pass rows that show another value, too.")
    read = {nodes[column] for column in asked.inputs}
    own_law = not levels.listed and outcome not in {parent for name in names for parent in drawn.parents(name)}
    part = _needed_part(drawn, names, read, outcome, own_law=own_law)
    needed = known[[column for column in known.columns if nodes[str(column)] in part.nodes and column != outcome]]
    if gaps := [str(column) for column in needed.columns if needed[column].isna().any()]:
        count, hold = int(needed.isna().any(axis=1).sum()), "holds" if len(gaps) == 1 else "hold"
        raise InputError(
            f"{as_list(gaps, 3)} {hold} no value in {count} of {len(needed)} rows, and worlds are imagined from whole "
            "rows; drop or impute those rows first."
        )
    if scm is None:
        rows = sample_with_every_label(known, _MODEL_ROWS, generator)
        scm = fit_scm(part, rows, random_state=int(generator.integers(2**31)))
    ratio = density_ratio(scm, drawn, names, outcome, levels, known, generator)
    worlds = Worlds(scm, names, asked.inputs, levels, ratio, int(generator.integers(2**31)), unknown=(outcome,))
    if lacking := [column for column in worlds.columns if column not in map(str, known.columns)]:
        raise InputError(
            f"Table and graph lack the column {lacking[0]!r}, which the causal model imagines rows from; add it to "
            "both, or make it latent."
        )
    return asked, worlds, known


def _needed_part(
    graph: CausalGraph, protected: tuple[str, ...], inputs: Collection[str], outcome: str, *, own_law: bool
) -> CausalGraph:
    """Return the nodes between A and what the model reads, with their parents; all others have no equation here.

    What comes before A stays as it is in every world, so nothing has to be known of how it came about. The same holds
    for the outcome where it acts on nothing that is read. ``own_law``: the law of A given its parents is needed, too.
    One of several protected nodes that follows another is made in any case: the other may change alone.
    """
    moved = (graph.descendants(protected) & graph.ancestors([*inputs, *protected])) - set(protected)
    made = set(moved) | {node for node in protected if own_law or graph.ancestors([node]) & ({*protected} - {node})}
    if any(outcome in graph.parents(node) for node in moved):
        made.add(outcome)
    near = {parent for node in made for parent in graph.parents(node)}
    kept = {*inputs, *protected, *made, *near, *causes_of(graph, protected, outcome)}
    return CausalGraph(
        tuple(node for node in graph.nodes if node in kept),
        tuple(edge for edge in graph.directed if edge[1] in made),
        tuple(edge for edge in graph.bidirected if set(edge) <= kept),
        tuple(edge for edge in graph.undirected if set(edge) <= kept),
        graph.latent & kept,
    )
