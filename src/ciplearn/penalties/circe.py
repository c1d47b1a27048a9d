"""CIRCE: conditional independence regression covariance [pogodin2022]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn.penalties.conditional import ConditionalPenalty
from ciplearn.penalties.conditioning import Conditional, FeatureRegression
from ciplearn.penalties.forms import Dense
from ciplearn.penalties.landmarks import Entries


@dataclass(frozen=True)
class CIRCE(ConditionalPenalty):
    """Q = (1/n²) K_S ∘ K̃_R with K̃_R = (I − H) K_R (I − H)ᵀ, H = K_S (K_S + nλI)⁻¹.

    Parameters: see `ConditionalPenalty`.
    """

    def _exact_form(self, problem: Conditional) -> Dense:
        right_gram, given_gram, ridge = problem.grams()
        return Dense(given_gram * ridge.residual_gram(right_gram) / problem.rows.n**2)

    def _entries(self, regression: FeatureRegression) -> Callable[[Tensor, Tensor], Entries]:
        identity = torch.eye(regression.given.size, dtype=torch.float64, device=regression.problem.rows.device)
        return regression.residual_entries(identity / regression.problem.rows.n)
