"""Interventions: which values of A are imagined, how far answers spread over them, and whether there are data there.

With h(w, a′) = E[Ŷ*_{a′} | W = w] and μ(w) its mean over a′, let ψ(w, a′) = (h(w, a′) − μ(w))². VCF is the mean of ψ
over points and interventions. Where the law of A is that of the rows, a row counts twice: as a point, through the mean
of ψ over a′, and as a value of A, through the mean of ψ over w. Its influence on the estimate is the sum of both,

    ζ(w, a) = E_{a′} ψ(w, a′) − VCF  +  E_{w′} ψ(w′, a) − VCF,

and the error of the estimate is that of a mean of ζ over rows. Without the second term, all points would share the
error of the estimated law and no interval would show it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.spatial import cKDTree

from ciplearn._core.arguments import several
from ciplearn._core.columns import holds_numbers, takes_few_values
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm import StructuralCausalModel
from ciplearn.scm.kinds import Array

_QUANTILES = (0.1, 0.5, 0.9)  # quantiles that stand for a number with many values
MAX_REFERENCE = 5000  # neighbours are looked up among at most this many reference rows

# Up to this many columns of the table neighbours are looked up in a tree; beyond, where trees do not prune, blocks of
# all distances are formed, small enough for a processor's cache. A label is one column: its zeros and ones prune well.
_TREE_COLUMNS, _BLOCK = 8, 32
TAIL = 0.01  # the share of reference rows that the rule itself would call outside


@dataclass(frozen=True, eq=False)
class Interventions:
    """The joint values that some points get, k per point."""

    values: pd.DataFrame  # points × k rows, the k values of a point together; one column per protected column
    # (points, k): where the law is that of the rows: the place of each value among its distinct values
    seen: Array | None = None


@dataclass(frozen=True, eq=False)
class InterventionLaw:
    """A joint law of all protected variables, and what every point gets of it.

    It is a list of values, or of the rows' values as whole rows, so that several protected variables keep their
    dependence. Where the rows hold at most k distinct values, every point gets all of them with their shares as
    weights, and nothing is drawn. Else every point gets k rows' values, and over all points each row is drawn equally
    often. Either way a law of the rows is an estimate, and all points share its error: see `Spread`.
    """

    weights: Array  # (k,): the probability that each of a point's values stands for
    correction: float  # makes the weighted variance over a point's values an unbiased estimate of the law's
    every: bool  # whether each point gets every value with its share, so that none is a draw
    distinct: pd.DataFrame  # distinct joint values
    code: Array | None = None  # (n,): where the law is that of the rows, the place of each row's value among them
    drawn: Callable[[int, Generator], Any] | None = None  # a user's function (n, generator) -> frame of joint values

    @classmethod
    def of_rows(cls, values: pd.DataFrame, k: int) -> InterventionLaw:
        """Find the distinct values."""
        code = values.groupby(list(values.columns), sort=False, dropna=False, observed=True).ngroup().to_numpy()
        _, first, counts = np.unique(code, return_index=True, return_counts=True)
        n = len(code)
        weights: tuple[Array, float, bool] = (counts / n, n / (n - 1), True) if len(first) <= k else _equal(k)
        return cls(*weights, values.iloc[first].reset_index(drop=True), code)

    @property
    def k(self) -> int:
        """How many values a point gets."""
        return len(self.weights)

    def draw(self, points: int, generator: Generator) -> Interventions:
        """Give all values to every point, or draw: rows from one shuffling after the other."""
        n = points * self.k
        if self.drawn is not None:
            values = _as_values(self.drawn(n, generator), tuple(self.distinct.columns))
            if len(values) != n:
                why = f"interventions must return {n} rows when asked for them, got {len(values)}"
                raise InputError(f"{why}; use the first argument as the number of rows.")
            return Interventions(values)
        if self.every or self.code is None:
            seen = np.tile(np.arange(self.k), (points, 1))
        else:
            order = [generator.permutation(len(self.code)) for _ in range(-(-n // len(self.code)))]
            seen = self.code[np.concatenate(order)[:n]].reshape(points, self.k)
        values = self.distinct.iloc[seen.ravel()].reset_index(drop=True)
        return Interventions(values, None if self.code is None else seen)


def as_law(interventions: Any, rows: pd.DataFrame, columns: Sequence[str], k: int) -> InterventionLaw:
    """Read what a user gave: None for the values seen, a function for a law, values for a grid."""
    if interventions is None:
        return InterventionLaw.of_rows(rows[list(columns)], k)
    if callable(interventions):
        try:
            inspect.signature(interventions).bind(0, None)
        except TypeError:
            raise InputTypeError(
                f"interventions must be a function (n, generator) -> frame, got {interventions!r}, which does not "
                "take these two."
            ) from None
        except ValueError:
            # Some functions that are written in C do not say what they take.
            pass
        return InterventionLaw(*_equal(k), rows[list(columns)].iloc[:0], drawn=interventions)
    grid = _as_values(interventions, tuple(columns))
    if len(grid) < 2:
        raise InputError(f"A grid of interventions needs at least 2 values, got {len(grid)}; a variance needs two.")
    return InterventionLaw(np.full(len(grid), 1 / len(grid)), 1.0, True, grid)


def _equal(k: int) -> tuple[Array, float, bool]:
    return np.full(k, 1 / k), k / (k - 1), False


def _as_values(given: Any, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return joint values as a frame with exactly the protected columns."""
    if isinstance(given, pd.DataFrame):
        missing = [column for column in columns if column not in given.columns]
        if missing:
            raise InputError(f"interventions lacks the protected column {missing[0]!r}; add it to the frame.")
        return given[list(columns)].reset_index(drop=True)
    if isinstance(given, str) or not np.iterable(given):
        raise InputTypeError(
            "interventions must be None, a frame or list of values, or a function (n, generator) -> frame, got "
            f"{given!r}."
        )
    if len(columns) == 1:
        return pd.DataFrame({columns[0]: list(given)})
    array = np.asarray(given)
    if array.ndim != 2 or array.shape[1] != len(columns):
        raise InputError(f"interventions must say a value for each of {', '.join(columns)}; pass a frame with these.")
    return pd.DataFrame(array, columns=list(columns))


