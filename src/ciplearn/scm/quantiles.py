"""All quantiles of a node at once: V = F̂⁻¹(U | pa) with U uniform.

F̂(v | pa) = G(F₀(v) | pa), where F₀ is the law of V without its parents, or of what a location-scale mechanism leaves
over, and G moves its ranks: at knots r_1 < r_2 < ... logistic regressions say logit G(r_k | pa) = logit r_k + f_k(pa),
and between them logit G is linear in logit r. Values that many rows share, the zeros of an amount or every count, keep
their probability: they take an interval of U, from which abduction draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from scipy.special import expit, logit

from ciplearn._core.errors import InputError
from ciplearn._core.rows import row_blocks
from ciplearn.scm.kinds import Array, Scalar, kept
from ciplearn.scm.location_scale import WIDTHS, FittedLocationScale, LocationScale
from ciplearn.scm.mechanism import Design, Mechanism, MechanismRecipe, NodeSample, Parents
from ciplearn.scm.smooth_ridge import SmoothFunction, legendre

# Knots at most, and the least distance between two of them.
_KNOTS, _LEAST_STEP = 19, 0.01

# Bumps of the logistic regressions, rows that they see, and steps of Newton's method for each.
_CENTRES, _ROWS, _STEPS, _LAST_STEP = 50, 8000, 6, 0.03

# Strengths of their ridge to choose from, and about how many rows choose.
_RIDGES, _RIDGE_ROWS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0), 2000

# Rows handled at a time when noise is read back or sent through.
_BLOCK = 16_384


@dataclass(frozen=True)
class SimultaneousQuantiles(MechanismRecipe):
    """V = F̂⁻¹(U | pa) with U uniform: any law that depends on the parents, increasing in one noise.

    ``base``: what is taken out first; without it F₀ is the law of V itself, which suits counts and values that repeat.

    >>> from ciplearn.scm import LocationScale, SimultaneousQuantiles
    >>> SimultaneousQuantiles(LocationScale()).label
    'quantiles around location-scale noise'
    """

    base: LocationScale | None = None

    @property
    def label(self) -> str:
        """The base's name."""
        return "quantiles" if self.base is None else f"quantiles around {self.base.label}"

    def fit(self, sample: NodeSample, generator: Generator, like: Any = None) -> FittedQuantiles:
        """Fit the base and then the ranks of what it leaves over."""
        if not isinstance(sample.kind, Scalar):
            raise InputError(f"{sample.node} is not one number, so it has no quantiles; use another recipe for it.")
        base = None if self.base is None else sample.fitted(self.base, generator, like and like.base)
        left = sample.target if base is None else base.residuals
        law = ObservedLaw.of(left)
        below, upto = law.interval(left)
        if like is None:
            # Shift, spread and asymmetry of the ranks choose the features.
            features = sample.smoother.features(legendre((below + upto - 1)[:, None]), WIDTHS, _CENTRES)
        else:
            features = like.movement.shift.features()
        knots = law.knots()
        few = np.sort(generator.permutation(sample.n)[:_ROWS])
        reached = upto[few, None] <= knots + 1e-12  # (n, k)
        solution = logistic_regressions(features(sample.matrix[few]), reached.astype(float), knots)
        return FittedQuantiles(sample.design, base, law, RankMovement(knots, features.function(*solution)))


