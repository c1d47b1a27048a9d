"""What a measurement of VCF returns, and the thresholds at which scores become decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import as_list
from ciplearn.scm import Finding

_NOTABLE = 0.05  # from this share of rows on, the result says that it matters


def whose(model_based: bool) -> str:
    """Say whose counterfactuals a sentence is about."""
    return "Model-based (the causal model was estimated)" if model_based else "Under the causal model given"


def typical(vcf: float) -> float:
    """√(2 VCF): two independent values lie apart by twice their variance, on average of squares."""
    return math.sqrt(2 * max(0.0, float(vcf)))


@dataclass(frozen=True)
class Flips:
    """How often two values of the protected variables lead to two decisions about the same row.

        P(1{Ŷ*_{a′} > t} ≠ 1{Ŷ*_{a″} > t}),   a′, a″ ~ P(A) independently

    Its interval is one of 95 %, for which the threshold t counts as given; ``rate`` is the share of rows that are
    decided for as they are.

    >>> from ciplearn.evaluation import Flips
    >>> print(Flips(0.2, (0.15, 0.26), threshold=0.5, rate=0.4))
    20 % of decisions flip where 40 % are positive (95 % interval 15 % to 26 %)
    """

    value: float
    interval: tuple[float, float]
    threshold: float
    rate: float

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{100 * self.value:.3g} % of decisions flip where {100 * self.rate:.3g} % are positive (95 % interval "
            f"{100 * low:.3g} % to {100 * high:.3g} %)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        return fields_as_data(self)


@dataclass(frozen=True, eq=False)
class VarianceOfCounterfactuals:
    """VCF with its uncertainty, and who it comes from.

    Attributes
    ----------
    value, interval : float, pair of float
        Its interval is one of 95 %, over rows: both their part as points and their part as values of A. An estimated
        causal model counts as given.
    relative, relative_interval : float, pair of float
        VCF over the variance of the predictions for the points as they are: the part of the differences between
        predictions that A accounts for. Shrinking the predictor does not change it. NaN for a constant.
    flips, flips_at_equal_rate : Flips or None
        How often decisions differ between two values of A, at the threshold given and at the threshold with the same
        share of positive decisions for every model; None where nothing is decided.
    per_row, per_output
        One row per point, indexed like the rows: ``vcf``, the lowest and highest prediction over the interventions, and
        the share of them that leave the support of the data; and VCF of each output, which add up to the value.
    context, whole_row
        W, the nodes that a point is known by, and whether they are every column that was passed. The inner mean runs
        over what they leave open.
    n_points, n_interventions, n_draws, model_based
        d, k, the draws of the noise per point (1 where the points determine it), and whether the causal model was
        estimated.
    doubts : tuple of Finding
        What speaks against the causal model at nodes that the answer rests on, those between A and the inputs: its
        misfits and ambiguities there. The interval takes the model for right.

    Examples
    --------
    >>> from ciplearn import datasets, variance_of_counterfactuals
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> vcf = variance_of_counterfactuals(lambda frame: frame["training"], world, people, ["sex"], n_points=100)
    >>> list(vcf.per_row.columns)
    ['vcf', 'share_outside', 'lowest', 'highest']
    """

    value: float
    interval: tuple[float, float]
    relative: float
    relative_interval: tuple[float, float]
    flips: Flips | None
    flips_at_equal_rate: Flips | None
    per_row: pd.DataFrame
    per_output: dict[str, float]
    overlap: Overlap
    protected: tuple[str, ...]
    context: tuple[str, ...]
    whole_row: bool
    n_points: int
    n_interventions: int
    n_draws: int
    model_based: bool
    doubts: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        low, high = self.interval
        who = as_list(self.protected)
        given = "the whole row" if self.whole_row else as_list(self.context) if self.context else "no column"
        if_right = " if the causal model were right" if self.doubts else ""
        draws = "" if self.n_draws == 1 else f", {self.n_draws} draws of what the points leave open"
        parts = [
            f"{whose(self.model_based)}, had {who} been different, predictions would have varied by "
            f"VCF = {self.value:.3g} given {given} (95 % interval {low:.3g} to {high:.3g}{if_right}; "
            f"{self.n_points} points, {self.n_interventions} values of {who} each{draws})."
        ]
        if not np.isnan(self.relative):
            low, high = self.relative_interval
            parts.append(f"That is {self.relative:.3g} of the variance of the predictions ({low:.3g} to {high:.3g}).")
        parts += [f"The causal model is in doubt: {doubt.sentence}" for doubt in self.doubts]
        if len(self.per_output) > 1:
            each = ", ".join(f"{name} {value:.3g}" for name, value in self.per_output.items())
            parts.append(f"By output: {each}.")
        decided = [flips for flips in (self.flips, self.flips_at_equal_rate) if flips is not None]
        parts += [f"Between two values of {who}, {flips}." for flips in decided]
        parts.append(str(self.overlap))
        return " ".join(parts)

    @property
    def typical(self) -> float:
        """√(2 VCF): how far predictions for a row typically lie apart between two values of A as they occur."""
        return typical(self.value)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data, without the rows."""
        unknown = {"relative_interval": None} if np.isnan(self.relative) else {}
        return fields_as_data(self, "per_row", **unknown)


@dataclass(frozen=True)
class Overlap:
    """How far the counterfactual rows stay where the data is.

    A row is outside if it lies more than ``radius`` standard deviations from the reference rows. ``vcf_inside`` and
    ``vcf_outside`` are VCF over the interventions that stay, and over those that leave; NaN where no point has two.

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
