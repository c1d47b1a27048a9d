"""How well each estimated mechanism fits, and what its counterfactuals rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from ciplearn._core.plain_data import fields_as_data
from ciplearn.scm.kinds import Array, Categories, Kind
from ciplearn.scm.saving import kept


class Finding(NamedTuple):
    """A node, and a sentence about it.

    Examples
    --------
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

    Attributes
    ----------
    nodes : tuple of NodeFit
    n_rows : int
    notes : tuple of str
        What was decided about latent nodes, shared causes and missing values.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> world = datasets.applicants()
    >>> report = fit_scm(world.graph, world.sample(400, random_state=0), random_state=0).report
    >>> [fit.node for fit in report.nodes]
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
            rows.append((fit.node, fit.mechanism, score, f"{fit.distance:.3f}", _p_value(fit.p_value)))
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


def _p_value(value: float) -> str:
    return "" if np.isnan(value) else ("p < 0.001" if value < 0.001 else f"p = {value:.3f}")