@kept
@dataclass(frozen=True)
class ObservedLaw:
    """The law of a sample as a table of values with the ranks below and up to each.

    A value that occurs once has one rank, with a line to its neighbours; one that occurs more often has an interval of
    ranks. Where all values are whole, nothing lies between them.
    """

    values: Array  # (j,)
    below: Array  # (j,)
    upto: Array  # (j,)

    @classmethod
    def of(cls, sample: Array) -> Self:  # (n,)
        """Count the values."""
        values, counts = np.unique(sample, return_counts=True)
        upto = counts.cumsum() / len(sample)
        below = upto - counts / len(sample)
        law = cls(values, below, upto)
        if law.is_whole:
            return law
        middle = (below + upto) / 2
        return cls(values, *(np.where(counts > 1, ranks, middle) for ranks in (below, upto)))

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole."""
        return bool((self.values == np.round(self.values)).all())

    def interval(self, values: Array) -> tuple[Array, Array]:  # (n,) -> (n,), (n,)
        """Return the ranks below and up to some values; the nearest ones for values that were never seen."""
        at = np.searchsorted(self.values, values).clip(max=len(self.values) - 1)
        seen = self.values[at] == values
        between = np.interp(values, np.repeat(self.values, 2), np.stack([self.below, self.upto], axis=1).ravel())
        return np.where(seen, self.below[at], between), np.where(seen, self.upto[at], between)

    def quantile(self, ranks: Array) -> Array:  # (n,) -> (n,)
        """Return the values at some ranks."""
        at = np.searchsorted(self.upto, ranks).clip(max=len(self.values) - 1)
        earlier = (at - 1).clip(min=0)
        gap = self.below[at] - self.upto[earlier]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(gap > 0, (ranks - self.upto[earlier]) / gap, 1.0).clip(0, 1)
        between = self.values[earlier] + share * (self.values[at] - self.values[earlier])
        return np.where(ranks >= self.below[at], self.values[at], between)

    def knots(self) -> Array:  # (k,)
        """Return ranks strictly between 0 and 1: the edges of values that many rows share, then an even grid."""
        heavy = self.upto - self.below > 1 / (_KNOTS + 1)
        edges = np.concatenate([self.upto[heavy], self.below[heavy]])
        grid = np.arange(1, _KNOTS + 1) / (_KNOTS + 1)
        # A rank inside the interval of a value is the rank of no threshold: the value's own takes its place.
        at = np.searchsorted(self.upto, grid).clip(max=len(self.upto) - 1)
        grid = np.where(grid > self.below[at], self.upto[at], grid)
        kept: list[float] = []
        for rank in (*np.unique(edges), *grid):
            inside = _LEAST_STEP / 2 <= rank <= 1 - _LEAST_STEP / 2
            if inside and all(abs(rank - other) >= _LEAST_STEP for other in kept):
                kept.append(float(rank))
        return np.sort(kept or [0.5])


@kept
@dataclass(frozen=True)
class RankMovement:
    """G(r | x) with logit G(r_k | x) = logit r_k + f_k(x) at the knots.

    Between them logit G is linear in logit r; beyond the first and the last knot the shift stays what it is there.
    """

    knots: Array  # (k,)
    shift: SmoothFunction  # x -> (n, k)

    def at_knots(self, matrix: Array) -> Array:  # (n, k)
        """Return logit G at the knots."""
        # Regressions at neighbouring knots may cross by a little; sorting their answers lessens the error.
        return np.sort(logit(self.knots) + self.shift(matrix), axis=1)

    def forward(self, at_knots: Array, ranks: Array) -> Array:  # (n, k), (n,) -> (n,)
        """G(r | x)."""
        start, line = logit(self.knots), _finite_logit(ranks)
        knot = np.searchsorted(start, line, side="right") - 1
        moved = _on_lines(np.broadcast_to(start, at_knots.shape), at_knots, knot, line)
        return np.where((ranks > 0) & (ranks < 1), expit(moved), ranks)

    def back(self, at_knots: Array, moved: Array) -> Array:  # (n, k), (n,) -> (n,)
        """Return r with G(r | x) = u."""
        start, line = logit(self.knots), _finite_logit(moved)
        knot = (at_knots <= line[:, None]).sum(axis=1) - 1
        ranks = _on_lines(at_knots, np.broadcast_to(start, at_knots.shape), knot, line)
        return np.where((moved > 0) & (moved < 1), expit(ranks), moved)


def _finite_logit(ranks: Array) -> Array:
    return np.asarray(logit(ranks.clip(1e-15, 1 - 1e-15)))


def _on_lines(start: Array, end: Array, knot: Array, line: Array) -> Array:  # (n, k), (n, k), (n,), (n,) -> (n,)
    """Map each row's number along the lines that join (start_k, end_k); beyond the first and the last, by a shift."""
    rows, last = np.arange(len(line)), start.shape[1] - 1
    left, right = knot.clip(0, last), (knot + 1).clip(0, last)
    low, gap = start[rows, left], start[rows, right] - start[rows, left]
    rise = end[rows, right] - end[rows, left]
    inside = (knot >= 0) & (knot < last)
    slope = np.divide(rise, gap, out=np.ones_like(rise), where=inside & (gap > 0))
    return np.asarray(end[rows, left] + slope * (line - low))


