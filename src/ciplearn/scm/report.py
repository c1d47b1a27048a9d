"""How well each estimated mechanism fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

from ciplearn.scm.kinds import Array, Categories, Kind


@dataclass(frozen=True)
class NodeFit:
    """One line of the report.

    Attributes
    ----------
    node, mechanism : str
    measure : str
        What `score` is: ``R²`` or ``log-likelihood gain``.
    score : float
        On rows that were held out from a first fit; NaN for a node without parents.
    distance : float
        Between the observed law of the node and the law of the model's own sample, from 0 (the same) to 1: largest
        difference of distribution functions for numbers, total variation for labels.
    """

    node: str
    mechanism: str
    measure: str
    score: float
    distance: float


@dataclass(frozen=True)
class FitReport:
    """The mechanisms of an estimated model, node by node.

    Attributes
    ----------
    nodes : tuple of NodeFit
    n_rows : int
    notes : tuple of str
        What was decided about latent nodes.
    """

    nodes: tuple[NodeFit, ...]
    n_rows: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"Model-based: estimated from {self.n_rows} rows.", *self._table(), *self.notes]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        if not self.nodes:
            return []
        cells = [("node", "mechanism", "held-out score", "distance")]
        cells += [(fit.node, fit.mechanism, _score(fit), f"{fit.distance:.3f}") for fit in self.nodes]
        widths = [max(len(row[place]) for row in cells) for place in range(4)]
        return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data; NaN as None."""
        return {
            "n_rows": self.n_rows,
            "nodes": [{**vars(fit), "score": None if np.isnan(fit.score) else fit.score} for fit in self.nodes],
            "notes": list(self.notes),
        }


def law_distance(kind: Kind, node: str, observed: Array, sampled: Array) -> float:
    """Return the distance between two samples of a node; the largest over the numbers of a vector."""
    if isinstance(kind, Categories):
        size = len(kind.levels)
        one, two = (np.bincount(kind.codes(v, node), minlength=size) / len(v) for v in (observed, sampled))
        return float(np.abs(one - two).sum() / 2)
    one, two = observed.reshape(len(observed), -1), sampled.reshape(len(sampled), -1)
    return max(float(ks_2samp(one[:, c], two[:, c], method="asymp").statistic) for c in range(one.shape[1]))


def notes_on(dropped: Mapping[str, str], modelled: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Say what became of latent nodes."""
    absorbed = [f"{latent} is part of the noise of {child}, its only child." for latent, child in dropped.items()]
    learned = [
        f"{latent} is a latent law learned with {', '.join(children)}; data cannot confirm it."
        for latent, children in modelled.items()
    ]
    return (*absorbed, *learned)


def _score(fit: NodeFit) -> str:
    return "" if np.isnan(fit.score) else f"{fit.measure} {fit.score:.3f}"
