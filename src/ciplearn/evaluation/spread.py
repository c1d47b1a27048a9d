"""How far answers spread over interventions, and how much each row has to do with the estimate.

With h(w, a′) = E[Ŷ*_{a′} | W = w] and μ(w) its mean over a′, let ψ(w, a′) = (h(w, a′) − μ(w))². VCF is the mean of ψ
over points and interventions. Where the law of A is that of the rows, a row counts twice: as a point, through the mean
of ψ over a′, and as a value of A, through the mean of ψ over w. Its influence on the estimate is the sum of both,

    ζ(w, a) = E_{a′} ψ(w, a′) − VCF  +  E_{w′} ψ(w′, a) − VCF,

and the error of the estimate is that of a mean of ζ over rows. Without the second term, all points would share the
error of the estimated law and no interval would show it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ciplearn.evaluation.interventions import InterventionLaw, Interventions, SeenLaw
from ciplearn.scm.kinds import Array


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
    # per_value, weight: (distinct values,): sums over points of ψ times the weight of its intervention, and of these
    # weights, by value of A; None where the law is not that of the rows
    per_value: Array | None
    weight: Array | None

    @classmethod
    def of(cls, squares: Array, weights: Array, given: Interventions, law: InterventionLaw) -> Spread:  # (d, k), (k,)
        """Sum ψ up."""
        per_point = squares @ weights
        if given.seen is None or not isinstance(law, SeenLaw):
            return cls(per_point, None, None)
        each = np.broadcast_to(weights, squares.shape).ravel()
        values, size = given.seen.ravel(), len(law.distinct)
        return cls(
            per_point,
            np.bincount(values, weights=each * squares.ravel(), minlength=size),
            np.bincount(values, weights=each, minlength=size),
        )

    @classmethod
    def joined(cls, parts: list[Spread]) -> Spread:
        """Put the points of several chunks together."""
        per_point = np.concatenate([part.per_point for part in parts])
        values = [part.per_value for part in parts if part.per_value is not None]
        weights = [part.weight for part in parts if part.weight is not None]
        if not values:
            return cls(per_point, None, None)
        return cls(per_point, np.sum(values, axis=0), np.sum(weights, axis=0))

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
        if self.per_value is not None and self.weight is not None and isinstance(law, SeenLaw):
            by_value = (self.per_value - value * self.weight) * (n_rows / d) / law.counts
            zeta += by_value[law.code]
        return zeta