def logistic_regressions(
    features: Array, reached: Array, knots: Array
) -> tuple[Array, Array]:  # (n, p), (n, k), (k,) -> (p, k), (k,)
    """Regressions with the offsets logit r_k from the middle knot outwards, each shrunk towards the one before it."""
    centre = features.mean(axis=0)
    n, size = features.shape
    rows = np.hstack([features - centre, np.ones((n, 1))])
    scale = float(features.var(axis=0).mean()) or 1.0
    offset, start = logit(knots), np.zeros(size + 1)
    # The strength of the ridge is scored on some rows, at the median and at the quartiles.
    middle, *quartiles = (int(np.abs(knots - rank).argmin()) for rank in (0.5, 0.25, 0.75))
    few = slice(None, None, max(1, n // _RIDGE_ROWS))

    def left_out(ridge: float) -> float:
        total = 0.0
        for k in {middle, *quartiles}:
            solution = _logistic(rows[few], reached[few, k], offset[k], start, ridge * scale)
            total += _left_out_loss(rows[few], reached[few, k], offset[k], solution, ridge * scale)
        return total

    ridge = min(_RIDGES, key=left_out) * scale
    solutions = {middle: _logistic(rows, reached[:, middle], offset[middle], start, ridge)}
    for k in [*range(middle + 1, len(knots)), *range(middle - 1, -1, -1)]:
        near = solutions[k - 1 if k > middle else k + 1]
        solutions[k] = _logistic(rows, reached[:, k], offset[k], near, ridge)
    table = np.stack([solutions[k] for k in range(len(knots))], axis=1)
    return table[:-1], table[-1] - centre @ table[:-1]


def _logistic(rows: Array, reached: Array, offset: float, near: Array, ridge: float) -> Array:
    """Newton's method for Σ log(1 + e^η) − y η + n ridge |β − β₀|² / 2, η = offset + φᵀβ + b."""
    penalty = np.full(rows.shape[1], len(rows) * ridge)
    penalty[-1] = 1e-6 * len(rows)
    solution = near
    for _ in range(_STEPS):
        p = expit(offset + rows @ solution)
        weights = np.maximum(p * (1 - p), 1e-4)
        curvature = (rows * weights[:, None]).T @ rows
        curvature[np.diag_indices_from(curvature)] += penalty
        step = np.linalg.solve(curvature, rows.T @ (reached - p) - penalty * (solution - near))
        solution = solution + step
        # A step leaves an error of the order of its square.
        if np.abs(rows[:256] @ step).max() < _LAST_STEP:
            break
    return np.asarray(solution)


def _left_out_loss(rows: Array, reached: Array, offset: float, solution: Array, ridge: float) -> float:
    """Return the mean log loss of rows left out, by one step of Newton's method from the solution."""
    eta = offset + rows @ solution
    p = expit(eta)
    weights = np.maximum(p * (1 - p), 1e-4)
    curvature = (rows * weights[:, None]).T @ rows + len(rows) * ridge * np.eye(rows.shape[1])
    leverage = np.einsum("ij,ij->i", rows @ np.linalg.inv(curvature), rows)
    eta = eta - leverage * (reached - p) / np.maximum(1 - leverage * weights, 1e-3)
    return float(np.mean(np.logaddexp(0, eta) - reached * eta))


@kept
@dataclass(frozen=True)
class FittedQuantiles(Mechanism):
    """V = F̂⁻¹(U | pa).

    Noise is a pair: U, and how far the value lies outside the values that were seen, 0 for nearly all.
    """

    design: Design
    base: FittedLocationScale | None
    law: ObservedLaw
    movement: RankMovement

    def draw(self, n: int, generator: Generator) -> Array:  # (n, 2)
        """Uniform numbers, nothing outside."""
        return np.column_stack([generator.uniform(size=n), np.zeros(n)])

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """F̂⁻¹(u | pa)."""
        if len(noise) == 0:
            return np.zeros(0)
        left = self._left(self.design.looked_up(self.movement.at_knots, parents), noise)
        return left if self.base is None else self.base.evaluate(parents, left)

    def recover(self, parents: Parents, value: Array) -> Array | None:
        """Return the one noise, where no value repeats."""
        left = value if self.base is None else self.base.recover(parents, value)
        below, upto = self.law.interval(left)
        return None if (upto > below).any() else self._noise_behind(parents, left, np.zeros(len(left)))

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Draw U uniformly from the interval that gives the value."""
        left = value if self.base is None else self.base.recover(parents, value)
        return self._noise_behind(parents, left, generator.uniform(size=len(left)))

    def quantiles(self, parents: Parents, levels: Array) -> Array:  # (k,) -> (n, k)
        """F̂⁻¹ at some levels."""
        moved, n = self.design.looked_up(self.movement.at_knots, parents), len(next(iter(parents.values())))
        left = np.empty((n, len(levels)))
        for part in row_blocks(n, _BLOCK):
            at_knots = moved(part)
            for i, level in enumerate(levels):
                left[part, i] = self.law.quantile(self.movement.back(at_knots, np.full(len(at_knots), level)))
        return left if self.base is None else self.base.at(parents, left)

    def ranks(self, parents: Parents, value: Array, generator: Generator) -> Array:  # (n,)
        """U itself."""
        return self.posterior(parents, value, generator)[:, 0]

    def _left(self, moved: Callable[[slice], Array], noise: Array) -> Array:
        left = np.empty(len(noise))
        for part in row_blocks(len(noise), _BLOCK):
            left[part] = self.law.quantile(self.movement.back(moved(part), noise[part, 0]))
        left = left + noise[:, 1]
        if not self.law.is_whole:
            return left
        # Ranks that fall together bring a row back by what is left over, which in other worlds leads below the least
        # count. Only rows that are beyond all that was seen, at the very ends of U, lie there.
        beyond = (noise[:, 0] <= 0) | (noise[:, 0] >= 1)
        return np.where(beyond, left, left.clip(self.law.values[0], self.law.values[-1]))

    def _noise_behind(self, parents: Parents, left: Array, share: Array) -> Array:
        below, upto = self.law.interval(left)
        noise, moved = np.zeros((len(left), 2)), self.design.looked_up(self.movement.at_knots, parents)
        for part in row_blocks(len(left), _BLOCK):
            at_knots = moved(part)
            low, high = (self.movement.forward(at_knots, ranks[part]) for ranks in (below, upto))
            noise[part, 0] = low + share[part] * (high - low)
        # What rounding, or a value beyond all that were seen, leaves over: the row comes back exactly.
        noise[:, 1] = left - self._left(moved, noise)
        return noise
