"""CIRCE: conditional independence regression covariance [pogodin2022]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn.penalties.conditional import ConditionalPenalty
from ciplearn.penalties.low_rank import VectorsOf
from ciplearn.penalties.ridge_regression import FeatureRegression, RegressionProblem


@dataclass(frozen=True)
class CIRCE(ConditionalPenalty):
    """Q = (1/n²) K_S ∘ K̃_R with K̃_R = (I − H) K_R (I − H)ᵀ, H = K_S (K_S + nλI)⁻¹.

    Parameters: see `ConditionalPenalty`.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import CIRCE, Gaussian
    >>> draw = torch.Generator().manual_seed(0)
    >>> s, e = torch.randn(2, 200, 1, generator=draw)
    >>> operator = CIRCE(kernel=Gaussian(1.0)).prepare(right=s + e, given=s)
    >>> bool(operator(s + e) > operator(s))
    True
    """

    def _exact_matrix(self, problem: RegressionProblem) -> Tensor:
        right_gram, given_gram, ridge = problem.grams()
        return given_gram * ridge.residual_gram(right_gram) / problem.rows.n**2

    def _vectors(self, regression: FeatureRegression) -> VectorsOf:
        identity = torch.eye(regression.given.size, dtype=torch.float64, device=regression.problem.rows.device)
        return regression.residual_vectors(identity / regression.problem.rows.n)
