"""CIRCE: conditional independence regression covariance [pogodin2022]."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ciplearn.penalties.conditional import ConditionalPenalty
from ciplearn.penalties.conditioning import Conditional, FeatureRegression
from ciplearn.penalties.forms import Dense, Factored


@dataclass(frozen=True)
class CIRCE(ConditionalPenalty):
    """Q = (1/n²) K_S ∘ K̃_R with K̃_R = (I − H) K_R (I − H)ᵀ, H = K_S (K_S + nλI)⁻¹.

    Parameters: see `ConditionalPenalty`.
    """

    def _exact_form(self, problem: Conditional) -> Dense:
        right_gram, given_gram, ridge = problem.grams()
        return Dense(given_gram * ridge.residual_gram(right_gram) / problem.rows.n**2)

    def _low_rank_form(self, regression: FeatureRegression) -> Factored:
        identity = torch.eye(regression.given.size, dtype=torch.float64, device=regression.problem.rows.device)
        return regression.residual_form(identity / regression.problem.rows.n)
