"""What a measurement of VCF returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.wording import as_list
from ciplearn.evaluation.overlap import Overlap


def whose(model_based: bool) -> str:
    """Say whose counterfactuals a sentence is about."""
    return "Model-based (the causal model was estimated)" if model_based else "Under the causal model given"


@dataclass(frozen=True, eq=False)
class VarianceOfCounterfactuals:
    """VCF with its uncertainty, and who it comes from.

    Attributes
    ----------
    value : float
    interval : pair of float
        95 %, bootstrap over points.
    per_row : DataFrame
        One row a point, indexed like the rows: ``vcf``, the lowest and highest prediction over the interventions, and
        the share of them that leave the support of the data.
    per_output : dict
        VCF of each output; they add up to the value.
    overlap : Overlap
    protected : tuple of str
    n_points, n_interventions, n_draws : int
        d, k, and the draws of the noise a point (1 where the points determine it).
    model_based : bool
        Whether the structural causal model was estimated.
    """

    value: float
    interval: tuple[float, float]
    per_row: pd.DataFrame
    per_output: dict[str, float]
    overlap: Overlap
    protected: tuple[str, ...]
    n_points: int
    n_interventions: int
    n_draws: int
    model_based: bool

    def __str__(self) -> str:
        low, high = self.interval
        who = as_list(self.protected)
        parts = [
            f"{whose(self.model_based)}, had {who} been different, predictions would have varied by "
            f"VCF = {self.value:.3g} (95 % interval {low:.3g} to {high:.3g}; {self.n_points} points, "
            f"{self.n_interventions} values of {who} each{self._draws()})."
        ]
        if len(self.per_output) > 1:
            each = ", ".join(f"{name} {value:.3g}" for name, value in self.per_output.items())
            parts.append(f"By output: {each}.")
        parts.append(str(self.overlap))
        return " ".join(parts)

    def _draws(self) -> str:
        return "" if self.n_draws == 1 else f", {self.n_draws} draws of what the rows leave open"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data, without the rows."""
        return {
            "value": self.value,
            "interval": list(self.interval),
            "per_output": dict(self.per_output),
            "overlap": self.overlap.to_dict(),
            "protected": list(self.protected),
            "n_points": self.n_points,
            "n_interventions": self.n_interventions,
            "n_draws": self.n_draws,
            "model_based": self.model_based,
        }
