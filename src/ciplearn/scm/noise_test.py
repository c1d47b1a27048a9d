"""Is the recovered noise independent of the parents? A test on rows that the mechanism was not fitted to.

If a mechanism is right, the rank U of the noise is uniform whatever the parents are, so E[P_k(U) | pa] = 0 for the
Legendre polynomials P_1, P_2, P_3 (shift, spread, asymmetry). The rows that the mechanism was fitted to learn to
predict P_k(U) from the parents, and the held-out rows tell whether that can be done: the mean of the products of
standardised prediction and P_k(U) is their correlation there, zero under independence whatever was learned. A
regression that is right but estimated leaves a small dependence, which ever more rows would find: tested is whether the
correlation is at most 0.1, corrected for the number of polynomials by Bonferroni. A mechanism of the wrong kind shows
0.3 to 0.7 where this was tried. Labels have 1[V = k] − p_k(pa) in place of P_k(U).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.stats import norm

from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.multinomial import GumbelMax
from ciplearn.scm.recipe import NodeSample
from ciplearn.scm.smooth_ridge import legendre

# Bumps of the regressions, and the widths to choose from.
_CENTRES = 40
_WIDTHS = (0.2, 1.0)

# At most this share of right mechanisms fails.
LEVEL = 0.05

# A correlation that estimation alone may leave, and that hardly moves what is imagined.
_IMMATERIAL = 0.1

# Fewer rows than this have no power.
_LEAST_ROWS = 40

# The commonest levels that are looked at, and the least probability that a residual is divided by.
_LEVELS = 6
_FLOOR = 0.01


@dataclass(frozen=True)
class NoiseTest:
    """What the test says."""

    p_value: float  # that the correlation is at most 0.1; NaN where there is nothing to test or too few rows
    dependence: float  # the correlation of the noise with its prediction from the parents, largest over polynomials

    @property
    def fails(self) -> bool:
        """Whether the noise was found to depend on the parents."""
        return self.p_value < LEVEL


NOTHING_TO_TEST = NoiseTest(float("nan"), float("nan"))


def independence_of_noise(
    mechanism: Mechanism, train: NodeSample, held_out: NodeSample, generator: Generator
) -> NoiseTest:
    """Test the noise of a mechanism that was fitted to ``train`` on rows that it was not fitted to."""
    levels = _commonest(mechanism, train)
    seen, wanted = (_left_over(mechanism, sample, levels, generator) for sample in (train, held_out))
    if seen is None or wanted is None or held_out.n < _LEAST_ROWS:
        return NOTHING_TO_TEST
    features = train.smoother.features(seen, _WIDTHS, _CENTRES)
    function, _ = features.regression(train.matrix, seen)
    products = _standard(function(held_out.matrix)) * _standard(wanted)
    noise = products.std(axis=0) / np.sqrt(held_out.n)
    correlation = products.mean(axis=0)
    z = np.divide(correlation - _IMMATERIAL, noise, out=np.full(len(noise), -np.inf), where=noise > 0)
    return NoiseTest(min(1.0, len(z) * float(norm.sf(z.max()))), float(correlation.max()))


def _standard(columns: Array) -> Array:  # (n, k)
    spread = columns.std(axis=0)
    # A prediction without any spread says nothing, not even its rounding errors.
    return np.where(spread > 1e-9, (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 0.0)


def _commonest(mechanism: Mechanism, train: NodeSample) -> Array | None:
    """The labels whose noise is looked at, the same in all rows."""
    if not isinstance(mechanism, GumbelMax):
        return None
    p = np.exp(mechanism.log_probabilities(train.values, train.n))
    return np.argsort(-p.mean(axis=0))[: _LEVELS if p.shape[1] > 2 else 1]


def _left_over(
    mechanism: Mechanism, sample: NodeSample, levels: Array | None, generator: Generator
) -> Array | None:  # (n, k)
    """Return numbers whose mean given the parents is zero if the mechanism is right."""
    if isinstance(mechanism, GumbelMax):
        codes = mechanism.kind.codes(sample.target, sample.node)
        p = np.exp(mechanism.log_probabilities(sample.values, sample.n))[:, levels]
        return ((codes[:, None] == levels) - p) / np.sqrt(np.maximum(p * (1 - p), _FLOOR))
    ranks = mechanism.ranks(sample.values, sample.target, generator)
    if ranks is None:
        return None
    return legendre(2 * ranks.reshape(sample.n, -1) - 1)
