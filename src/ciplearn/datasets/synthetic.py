"""Models of the story that the pages tell and of the paper [quinzan2024], and the min-max scaling of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.stats import norm, uniform

from ciplearn._core.arguments import one_of, whole
from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.scm import Additive, GumbelMax, Mechanism, StructuralCausalModel, Vector
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import LatentMechanism, Parents

_CONFOUNDED = "Z -> A, Z -> L, A -> L, Z -> Y, A -> Y, L -> Y"

_STORY = "region -> {age training income}, {sex age} -> {training hours income}, {training hours} -> income"


def applicants() -> StructuralCausalModel:
    """Return the model of the story: a bank predicts the income of people who apply for a loan.

    Nobody's answer should depend on sex or age. Both act on training and hours, which act on income; the region, coast
    or inland, acts on age, training and income. What is left of training and hours is a person's own::

        age      = 42 + 6 [inland] + U,                                 U ~ U(-20, 20)
        training = 12 + 2 [m] + 2 [coast] - 0.06 (age - 42) + U,        U ~ N(0, 2)
        hours    = 34 + 6 [m] - 0.1 (age - 42) + U,                     U ~ N(0, 4)
        income   = 2 training + 0.8 hours + 4 [m] + 0.3 (age - 42) + 6 [coast] - 20 + U,   U ~ N(0, 4)

    Training in years, hours per week, income in thousands per year. These people are made up.

    >>> from ciplearn import datasets
    >>> sorted(datasets.applicants().sample(2, random_state=0).columns)
    ['age', 'hours', 'income', 'region', 'sex', 'training']
    """

    def income(p: Parents) -> Array:
        earned = 2 * p["training"] + 0.8 * p["hours"] - 20
        return earned + 4 * (p["sex"] == "m") + 0.3 * (p["age"] - 42) + 6 * (p["region"] == "coast")

    return StructuralCausalModel(
        CausalGraph.from_edges(_STORY),
        equations={
            "region": GumbelMax(["coast", "inland"], [0.5, 0.5]),
            "sex": GumbelMax(["f", "m"], [0.5, 0.5]),
            "age": Additive(lambda p: 42 + 6 * (p["region"] == "inland")),
            "training": Additive(
                lambda p: 12 + 2 * (p["sex"] == "m") + 2 * (p["region"] == "coast") - 0.06 * (p["age"] - 42)
            ),
            "hours": Additive(lambda p: 34 + 6 * (p["sex"] == "m") - 0.1 * (p["age"] - 42)),
            "income": Additive(income),
        },
        noise={"age": uniform(-20, 40), "training": norm(0, 2), "hours": norm(0, 4), "income": norm(0, 4)},
    )


def people_of_the_story(rows: int = 4000) -> pd.DataFrame:
    """Draw the table that the README, the demo and the workbench begin with, so that all come to the same figures."""
    return applicants().sample(rows, random_state=0).round(1)


def first_synthetic() -> StructuralCausalModel:
    """Return the model of the first synthetic experiment.

    Z ~ N(0, 1), A = Z² + ε_A, L = exp(−A²/2) sin(2A) + 2Z + ε_L / 5, Y = exp(−LZ) sin(2LZ) / 2 + 5A + ε_Y / 5, with
    ε_A ~ N(0, 1) and ε_L, ε_Y ~ N(0, 0.1). The plus before ε_L is lost in print.

    >>> from ciplearn import datasets
    >>> datasets.first_synthetic().sample(3, random_state=0).shape
    (3, 4)
    """
    return StructuralCausalModel(
        CausalGraph.from_edges(_CONFOUNDED),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: p["Z"] ** 2),
            "L": Additive(lambda p: np.exp(-(p["A"] ** 2) / 2) * np.sin(2 * p["A"]) + 2 * p["Z"], 1 / 5),
            "Y": Additive(lambda p: _wave(p["L"] * p["Z"], 2) + 5 * p["A"], 1 / 5),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.1), "Y": norm(0, 0.1)},
    )


def scenario_1(sign: str = "-") -> StructuralCausalModel:
    """Return the model of scenario 1.

    Z ~ N(0, 1), A = exp(∓Z²/2) sin(2Z) + ε_A, L = (A + Z / 10) ε_L, Y = A + L + sin(Z) / 10, with ε_A, ε_L ~ N(0, 1).
    Y has no noise, as printed.

    ``sign``, "-" or "+": in the exponent of A. The paper prints a plus, with which A has no mean and one outlier
    flattens the scaled data; the minus is what its results were computed with.

    >>> from ciplearn import datasets
    >>> datasets.scenario_1().graph.parents("L")
    ('A', 'Z')
    """
    return StructuralCausalModel(
        CausalGraph.from_edges(_CONFOUNDED),
        equations={
            "Z": Additive(),
            "A": Additive(_bump(sign)),
            "L": lambda p, u: (p["A"] + 0.1 * p["Z"]) * u,
            "Y": Additive(lambda p: p["A"] + p["L"] + 0.1 * np.sin(p["Z"])),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(), "Y": 0.0},
        inverses={"L": lambda p, v: v / (p["A"] + 0.1 * p["Z"])},
    )


def scenario_2(sign: str = "-") -> StructuralCausalModel:
    """Return the model of scenario 2.

    Z and A as in `scenario_1`, L = exp(−A²/2) ε_L + 2Z, Y = sin(ZL) exp(−ZL) / 2 + ε_Y / 5, with ε_L ~ N(0, 1) and
    ε_Y ~ N(0, 0.1). Where ``|A| > 6``, which the printed sign makes common, ε_L vanishes in the rounding of L: keep
    the noise with ``sample_units`` there.

    >>> from ciplearn import datasets
    >>> datasets.scenario_2().sample(3, random_state=0).shape
    (3, 4)
    """

    def l_noise(p: Parents, v: Array) -> Array:
        readable = np.abs(p["A"]) <= 6  # beyond, rounding errors times exp(A²/2) are as large as the noise
        factor = np.exp(np.where(readable, p["A"], 0) ** 2 / 2)
        return np.where(readable, (v - 2 * p["Z"]) * factor, np.nan)

    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> L, A -> L, Z -> Y, L -> Y"),
        equations={
            "Z": Additive(),
            "A": Additive(_bump(sign)),
            "L": lambda p, u: np.exp(-(p["A"] ** 2) / 2) * u + 2 * p["Z"],
            "Y": Additive(lambda p: _wave(p["Z"] * p["L"], 1), 1 / 5),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(), "Y": norm(0, 0.1)},
        inverses={"L": l_noise},
    )


def veitch_causal() -> StructuralCausalModel:
    """Return the causal model of the comparison with Veitch et al.; Z is hidden.

    Z ~ N(0, 1), A = sin(Z / 10) + ε_A, X = exp(−A/2) sin(A) + ε_X / 10, Y = exp(−X) sin(2XZ) / 10 + A² + ε_Y / 10, with
    ε_A, ε_X ~ N(0, 1) and ε_Y ~ N(0, 0.1).

    >>> from ciplearn import datasets
    >>> datasets.veitch_causal().graph.latent
    frozenset({'Z'})
    """
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, A -> X, X -> Y, A -> Y, Z -> Y", latent=["Z"]),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: np.sin(0.1 * p["Z"])),
            "X": Additive(lambda p: np.exp(-p["A"] / 2) * np.sin(p["A"]), 1 / 10),
            "Y": Additive(lambda p: 0.1 * np.exp(-p["X"]) * np.sin(2 * p["X"] * p["Z"]) + p["A"] ** 2, 1 / 10),
        },
        noise={"Z": norm(), "A": norm(), "X": norm(), "Y": norm(0, 0.1)},
    )


def veitch_anticausal() -> StructuralCausalModel:
    """Return the anti-causal model of the comparison with Veitch et al.; Z is hidden.

    Z ~ N(0, 1), A = sin(Z) / 5 + ε_A, Y = sin(Z) / 10 + ε_Y, X = A + Y + ε_X / 10, with ε_A, ε_Y ~ N(0, 0.1) and
    ε_X ~ N(0, 1).

    >>> from ciplearn import datasets
    >>> len(datasets.veitch_anticausal().sample(4, random_state=0))
    4
    """
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> Y, A -> X, Y -> X", latent=["Z"]),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: 0.2 * np.sin(p["Z"])),
            "Y": Additive(lambda p: 0.1 * np.sin(p["Z"])),
            "X": Additive(lambda p: p["A"] + p["Y"], 1 / 10),
        },
        noise={"Z": norm(), "A": norm(0, 0.1), "Y": norm(0, 0.1), "X": norm()},
    )


def multidimensional(size: int) -> StructuralCausalModel:
    """Return the model with a protected vector A of ``size`` numbers, in columns ``A[0]`` to ``A[size-1]``.

    Z ~ N(0, 1), A_i = Z² + ε_A,i, L = exp(−A_1/2) + Σ A_i sin(Z) + ε_L / 10, Y = exp(−A_2/2) Σ A_i + L Z + ε_Y / 10,
    with ε_A,i ~ N(0, 1) and ε_L, ε_Y ~ N(0, 0.1). ``size`` is at least 2: the equation of Y reads the second number.

    >>> from ciplearn import datasets
    >>> datasets.multidimensional(3).columns("A")
    ['A[0]', 'A[1]', 'A[2]']
    """
    size = whole(size, "size", minimum=2)
    return StructuralCausalModel(
        CausalGraph.from_edges(_CONFOUNDED),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: p["Z"][:, None] ** 2),
            "L": Additive(lambda p: np.exp(-p["A"][:, 0] / 2) + p["A"].sum(axis=1) * np.sin(p["Z"]), 1 / 10),
            "Y": Additive(lambda p: np.exp(-p["A"][:, 1] / 2) * p["A"].sum(axis=1) + p["L"] * p["Z"], 1 / 10),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.1), "Y": norm(0, 0.1)},
        kinds={"A": Vector(size)},
    )


def _bump(sign: str) -> Callable[[Parents], Array]:
    one_of(sign, "sign", ("-", "+"))
    factor = -0.5 if sign == "-" else 0.5
    return lambda p: np.exp(factor * p["Z"] ** 2) * np.sin(2 * p["Z"])


def _wave(product: Array, frequency: int) -> Array:
    return 0.5 * np.exp(-product) * np.sin(frequency * product)


@dataclass(frozen=True)
class MinMaxScaling:
    """v ↦ (v − low) / (high − low), column by column; columns of labels stay as they are.

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
        columns = [column for column in table.columns if column in self.low]
        return table.assign(**{column: (table[column] - self.low[column]) / self.width(column) for column in columns})

    def inverse_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Undo `transform`."""
        columns = [column for column in table.columns if column in self.low]
        return table.assign(**{column: table[column] * self.width(column) + self.low[column] for column in columns})

    def model(self, scm: StructuralCausalModel) -> StructuralCausalModel:
        """Return the same model on the scaled columns: scaled frames in, scaled frames out."""
        lines: dict[str, tuple[Any, Any]] = {}
        for node in scm.graph.observed:
            kind = scm.kinds[node]
            columns = kind.columns(node)
            if not isinstance(kind, Categories) and all(column in self.low for column in columns):
                low, width = (np.array([of(column) for column in columns]) for of in (self.low.__getitem__, self.width))
                lines[node] = (low, width) if isinstance(kind, Vector) else (low[0], width[0])
        equations: dict[str, Mechanism] = {}
        for node, mechanism in scm.mechanisms.items():
            scaled_as = _ScaledLatent if isinstance(mechanism, LatentMechanism) else _ScaledMechanism
            equations[node] = scaled_as(mechanism, node, lines)
        scaled = StructuralCausalModel(scm.graph, equations, kinds=scm.kinds)
        scaled.model_based, scaled.joint_noise = scm.model_based, scm.joint_noise
        scaled.misfits, scaled.ambiguities = scm.misfits, scm.ambiguities
        return scaled

    def predictor(self, model: Any, outcome: str) -> ScaledPredictor:
        """Return a predictor of the scaled outcome from scaled rows, made of one that works on unscaled ones."""
        if outcome not in self.low:
            raise InputError(f"outcome names {outcome!r}, which was not scaled; use one of {', '.join(self.low)}.")
        return ScaledPredictor(self, model, outcome)


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
