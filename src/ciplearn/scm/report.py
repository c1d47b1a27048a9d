"""How well mechanisms fit: scores on rows that they were not fitted to, a test of their noise, and the report.

If a mechanism is right, the rank U of the noise is uniform whatever the parents are, so E[P_k(U) | pa] = 0 for the
Legendre polynomials P_1, P_2, P_3 (shift, spread, asymmetry). The rows that the mechanism was fitted to learn to
predict P_k(U) from the parents, and the held-out rows tell whether that can be done: the mean of the products of
standardised prediction and P_k(U) is their correlation there, zero under independence whatever was learned. A
regression that is right but estimated leaves a small dependence, which ever more rows would find: tested is whether the
correlation is at most 0.1, corrected for the number of polynomials by Bonferroni. A mechanism of the wrong kind shows
0.3 to 0.7 where this was tried. Labels have 1[V = k] − p_k(pa) in place of P_k(U).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.stats import ks_2samp, norm

from ciplearn._core.plain_data import fields_as_data
from ciplearn.scm.kinds import Array, Categories, Kind, kept
from ciplearn.scm.mechanism import Mechanism, NodeSample
from ciplearn.scm.multinomial import GumbelMax
from ciplearn.scm.smooth_ridge import legendre

# Levels of the quantiles that stand for a law.
_QUANTILES = (np.arange(40) + 0.5) / 40

# Bumps of the regressions that predict noise, and the widths to choose from.
_CENTRES, _WIDTHS = 40, (0.2, 1.0)

# At most this share of right mechanisms fails the test of its noise, and the correlation that is allowed: estimation
# alone may leave it, and it hardly moves what is imagined.
LEVEL, _IMMATERIAL = 0.05, 0.1

# Fewer rows than this have no power.
_LEAST_ROWS = 40

# How many of the commonest labels are looked at, and the least probability that a residual is divided by.
_COMMONEST, _FLOOR = 6, 0.01


class Finding(NamedTuple):
    """A node, and a sentence about it.

    >>> from ciplearn.scm import Finding
    >>> Finding("L", "The noise of L still depends on A.").node
    'L'
    """

    node: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@kept
@dataclass(frozen=True)
class Alternative:
    """A mechanism that was tried for a node."""

    mechanism: str
    score: float  # on held-out rows, in the measure of its `NodeFit`
    behind: float  # how much worse than the best, in standard errors of the difference


@kept
@dataclass(frozen=True)
class NodeFit:
    """One line of the report."""

    node: str
    mechanism: str
    measure: str  # of the score: the share of CRPS that knowing the parents saves, or the gain in log-likelihood
    score: float  # on rows that were held out from a first fit; NaN for a node without parents
    # Between the observed law and the one that the mechanism makes of the observed parents, from 0 (the same) to 1:
    # the largest difference of distribution functions for numbers, total variation for labels.
    distance: float
    p_value: float = math.nan  # of the test, on held-out rows, that the parents hardly predict the recovered noise
    alternatives: tuple[Alternative, ...] = ()  # all that were tried, from simple to flexible
    misfit: str | None = None  # what is wrong, in a sentence
    ambiguity: str | None = None  # what data leave open, in a sentence
    tie: str | None = None  # the mechanism that predicts as well and imagines other values, see `variants`

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON-ready data; NaN as None."""
        return fields_as_data(self)


@kept
@dataclass(frozen=True)
class FitReport:
    """The mechanisms of an estimated model, node by node.

    ``notes``: what was decided about latent nodes, shared causes and missing values.

    >>> from ciplearn import datasets, fit_scm
    >>> world = datasets.applicants()
    >>> [fit.node for fit in fit_scm(world.graph, world.sample(400, random_state=0)).report.nodes]
    ['age', 'hours', 'income', 'region', 'sex', 'training']
    """

    nodes: tuple[NodeFit, ...]
    n_rows: int
    notes: tuple[str, ...] = ()

    @property
    def misfits(self) -> tuple[Finding, ...]:
        """The nodes whose mechanism does not fit."""
        return tuple(Finding(fit.node, fit.misfit) for fit in self.nodes if fit.misfit)

    @property
    def ambiguities(self) -> tuple[Finding, ...]:
        """The nodes of which data leave open what would have been."""
        return tuple(Finding(fit.node, fit.ambiguity) for fit in self.nodes if fit.ambiguity)

    def __str__(self) -> str:
        rows = [("node", "mechanism", "held-out score", "distance", "noise ⊥ parents")] if self.nodes else []
        lines = [f"Model-based: estimated from {self.n_rows} rows."]
        for fit in self.nodes:
            score = "" if np.isnan(fit.score) else f"{fit.measure} {fit.score:.3f}"
            p_value = "" if np.isnan(fit.p_value) else f"p = {fit.p_value:.3f}"
            p_value = "p < 0.001" if fit.p_value < 0.001 else p_value
            rows.append((fit.node, fit.mechanism, score, f"{fit.distance:.3f}", p_value))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        for fit in self.nodes:
            if len(fit.alternatives) > 1:
                tried = ", ".join(f"{other.mechanism} {other.score:.3f}" for other in fit.alternatives)
                lines.append(f"Tried for {fit.node}: {tried}.")
        lines += [f"Warning: {finding.sentence}" for finding in (*self.misfits, *self.ambiguities)]
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data; NaN as None."""
        return fields_as_data(self, misfits=self.misfits, ambiguities=self.ambiguities)


def law_distance(kind: Kind, node: str, observed: Array, made: Array) -> float:
    """Return the distance between two samples of a node; the largest over the numbers of a vector."""
    if isinstance(kind, Categories):
        size = len(kind.levels)
        one, two = (np.bincount(kind.codes(v, node), minlength=size) / len(v) for v in (observed, made))
        return float(np.abs(one - two).sum() / 2)
    one, two = observed.reshape(len(observed), -1), made.reshape(len(made), -1)
    return max(float(ks_2samp(one[:, c], two[:, c], method="asymp").statistic) for c in range(one.shape[1]))


def row_losses(mechanism: Mechanism, held_out: NodeSample, seen: Array) -> Array:  # (n,)
    """Return a proper loss of each held-out row: CRPS of numbers, minus log probability of labels.

    A mechanism that offers neither quantiles nor a density gets the loss of the law that ignores the parents.
    """
    if isinstance(held_out.kind, Categories):
        density = mechanism.log_density(held_out.values, held_out.target)
        return marginal_losses(held_out, seen) if density is None else -density
    quantiles = mechanism.quantiles(held_out.values, _QUANTILES)
    return marginal_losses(held_out, seen) if quantiles is None else _crps(held_out.target, quantiles)


def marginal_losses(held_out: NodeSample, seen: Array) -> Array:  # (n,)
    """Return the losses of the law of ``seen``, the node's values in the fit, which ignores the parents."""
    if isinstance(held_out.kind, Categories):
        base = np.log(held_out.kind.frequencies(seen, held_out.node))
        return np.asarray(-base[held_out.kind.codes(held_out.target, held_out.node)])
    return _crps(held_out.target, np.quantile(seen, _QUANTILES, axis=0).T)


