"""Min-max scaling as a step that is seen and can be undone.

The paper's kernel settings and every error and VCF it reports belong to columns scaled to [0, 1], the outcome included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm import Mechanism, StructuralCausalModel, Vector
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import LatentMechanism, Parents


@dataclass(frozen=True)
class MinMaxScaling:
    """v ↦ (v − low) / (high − low), column by column; columns of labels stay as they are.

    Attributes
    ----------
    low, high : mapping from column to number

    Examples
    --------
    >>> from ciplearn import datasets
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> scaled = datasets.MinMaxScaling.fit(table).transform(table)
    >>> float(scaled["Y"].min()), float(scaled["Y"].max())
    (0.0, 1.0)
    """

    low: Mapping[str, float]
    high: Mapping[str, float]

    @classmethod
    def fit(cls, table: pd.DataFrame) -> MinMaxScaling:
        """Read the smallest and the largest value of every column of numbers; a constant column maps to 0."""
        if not isinstance(table, pd.DataFrame) or table.empty:
            raise InputTypeError(f"table must be a DataFrame with rows, got {type(table).__name__}; pass a table.")
        low, high = {}, {}
        for column in table.columns:
            if holds_numbers(table[column]):
                low[column], high[column] = float(table[column].min()), float(table[column].max())
                if not np.isfinite(high[column] - low[column]):
                    raise InputError(f"Column {column!r} holds NaN or infinity; drop or impute those rows first.")
        return cls(low, high)

    def width(self, column: str) -> float:
        """High − low, or 1 for a constant column."""
        return (self.high[column] - self.low[column]) or 1.0

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Scale the columns that were fitted; others stay."""
        return table.assign(
            **{column: (table[column] - self.low[column]) / self.width(column) for column in self._in(table)}
        )

    def inverse_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Undo `transform`."""
        return table.assign(
            **{column: table[column] * self.width(column) + self.low[column] for column in self._in(table)}
        )

    def model(self, scm: StructuralCausalModel) -> StructuralCausalModel:
        """Return the same model on the scaled columns: scaled frames in, scaled frames out."""
        lines: dict[str, tuple[Any, Any]] = {}
        for node in scm.graph.observed:
            kind = scm.kinds[node]
            columns = kind.columns(node)
            if not isinstance(kind, Categories) and all(column in self.low for column in columns):
                low, width = (np.array([of(column) for column in columns]) for of in (self.low.__getitem__, self.width))
                lines[node] = (low, width) if isinstance(kind, Vector) else (low[0], width[0])
        equations: dict[str, Mechanism] = {
            node: (_ScaledLatent if isinstance(mechanism, LatentMechanism) else _ScaledMechanism)(
                mechanism, node, lines
            )
            for node, mechanism in scm.mechanisms.items()
        }
        scaled = StructuralCausalModel(scm.graph, equations, kinds=scm.kinds)
        scaled.model_based, scaled.joint_noise = scm.model_based, scm.joint_noise
        scaled.misfits, scaled.ambiguities = scm.misfits, scm.ambiguities
        return scaled

    def predictor(self, model: Any, outcome: str) -> ScaledPredictor:
        """Return a predictor of the scaled outcome from scaled rows, made of one that works on unscaled ones."""
        if outcome not in self.low:
            raise InputError(
                f"outcome names {outcome!r}, which was not scaled; the scaled columns are {', '.join(self.low)}."
            )
        return ScaledPredictor(self, model, outcome)

    def _in(self, table: pd.DataFrame) -> list[str]:
        return [column for column in table.columns if column in self.low]


@dataclass(frozen=True)
class ScaledPredictor:
    """`predict` on scaled rows, with the answer on the outcome's scale; see `MinMaxScaling.predictor`."""

    scaling: MinMaxScaling
    model: Any
    outcome: str

    def predict(self, rows: pd.DataFrame) -> Array:
        """Undo the scaling, ask the model, scale its answer."""
        raw = self.scaling.inverse_transform(rows)
        answer = self.model.predict(raw) if hasattr(self.model, "predict") else self.model(raw)
        low, width = self.scaling.low[self.outcome], self.scaling.width(self.outcome)
        return (np.asarray(answer, dtype=np.float64) - low) / width


@dataclass(frozen=True)
class _ScaledMechanism(Mechanism):
    """A mechanism that speaks scaled values and thinks in unscaled ones."""

    base: Any
    node: str
    lines: Mapping[str, tuple[Any, Any]]  # low and width of the nodes that are scaled

    def draw(self, n: int, generator: Generator) -> Array:
        return self.base.draw(n, generator)

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        value = self.base.evaluate(self._raw(parents), noise)
        low, width = self.lines.get(self.node, (None, None))
        return value if low is None else np.asarray((value - low) / width)

    def recover(self, parents: Parents, value: Array) -> Array | None:
        return self.base.recover(self._raw(parents), self._raw_value(value))

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        return self.base.posterior(self._raw(parents), self._raw_value(value), generator)

    def log_density(self, parents: Parents, value: Array) -> Array | None:
        density = self.base.log_density(self._raw(parents), self._raw_value(value))
        _, width = self.lines.get(self.node, (0.0, 1.0))
        return None if density is None else density + np.sum(np.log(width))

    def _raw(self, values: Parents) -> dict[str, Array]:
        raw = dict(values)
        for node in self.lines.keys() & values.keys():
            low, width = self.lines[node]
            raw[node] = values[node] * width + low
        return raw

    def _raw_value(self, value: Array) -> Array:
        return self._raw({self.node: value})[self.node]


@dataclass(frozen=True)
class _ScaledLatent(_ScaledMechanism, LatentMechanism):
    """A latent mechanism whose encoder is shown unscaled values; the latent node itself is never scaled."""

    @property
    def evidence(self) -> tuple[str, ...]:
        return self.base.evidence

    def infer(self, observed: Parents, generator: Generator) -> Array:
        return self.base.infer(self._raw(observed), generator)