def compared_values(
    table: pd.DataFrame, scm: StructuralCausalModel, name: str, values: Mapping[str, Sequence[Any]]
) -> list[Any]:
    """Return the values of a protected variable that are compared: labels all, of many numbers three quantiles."""
    columns = scm.columns([name])
    if name in values:
        listed = several(values[name], f"values of {name}")
        if len(listed) < 2:
            raise InputError(f"values names {len(listed)} value of {name}, and a pair needs two; name at least two.")
        return listed
    if len(columns) > 1:
        raise InputError(f"{name} is a vector, which has no levels or quantiles; name values={{{name!r}: [...]}}.")
    column = table[columns[0]].dropna()
    if takes_few_values(column):
        return sorted(column.unique().tolist(), key=lambda level: (str(type(level)), level))
    return list(dict.fromkeys(column.quantile(_QUANTILES, interpolation="nearest").tolist()))


def pairs_of(
    levels: Mapping[str, Sequence[Any]], *, crossings: bool = True
) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]], list[tuple[int, int]]]]:
    """Iterate over protected variables, alone and by twos: their settings, and which two differ in every variable."""
    for family in [*((name,) for name in levels), *(combinations(levels, 2) if crossings else ())]:
        settings = [dict(zip(family, each, strict=True)) for each in product(*(levels[name] for name in family))]
        differ = [
            (i, j)
            for (i, one), (j, two) in combinations(enumerate(settings), 2)
            if all(np.any(np.asarray(one[name] != two[name])) for name in family)
        ]
        yield family, settings, differ


def squared_deviations(answers: Array, weights: Array, correction: float) -> Array:  # (d, k, m, q), (k,) -> (d, k, q)
    """ψ of each point and each intervention, for answers under m draws of the noise.

    The weighted mean over interventions estimates Var_{a′} h without bias. A mean over m draws still holds 1/m of the
    variance of the draws; it is estimated from their own scatter and taken off, so that ψ may fall below zero.
    """
    centred = _centred(answers, weights)
    mean = centred.mean(axis=2)
    squares = np.square(mean)
    m = answers.shape[2]
    if m > 1:
        squares -= np.square(centred - mean[:, :, None]).sum(axis=2) / (m * (m - 1))
    return correction * squares


def disagreements(decisions: Array, weights: Array, correction: float) -> Array:  # (d, k, m), (k,) -> (d, k)
    """Half of P(D_{a′} ≠ D_{a″}) for a given a′, so that its mean over a′ is Var_{a′} D: of each draw of the noise."""
    squares = np.square(_centred(decisions[..., None].astype(np.float64), weights)[..., 0])
    return correction * squares.mean(axis=2)


def _centred(answers: Array, weights: Array) -> Array:
    # Relative to the first answer: one that never changes then has deviations of zero to the last bit.
    shifted = answers - answers[:, :1]
    return shifted - np.einsum("k,dkmq->dmq", weights, shifted)[:, None]


