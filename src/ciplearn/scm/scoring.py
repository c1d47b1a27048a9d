"""How well mechanisms predict rows that they were not fitted to."""

from __future__ import annotations

import numpy as np

from ciplearn.scm.kinds import Array, Categories, Kind
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.recipe import NodeSample

# Levels of the quantiles that stand for a law.
_LEVELS = (np.arange(40) + 0.5) / 40


def crps(mechanism: Mechanism, held_out: NodeSample) -> Array | None:  # (n,)
    """Return the continuous ranked probability score of each row, 2 ∫ ρ_τ(v − q_τ(pa)) dτ; small is good.

    A vector's is the mean over its numbers, each in units of its own spread. None where quantiles are unknown.
    """
    quantiles = mechanism.quantiles(held_out.values, _LEVELS)
    return None if quantiles is None else _pinball(held_out.target, quantiles)


def crps_of_draws(draws: Array, held_out: NodeSample) -> Array:  # (..., m) -> (n,)
    """Return the scores of laws that are known by m draws per row."""
    return _pinball(held_out.target, np.moveaxis(np.quantile(draws, _LEVELS, axis=-1), 0, -1))


def _pinball(target: Array, quantiles: Array) -> Array:  # (n,) or (n, d), (..., k) -> (n,)
    gap = target[..., None] - quantiles
    loss = 2 * np.maximum(_LEVELS * gap, (_LEVELS - 1) * gap).mean(axis=-1)
    if target.ndim == 1:
        return np.asarray(loss)
    return np.asarray((loss / np.maximum(target.std(axis=0), np.finfo(float).tiny)).mean(axis=1))


def row_losses(mechanism: Mechanism, held_out: NodeSample, seen: Array) -> Array:  # (n,)
    """Return a proper loss of each held-out row: CRPS of numbers, minus log probability of labels.

    A mechanism that offers neither quantiles nor a density gets the loss of the law that ignores the parents.
    """
    if not isinstance(held_out.kind, Categories):
        losses = crps(mechanism, held_out)
    elif (losses := mechanism.log_density(held_out.values, held_out.target)) is not None:
        losses = -losses
    return marginal_losses(held_out, seen) if losses is None else losses


def marginal_losses(held_out: NodeSample, seen: Array) -> Array:  # (n,)
    """Return the losses of the law of ``seen``, the node's values in the fit, which ignores the parents."""
    if isinstance(held_out.kind, Categories):
        base = np.log(label_frequencies(held_out.kind, seen, held_out.node))
        return np.asarray(-base[held_out.kind.codes(held_out.target, held_out.node)])
    return _pinball(held_out.target, np.quantile(seen, _LEVELS, axis=0).T)


def measure(kind: Kind) -> str:
    """What `score` is called."""
    return "log-likelihood gain" if isinstance(kind, Categories) else "CRPS skill"


def score(losses: Array, reference: Array, kind: Kind) -> float:  # (n,), (n,)
    """Compare mean losses with those of a law that ignores the parents: larger is better, 0 is no better than it."""
    base = float(reference.mean())
    if isinstance(kind, Categories):
        return base - float(losses.mean())
    return 1 - float(losses.mean()) / base if base > 0 else float("nan")


def label_frequencies(kind: Categories, values: Array, node: str) -> Array:  # (K,)
    """Return smoothed frequencies of the levels: half a count is added to each."""
    counts = np.bincount(kind.codes(values, node), minlength=len(kind.levels)) + 0.5
    return np.asarray(counts / counts.sum())
