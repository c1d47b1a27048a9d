"""The doorway that all counterfactual measures share: points, their noise, and the predictor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.numbers import whole
from ciplearn.causal.names import Names, as_names
from ciplearn.evaluation.predictors import Predictor
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.action import plain
from ciplearn.scm.kinds import Array

# Counterfactual rows held at a time.
CHUNK_ROWS = 200_000

# Draws of the noise a point where it is not determined by the row.
DEFAULT_DRAWS = 100


@dataclass(frozen=True, eq=False)
class Points:
    """Rows with their noise, and a predictor that can be asked about them.

    Attributes
    ----------
    scm : StructuralCausalModel
    predictor : Predictor
    rows : DataFrame
        All rows that were passed, with the columns that the causal model knows.
    units : Units
        The points, a sample of the rows.
    """

    scm: StructuralCausalModel
    predictor: Predictor
    rows: pd.DataFrame
    units: Units

    @classmethod
    def of(
        cls,
        model: Any,
        scm: Any,
        rows: Any,
        changed: Sequence[str],
        n_points: int | None,
        n_draws: int | None,
        inputs: Sequence[str] | None,
        method: str | None,
        generator: Generator,
    ) -> Points:
        """Check everything once, choose the points, and do the abduction for what the predictor needs.

        That is the noise of nodes that an action on ``changed`` reaches and that the predictor reads, directly or
        through others. Noise that a row leaves open costs many draws, and no other noise can move a prediction.
        """
        if not isinstance(scm, StructuralCausalModel):
            raise InputTypeError(
                f"scm must be a StructuralCausalModel, got {type(scm).__name__}; estimate one with fit_scm(graph, df)."
            )
        table = scm.frame(rows) if isinstance(rows, Units) else rows
        if not isinstance(table, pd.DataFrame):
            raise InputTypeError(f"rows must be a pandas DataFrame, got {type(rows).__name__}; pass the table.")
        if table.empty:
            raise InputError("rows has no rows; pass at least two.")
        frame, ignored = known_columns(scm, table)
        predictor = Predictor.of(model, list(frame.columns), inputs, method, ignored)
        # Units may hold several draws of a row, so their frame may be longer than their index.
        n = len(rows.index)
        chosen = np.arange(n)
        if n_points is not None and n_points < n:
            chosen = np.sort(generator.choice(n, n_points, replace=False))
        picked = rows.take(chosen) if isinstance(rows, Units) else frame.iloc[chosen]
        kept = _behind(scm, frame.columns if predictor.inputs is None else predictor.inputs, changed)
        reached = (scm.graph.descendants(changed) - set(changed)) & kept
        units = scm.abduct(picked, nodes=reached, random_state=generator)
        if not units.exact and not isinstance(rows, Units):
            draws = DEFAULT_DRAWS if n_draws is None else whole(n_draws, "n_draws", minimum=1)
            units = scm.abduct(picked, nodes=reached, n_draws=draws, random_state=generator)
        return cls(scm, predictor, frame, units.only(kept))

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.units.index)

    def chunks(self, k: int) -> Iterator[Array]:
        """Iterate over places of points, few enough that k counterfactual rows of each fit."""
        size = max(1, CHUNK_ROWS // (k * self.units.draws))
        for start in range(0, self.n, size):
            yield np.arange(start, min(start + size, self.n))

    def had_been(self, places: Array, k: int, values: pd.DataFrame | None, generator: Generator) -> pd.DataFrame:
        """Return the counterfactual rows of some points under k joint values each; None leaves all as it was."""
        units = self.units.take(np.repeat(places, k))
        if values is None:
            return self.scm.predict(units, generator)
        kinds = self.scm.kinds
        nodes = [node for node in self.scm.graph.nodes if kinds[node].columns(node)[0] in values.columns]
        # Plain arrays: drawn values stand in the order of the units, whatever their labels are.
        settings = {node: plain(_setting(values[list(kinds[node].columns(node))]), kinds[node]) for node in nodes}
        return self.scm.do(settings).predict(units, generator)

    def averaged(self, answers: Array, points: int, k: int) -> Array:  # (points k draws, q) -> (points, k, q)
        """Average predictions over the draws of a point's noise: the inner expectation of VCF."""
        return answers.reshape(points, k, self.units.draws, -1).mean(axis=2)


def known_columns(scm: StructuralCausalModel, table: pd.DataFrame) -> tuple[pd.DataFrame, list[Any]]:
    """Split a table into the columns of the model's nodes and the names of all others, which nothing here reads."""
    known = table.columns.isin(scm.columns(scm.graph.observed))
    return table.loc[:, known], list(table.columns[~known])


def checked_protected(scm: Any, protected: Names) -> tuple[str, ...]:
    """Return the protected nodes, each known and observed."""
    if not isinstance(scm, StructuralCausalModel):
        raise InputTypeError(
            f"scm must be a StructuralCausalModel, got {type(scm).__name__}; estimate one with fit_scm(graph, df)."
        )
    names = scm.graph.known(as_names(protected, "protected"), "protected")
    if not names:
        raise InputError("Nothing is protected; name the variables whose change is imagined.")
    hidden = [name for name in names if name in scm.graph.latent]
    if hidden:
        raise InputError(f"protected names {hidden[0]!r}, which is latent; name observed nodes.")
    return names


def _behind(scm: StructuralCausalModel, columns: Iterable[str], changed: Sequence[str]) -> frozenset[str]:
    """Return the nodes in some columns, those that are set, and all their ancestors."""
    shown = set(columns)
    read = [node for node in scm.graph.observed if not shown.isdisjoint(scm.columns([node]))]
    # What is set needs its ancestors, too: a setting may be a function of its parents.
    return scm.graph.ancestors([*read, *changed])


def _setting(columns: pd.DataFrame) -> pd.DataFrame | pd.Series:
    return columns.iloc[:, 0] if columns.shape[1] == 1 else columns