def crps_of_draws(draws: Array, held_out: NodeSample) -> Array:  # (..., m) -> (n,)
    """Return the scores of laws of numbers that are known by m draws per row."""
    return _crps(held_out.target, np.moveaxis(np.quantile(draws, _QUANTILES, axis=-1), 0, -1))


def _crps(target: Array, quantiles: Array) -> Array:  # (n,) or (n, d), (..., k) -> (n,)
    """The continuous ranked probability score of each row, 2 ∫ ρ_τ(v − q_τ(pa)) dτ; small is good.

    A vector's is the mean over its numbers, each in units of its own spread.
    """
    gap = target[..., None] - quantiles
    loss = 2 * np.maximum(_QUANTILES * gap, (_QUANTILES - 1) * gap).mean(axis=-1)
    if target.ndim == 1:
        return np.asarray(loss)
    return np.asarray((loss / np.maximum(target.std(axis=0), np.finfo(float).tiny)).mean(axis=1))


def measure(kind: Kind) -> str:
    """What `score` is called."""
    return "log-likelihood gain" if isinstance(kind, Categories) else "CRPS skill"


def score(losses: Array, reference: Array, kind: Kind) -> float:  # (n,), (n,)
    """Compare mean losses with those of a law that ignores the parents: larger is better, 0 is no better than it."""
    base = float(reference.mean())
    if isinstance(kind, Categories):
        return base - float(losses.mean())
    return 1 - float(losses.mean()) / base if base > 0 else float("nan")


@dataclass(frozen=True)
class NoiseTest:
    """What the test of independence says; NaN where there is nothing to test, or too few rows."""

    p_value: float = math.nan  # that the correlation is at most 0.1
    dependence: float = math.nan  # the correlation of the noise with its prediction, largest over polynomials

    @property
    def fails(self) -> bool:
        """Whether the noise depends on the parents."""
        return self.p_value < LEVEL


def independence_of_noise(
    mechanism: Mechanism, train: NodeSample, held_out: NodeSample, generator: Generator
) -> NoiseTest:
    """Test the noise of a mechanism that was fitted to ``train`` on rows that it was not fitted to."""
    levels = None
    if isinstance(mechanism, GumbelMax):
        # The commonest labels, the same in all rows.
        p = np.exp(mechanism.log_probabilities(train.values, train.n))
        levels = np.argsort(-p.mean(axis=0))[: _COMMONEST if p.shape[1] > 2 else 1]
    seen, wanted = (_left_over(mechanism, sample, levels, generator) for sample in (train, held_out))
    if seen is None or wanted is None or held_out.n < _LEAST_ROWS:
        return NoiseTest()
    function, _ = train.smoother.features(seen, _WIDTHS, _CENTRES).regression(train.matrix, seen)
    products = _standard(function(held_out.matrix)) * _standard(wanted)
    noise = products.std(axis=0) / np.sqrt(held_out.n)
    correlation = products.mean(axis=0)
    z = np.divide(correlation - _IMMATERIAL, noise, out=np.full(len(noise), -np.inf), where=noise > 0)
    return NoiseTest(min(1.0, len(z) * float(norm.sf(z.max()))), float(correlation.max()))


def _standard(columns: Array) -> Array:  # (n, k)
    spread = columns.std(axis=0)
    # A prediction without any spread says nothing, not even its rounding errors.
    return np.where(spread > 1e-9, (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 0.0)


def _left_over(
    mechanism: Mechanism, sample: NodeSample, levels: Array | None, generator: Generator
) -> Array | None:  # (n, k)
    if isinstance(mechanism, GumbelMax):
        codes = mechanism.kind.codes(sample.target, sample.node)
        p = np.exp(mechanism.log_probabilities(sample.values, sample.n))[:, levels]
        return ((codes[:, None] == levels) - p) / np.sqrt(np.maximum(p * (1 - p), _FLOOR))
    ranks = mechanism.ranks(sample.values, sample.target, generator)
    return None if ranks is None else legendre(2 * ranks.reshape(sample.n, -1) - 1)
