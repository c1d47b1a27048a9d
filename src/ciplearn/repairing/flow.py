"""`repair`: the best invariant predictor for any fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.random import RandomState, as_generator
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import Names
from ciplearn.repairing.choice import CORRECTION, chosen
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.engine import Engine, Formula
from ciplearn.repairing.ground import ground
from ciplearn.repairing.measured import Curve
from ciplearn.repairing.repaired import Repaired
from ciplearn.repairing.worlds import Worlds
from ciplearn.scm import StructuralCausalModel

# Rows that strengths are measured on, and that intervals rest on.
_MEASURED_ROWS = 500
_CALIBRATION_ROWS = 1000


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

    Returns
    -------
    Repaired

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
    >>> repaired.at(strength=0).predict(people).tolist() == model.predict(people[read]).tolist()
    True
    """
    generator = as_generator(random_state)
    asked, worlds, known = ground(model, table, graph, outcome, protected, scm, inputs, generator)
    notes = _notes(worlds)
    choice = chosen(asked, worlds, known, generator)
    engine: Engine = Formula(asked, worlds)
    if choice.rests_on == CORRECTION:
        engine = Correction.of(asked, worlds, known, generator)
    places = np.sort(generator.permutation(len(known))[:_MEASURED_ROWS])
    measured = Curve.of(engine, worlds, known.iloc[places])
    notes += (choice.note, *([] if choice.floor is None else [str(choice.floor)]))
    found = Repaired(
        asked,
        worlds,
        engine,
        measured,
        outcome,
        rests_on=choice.rests_on,
        floor=choice.floor,
        notes=notes,
        table=known,
    )
    several = asked.classes is None and asked(known.head(1)).shape[1] > 1
    return found if several else found.calibrated(known.iloc[generator.permutation(len(known))[:_CALIBRATION_ROWS]])


def _notes(worlds: Worlds) -> tuple[str, ...]:
    scm = worlds.scm
    who, graph = as_list(worlds.protected), scm.graph
    moved = scm.between(worlds.protected, worlds.inputs)
    if not moved and not set(scm.columns(worlds.protected)) & set(worlds.inputs):
        return (
            f"The model reads neither {who} nor anything that {who} acts on, so every strength is the model itself.",
        )
    after = set(scm.columns(sorted(graph.descendants(worlds.protected) - graph.latent)))
    if set(worlds.inputs) <= after:
        return (
            f"Everything that the model reads comes from {who}: what is left of a strict prediction rests on the noise "
            "that the causal model reads off the rows, and on nothing else.",
        )
    return ()
