"""What a mechanism to be fitted is: a recipe, and the sample it is fitted to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ciplearn.scm.design import Design
from ciplearn.scm.kinds import Array, Categories, Kind
from ciplearn.scm.mechanism import Mechanism


@dataclass(frozen=True)
class NodeSample:
    """The rows of one node and its parents.

    Attributes
    ----------
    node : str
    kind : Kind
    parents : tuple of str
    values : mapping from node to array
        Of the node and of its parents, at least.
    kinds : mapping from node to Kind
    """

    node: str
    kind: Kind
    parents: tuple[str, ...]
    values: Mapping[str, Array]
    kinds: Mapping[str, Kind]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.target)

    @property
    def target(self) -> Array:
        """The node's own values."""
        return self.values[self.node]

    @property
    def design(self) -> Design:
        """How the parents become numbers."""
        return Design(self.parents, self.kinds)

    def matrix(self) -> Array:  # (n, width)
        """The parents as numbers."""
        return self.design(self.values)


@dataclass(frozen=True)
class Score:
    """How well a fitted mechanism does on held-out rows.

    Attributes
    ----------
    name : str
        What the number is.
    value : float
        Larger is better; 0 is no better than ignoring the parents.
    """

    name: str
    value: float


class Specification(ABC):
    """A recipe for the mechanism of an observed node."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What the report calls it."""

    @abstractmethod
    def fit(self, sample: NodeSample, generator: Generator) -> Mechanism:
        """Fit the mechanism."""

    @abstractmethod
    def score(self, mechanism: Mechanism, held_out: NodeSample, generator: Generator) -> Score:
        """Judge a mechanism that was fitted to other rows."""


def explained(held_out: NodeSample, residual: Array | None) -> Score:
    """R² of what a mechanism leaves over, the share of the variance that it explains; NaN where that is unknown."""
    total = float(np.square(held_out.target - held_out.target.mean(axis=0)).sum())
    if residual is None or total == 0:
        return Score("R²", float("nan"))
    return Score("R²", 1 - float(np.square(residual).sum()) / total)


def likelihood_gain(log_likelihood: Array | None, reference: Array) -> Score:  # (n,), (n,)
    """Mean gain in log-likelihood a row over a law that ignores the parents; NaN where the likelihood is unknown."""
    gain = float("nan") if log_likelihood is None else float(np.mean(log_likelihood) - np.mean(reference))
    return Score("log-likelihood gain", gain)


def label_gain(kind: Categories, held_out: NodeSample, log_likelihood: Array | None) -> Score:
    """Mean gain in log-likelihood a row over the frequencies of the levels."""
    base = np.log(label_frequencies(kind, held_out.target, held_out.node))
    return likelihood_gain(log_likelihood, base[kind.codes(held_out.target, held_out.node)])


def label_frequencies(kind: Categories, values: Array, node: str) -> Array:  # (K,)
    """Return smoothed frequencies of the levels: half a count is added to each."""
    counts = np.bincount(kind.codes(values, node), minlength=len(kind.levels)) + 0.5
    return np.asarray(counts / counts.sum())
