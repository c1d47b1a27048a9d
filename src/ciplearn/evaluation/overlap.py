"""Overlap: which counterfactual rows land where there is no data.

Nothing in the data says how a predictor should behave there. The rule: numbers are divided by their standard deviation,
two different labels are one unit apart, and a row is outside if its nearest reference row is farther away than the
nearest other row is for all but one in a hundred of the reference rows themselves. Since the distance covers all
columns at once, the nearest row is one with similar conditioning variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from ciplearn._core.columns import holds_numbers
from ciplearn._core.plain_data import fields_as_data
from ciplearn.scm.kinds import Array

# Neighbours are looked up among at most this many reference rows.
MAX_REFERENCE = 5000

# Up to this many columns of the table neighbours are looked up in a tree; beyond, where trees do not prune, blocks of
# all distances are formed, small enough for a processor's cache. A label is one column: its zeros and ones prune well.
_TREE_COLUMNS = 8
_BLOCK = 32

# The share of reference rows that the rule itself would call outside.
TAIL = 0.01

# From this share of rows on, the result says that it matters.
_NOTABLE = 0.05


@dataclass(frozen=True)
class Support:
    """Where the reference rows are."""

    places: Array  # (m, c)
    columns: tuple[str, ...]
    scale: dict[str, float]
    levels: dict[str, pd.Index]
    radius: float

    @classmethod
    def of(cls, reference: pd.DataFrame) -> Support:
        """Learn the support from reference rows."""
        if len(reference) > MAX_REFERENCE:
            chosen = np.random.default_rng(0).choice(len(reference), MAX_REFERENCE, replace=False)
            reference = reference.iloc[np.sort(chosen)]
        scale, levels = {}, {}
        for column in reference.columns:
            if holds_numbers(reference[column]):
                scale[column] = float(reference[column].to_numpy(dtype=np.float64).std()) or 1.0
            else:
                levels[column] = pd.Index(reference[column].astype(object).unique())
        places = _places(reference, tuple(reference.columns), scale, levels)
        # The nearest row is the row itself, the second nearest is another.
        gaps = _nearest(places, places, rank=min(2, len(places)), tree=len(reference.columns) <= _TREE_COLUMNS)
        return cls(places, tuple(reference.columns), scale, levels, float(np.quantile(gaps, 1 - TAIL)))

    def holds(self, frame: pd.DataFrame) -> Array:  # (n,), boolean
        """Tell which rows are inside."""
        places = _places(frame, self.columns, self.scale, self.levels)
        # A hair more than the radius: for discrete data the radius may be exactly zero, or exactly one step.
        within = self.radius * (1 + 1e-6) + 1e-6
        tree = len(self.columns) <= _TREE_COLUMNS
        return _nearest(places, self.places, rank=1, tree=tree, within=within) <= within


@dataclass(frozen=True)
class Overlap:
    """How far the counterfactual rows stay where the data is.

    Attributes
    ----------
    share_outside : float
        Share of counterfactual rows outside the support of the reference rows.
    vcf_inside, vcf_outside : float
        VCF over the interventions that stay inside, and over those that leave; NaN where no point has two of them.
    radius : float
        The distance beyond which a row is outside, in standard deviations.

    Examples
    --------
    >>> from ciplearn.evaluation import Overlap
    >>> print(Overlap(share_outside=0.01, vcf_inside=2.0, vcf_outside=float("nan"), radius=0.5))
    1.0 % of the counterfactual rows lie outside the support of the data.
    """

    share_outside: float
    vcf_inside: float
    vcf_outside: float
    radius: float

    @property
    def matters(self) -> bool:
        """Whether enough rows are outside to mention it."""
        return self.share_outside >= _NOTABLE

    def __str__(self) -> str:
        share = f"{100 * self.share_outside:.1f} % of the counterfactual rows lie outside the support of the data"
        if not self.matters:
            return f"{share}."
        inside, outside = ("unknown" if np.isnan(vcf) else f"{vcf:.3g}" for vcf in (self.vcf_inside, self.vcf_outside))
        return (
            f"{share}, where no training row says what the predictor should do: VCF is {inside} inside and {outside} "
            "outside, so read the total with care."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON-ready data; NaN as None."""
        return fields_as_data(self, sentence=str(self))


def _nearest(rows: Array, reference: Array, rank: int, tree: bool, within: float = np.inf) -> Array:
    """Distance of each row to the reference row of some rank of nearness, from 1; a tree says inf beyond ``within``."""
    if tree:
        return np.asarray(cKDTree(reference).query(rows, k=[rank], distance_upper_bound=within)[0][:, 0])
    # |row|² − 2 row·reference + |reference|², the last two by one product; far from the origin they would cancel.
    middle = reference.mean(axis=0)
    rows, reference = rows - middle, reference - middle
    lifted = np.concatenate([-2 * reference, np.square(reference).sum(axis=1)[:, None]], axis=1).T
    nearest = np.square(rows).sum(axis=1)
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK] @ lifted
        for _ in range(1, rank):
            block[np.arange(len(block)), block.argmin(axis=1)] = np.inf
        nearest[start : start + _BLOCK] += block.min(axis=1)
    return np.sqrt(np.maximum(nearest, 0))


def _places(
    frame: pd.DataFrame, columns: tuple[str, ...], scale: dict[str, float], levels: dict[str, pd.Index]
) -> Array:
    parts = []
    for column in columns:
        if column in scale:
            parts.append(frame[column].to_numpy(dtype=np.float64)[:, None] / scale[column])
            continue
        codes = levels[column].get_indexer(pd.Index(frame[column].astype(object)))
        onehot = np.zeros((len(frame), len(levels[column]) + 1))
        # 1/√2 puts two different labels one unit apart; a label never seen is its own place.
        onehot[np.arange(len(frame)), codes] = np.sqrt(0.5)
        parts.append(onehot)
    return np.concatenate(parts, axis=1)