@dataclass(frozen=True, eq=False)
class Spread:
    """Sums of ψ by point and by value of A."""

    per_point: Array  # (d,): means of ψ over interventions
    # (2, distinct values): sums over points of ψ times the weight of its intervention, and of these weights, by value
    # of A; None where the law is not that of the rows
    per_value: Array | None

    @classmethod
    def of(cls, squares: Array, weights: Array, given: Interventions, law: InterventionLaw) -> Spread:  # (d, k), (k,)
        """Sum ψ up."""
        per_point = squares @ weights
        if given.seen is None:
            return cls(per_point, None)
        each = np.broadcast_to(weights, squares.shape).ravel()
        values, size = given.seen.ravel(), len(law.distinct)
        sums = [np.bincount(values, weights=each * counted, minlength=size) for counted in (squares.ravel(), 1.0)]
        return cls(per_point, np.stack(sums))

    @classmethod
    def joined(cls, parts: list[Spread]) -> Spread:
        """Put the points of several chunks together."""
        values = [part.per_value for part in parts if part.per_value is not None]
        return cls(np.concatenate([part.per_point for part in parts]), np.sum(values, axis=0) if values else None)

    @property
    def value(self) -> float:
        """The mean of ψ."""
        return float(self.per_point.mean())

    def influence(self, places: Array, n_rows: int, law: InterventionLaw) -> Array:  # (d,) -> (n_rows,)
        """ζ of each row: the mean of ``value + ζ`` over rows behaves like the estimate.

        Where fewer rows are points than there are rows, each point stands for n / d of them.
        """
        d, value = len(self.per_point), self.value
        zeta = np.zeros(n_rows)
        zeta[places] = (self.per_point - value) * (n_rows / d)
        if self.per_value is not None and law.code is not None:
            squares, weights = self.per_value
            by_value = (squares - value * weights) * (n_rows / d) / np.bincount(law.code)
            zeta += by_value[law.code]
        return zeta


@dataclass(frozen=True)
class Support:
    """Where the reference rows are: nothing in the data says how a predictor should behave elsewhere.

    Numbers are divided by their standard deviation, two different labels are one unit apart, and a row is outside if
    its nearest reference row is farther away than the nearest other row is for all but one in a hundred of the
    reference rows themselves. Since the distance covers all columns at once, the nearest row is one with similar
    conditioning variables.
    """

    places: Array  # (m, c)
    columns: tuple[str, ...]
    scale: dict[str, float]
    levels: dict[str, pd.Index]
    radius: float

    @classmethod
    def of(cls, reference: pd.DataFrame) -> Support:
        """Learn the support from reference rows."""
        if len(reference) > MAX_REFERENCE:
            chosen = np.random.default_rng(0).choice(len(reference), MAX_REFERENCE, replace=False)
            reference = reference.iloc[np.sort(chosen)]
        scale, levels = {}, {}
        for column in reference.columns:
            if holds_numbers(reference[column]):
                scale[column] = float(reference[column].to_numpy(dtype=np.float64).std()) or 1.0
            else:
                levels[column] = pd.Index(reference[column].astype(object).unique())
        places = _places(reference, tuple(reference.columns), scale, levels)
        # The nearest row is the row itself, the second nearest is another.
        gaps = _nearest(places, places, rank=min(2, len(places)), tree=len(reference.columns) <= _TREE_COLUMNS)
        return cls(places, tuple(reference.columns), scale, levels, float(np.quantile(gaps, 1 - TAIL)))

    def holds(self, frame: pd.DataFrame) -> Array:  # (n,), boolean
        """Tell which rows are inside."""
        places = _places(frame, self.columns, self.scale, self.levels)
        # A hair more than the radius: for discrete data the radius may be exactly zero, or exactly one step.
        within = self.radius * (1 + 1e-6) + 1e-6
        tree = len(self.columns) <= _TREE_COLUMNS
        return _nearest(places, self.places, rank=1, tree=tree, within=within) <= within


def _nearest(rows: Array, reference: Array, rank: int, tree: bool, within: float = np.inf) -> Array:
    """Distance of each row to the reference row of some rank of nearness, from 1; a tree says inf beyond ``within``."""
    if tree:
        return np.asarray(cKDTree(reference).query(rows, k=[rank], distance_upper_bound=within)[0][:, 0])
    # |row|² − 2 row·reference + |reference|², the last two by one product; far from the origin they would cancel.
    middle = reference.mean(axis=0)
    rows, reference = rows - middle, reference - middle
    lifted = np.concatenate([-2 * reference, np.square(reference).sum(axis=1)[:, None]], axis=1).T
    nearest = np.square(rows).sum(axis=1)
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK] @ lifted
        for _ in range(1, rank):
            block[np.arange(len(block)), block.argmin(axis=1)] = np.inf
        nearest[start : start + _BLOCK] += block.min(axis=1)
    return np.sqrt(np.maximum(nearest, 0))


def _places(
    frame: pd.DataFrame, columns: tuple[str, ...], scale: dict[str, float], levels: dict[str, pd.Index]
) -> Array:
    parts = []
    for column in columns:
        if column in scale:
            parts.append(frame[column].to_numpy(dtype=np.float64)[:, None] / scale[column])
            continue
        codes = levels[column].get_indexer(pd.Index(frame[column].astype(object)))
        onehot = np.zeros((len(frame), len(levels[column]) + 1))
        # 1/√2 puts two different labels one unit apart; a label never seen is its own place.
        onehot[np.arange(len(frame)), codes] = np.sqrt(0.5)
        parts.append(onehot)
    return np.concatenate(parts, axis=1)
