"""ResidualHSCIC: HSCIC with only the right-hand side regressed on the conditioning variables."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ciplearn.penalties.conditional import ConditionalPenalty
from ciplearn.penalties.low_rank import VectorsOf
from ciplearn.penalties.ridge_regression import FeatureRegression, RegressionProblem


@dataclass(frozen=True)
class ResidualHSCIC(ConditionalPenalty):
    """Q = (1/n) (W Wᵀ) ∘ K̃_R with W = (K_S + nλI)⁻¹ K_S, K̃_R = (I − H) K_R (I − H)ᵀ, H = K_S (K_S + nλI)⁻¹.

    Its population value is zero exactly where HSCIC's is. The prediction itself is never smoothed, so a predictor that
    is a function of the conditioning variables alone is not punished for the smoothing's bias, as it is by `HSCIC`.
    Parameters: see `ConditionalPenalty`.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian, ResidualHSCIC
    >>> draw = torch.Generator().manual_seed(0)
    >>> s, e = torch.randn(2, 200, 1, generator=draw)
    >>> operator = ResidualHSCIC(kernel=Gaussian(1.0)).prepare(right=s + e, given=s)  # once
    >>> bool(operator(s + e) > 10 * operator(s))
    True
    >>> prediction = torch.zeros(20, 1, requires_grad=True)
    >>> operator(prediction, rows=torch.arange(20)).backward()  # one batch of a training loop
    >>> prediction.grad.shape
    torch.Size([20, 1])
    """

    def _exact_matrix(self, problem: RegressionProblem) -> Tensor:
        right_gram, _, ridge = problem.grams()
        residual = ridge.residual_gram(right_gram)
        del right_gram
        weights = ridge.weights()
        del ridge
        return (weights @ weights.T).mul_(residual).div_(problem.rows.n)

    def _vectors(self, regression: FeatureRegression) -> VectorsOf:
        return regression.residual_vectors(regression.smoother() / regression.problem.rows.n**0.5)
