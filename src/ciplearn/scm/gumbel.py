"""Categories by the Gumbel-max trick: counterfactuals for labels [oberst2019]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array, Categories
from ciplearn.scm.mechanism import Mechanism, Parents

# Probabilities are floored here, so that a label the model thinks impossible still has finite noise.
_FLOOR = 1e-12


@kept
@dataclass(frozen=True)
class GumbelMax(Mechanism):
    """V = argmax_k (log p_k(pa) + G_k) with independent standard Gumbel noise G_1, ..., G_K.

    P(V = k | pa) = p_k(pa). Given V = v, the largest of the K sums is standard Gumbel and sits at v, the others are
    Gumbel with location log p_k cut off below it: exact posterior draws, no rejection. A counterfactual keeps the label
    unless some other label became relatively more likely.

    Parameters
    ----------
    levels : list of labels
    probabilities : callable
        Function of the parents by name that returns p, shape (n, K); for a node without parents also a plain list.

    Examples
    --------
    >>> import numpy as np
    >>> from ciplearn.scm import GumbelMax
    >>> job = GumbelMax(["cook", "nurse"], [0.25, 0.75])
    >>> drawn = job.evaluate({}, job.draw(1000, np.random.default_rng(0)))
    >>> bool(0.7 < np.mean(drawn == "nurse") < 0.8)
    True
    """

    levels: Any
    probabilities: Callable[[Parents], Any] | Any
    node: str = "the node"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(Categories(self.levels).levels))

    @property
    def kind(self) -> Categories:
        """The kind of the node."""
        return Categories(self.levels)

    def draw(self, n: int, generator: Generator) -> Array:
        """G, shape (n, K)."""
        return generator.gumbel(size=(n, len(self.levels)))

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """Return the label of the largest sum."""
        scores = self.log_probabilities(parents, noise.shape[0]) + noise
        return self.kind.labels[scores.argmax(axis=1)]

    def recover(self, parents: Parents, value: Array) -> Array | None:
        """Many noises give the same label."""
        return None

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Top-down: the maximum first, then the others below it."""
        n = value.shape[0]
        logs = self.log_probabilities(parents, n)
        codes = self.kind.codes(value, self.node)
        # Σ_k p_k = 1, so the maximum of the sums is Gumbel with location log 1 = 0, whatever its place.
        top = generator.gumbel(size=(n, 1))
        free = logs + generator.gumbel(size=logs.shape)
        sums = -np.logaddexp(-top, -free)  # Gumbel cut off at top
        sums[np.arange(n), codes] = top[:, 0]
        return np.asarray(sums - logs)

    def log_density(self, parents: Parents, value: Array) -> Array:
        """Return log p_v(pa)."""
        n = value.shape[0]
        return np.asarray(self.log_probabilities(parents, n)[np.arange(n), self.kind.codes(value, self.node)])

    def log_probabilities(self, parents: Parents, n: int) -> Array:  # (n, K)
        """Return log p, checked and normalised."""
        given = self.probabilities(parents) if callable(self.probabilities) else self.probabilities
        table = np.asarray(given, dtype=np.float64)
        if table.ndim == 1:
            table = np.broadcast_to(table, (n, table.size))
        if table.shape != (n, len(self.levels)):
            raise InputError(
                f"The probabilities of {self.node} must have shape {(n, len(self.levels))}, one column per level, got "
                f"{table.shape}; return one row for each row of the parents."
            )
        total = table.sum(axis=1, keepdims=True)
        if not (np.isfinite(table).all() and (table >= 0).all() and np.allclose(total, 1, atol=1e-6)):
            raise InputError(
                f"The probabilities of {self.node} must be non-negative and sum to 1 in every row, but sums from "
                f"{total.min():.3g} to {total.max():.3g} were received; normalise them."
            )
        return np.log(np.maximum(table / total, _FLOOR))
