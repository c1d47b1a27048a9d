"""How well each estimated mechanism fits, and what its counterfactuals rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from ciplearn._core.plain_data import fields_as_data
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array, Categories, Kind


class Finding(NamedTuple):
    """A node, and a sentence about it.

    Examples
    --------
    >>> from ciplearn.scm import Finding
    >>> finding = Finding("L", "The noise of L still depends on A.")
    >>> finding.node
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
    >>> report.n_rows
    400
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
        lines = [f"Model-based: estimated from {self.n_rows} rows.", *self._table(), *self._tried()]
        warnings = [f"Warning: {finding.sentence}" for finding in (*self.misfits, *self.ambiguities)]
        return "\n".join([*lines, *warnings, *self.notes])

    def _table(self) -> list[str]:
        if not self.nodes:
            return []
        cells = [("node", "mechanism", "held-out score", "distance", "noise ⊥ parents")]
        cells += [
            (fit.node, fit.mechanism, _score(fit), f"{fit.distance:.3f}", _p_value(fit.p_value)) for fit in self.nodes
        ]
        widths = [max(len(row[column]) for row in cells) for column in range(5)]
        return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]

    def _tried(self) -> list[str]:
        return [
            f"Tried for {fit.node}: "
            + ", ".join(f"{other.mechanism} {other.score:.3f}" for other in fit.alternatives)
            + "."
            for fit in self.nodes
            if len(fit.alternatives) > 1
        ]

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


def notes_on_latents(
    absorbed: Mapping[str, str], modelled: Mapping[str, tuple[str, ...]], together: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """Say what became of latent nodes and bidirected edges."""
    return (
        *(f"{latent} is part of the noise of {child}, its only child." for latent, child in absorbed.items()),
        *(
            f"{latent} is a latent law learned with {', '.join(children)}; data cannot confirm it."
            for latent, children in modelled.items()
        ),
        *(
            f"{', '.join(nodes)} share hidden causes and have no others: they are drawn together as observed, and an "
            "action on one leaves the others as they are."
            for nodes in together
        ),
    )


def _score(fit: NodeFit) -> str:
    return "" if np.isnan(fit.score) else f"{fit.measure} {fit.score:.3f}"


def _p_value(value: float) -> str:
    return "" if np.isnan(value) else ("p < 0.001" if value < 0.001 else f"p = {value:.3f}")
