"""HSCIC: the Hilbert-Schmidt conditional independence criterion of the paper [quinzan2024, park2020]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from ciplearn.kernels import Gaussian
from ciplearn.penalties.conditional import ConditionalPenalty
from ciplearn.penalties.low_rank import VectorsOf
from ciplearn.penalties.ridge_regression import FeatureRegression, RegressionProblem
from ciplearn.penalties.rows import Sums
from ciplearn.penalties.storage import ElementwiseProduct

# Rows whose third moments are formed at a time: each needs the square of the number of directions.
_MOMENT_ROWS = 1024


@dataclass(frozen=True)
class HSCIC(ConditionalPenalty):
    """Mean over rows i of ‖μ̂_{Ŷ,R|s_i} − μ̂_{Ŷ|s_i} ⊗ μ̂_{R|s_i}‖², the means estimated by ridge regression on S.

    With W = (K_S + nλI)⁻¹ K_S, whose column w_i weighs the rows at s_i, D_i = diag(w_i),

        Q = (1/n) Σ_i (D_i − w_i w_iᵀ) K_R (D_i − w_i w_iᵀ)
          = (1/n) [K_R ∘ (W Wᵀ) − B Wᵀ − W Bᵀ],   B = P − ½ W diag(a),   P = W ∘ (K_R W),   a = column sums of P.

    The paper prints the middle term of each norm as a product of two scalars; it is −2 wᵀ[(K_Ŷ w) ∘ (K_R w)], as here.

    Parameters: see `ConditionalPenalty`; the ridge is the paper's by default.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import HSCIC, Gaussian
    >>> draw = torch.Generator().manual_seed(0)
    >>> s, e = torch.randn(2, 200, 1, generator=draw)
    >>> operator = HSCIC(kernel=Gaussian(1.0)).prepare(right=s + e, given=s)
    >>> bool(operator(s + e) > operator(s))
    True
    """

    ridge: float | str = 0.01

    @classmethod
    def paper(cls) -> Self:
        """The paper's settings, meant for columns scaled to [0, 1]: length scales 0.1, λ = 0.01."""
        return cls(kernel=Gaussian(0.1), right_kernel=Gaussian(0.1), given_kernel=Gaussian(0.1), ridge=0.01)

    def _exact_matrix(self, problem: RegressionProblem) -> Tensor:
        right_gram, _, ridge = problem.grams()
        weights = ridge.weights()
        joint = weights * (right_gram @ weights)  # P
        joint.sub_(weights * (joint.sum(dim=0) / 2))  # B
        cross = joint @ weights.T
        matrix = right_gram * (weights @ weights.T) - cross - cross.T
        return matrix / problem.rows.n

    def _vectors(self, regression: FeatureRegression) -> VectorsOf:
        return regression.problem.rows.summed(_SmoothedVectors(regression))


class _SmoothedVectors(Sums["_SmoothedVectors"]):
    """Vectors of rows that give the entries of Q, from sums over rows t of weight vectors z'_t.

    W_it = z_i · z'_t for scores z_i. (K_R W)_it = ρ_i · (Σ_k ρ_k W_kt) = (E ρ_i) · z'_t with E = Σ_k z_k ρ_kᵀ, so

        (P Wᵀ)_ij = Σ_t (z_i·z'_t)(E ρ_i·z'_t)(z'_t·z_j) = T(z_i, E ρ_i, z_j),   T = Σ_t z'_t ⊗ z'_t ⊗ z'_t,
        (W diag(a) Wᵀ)_ij = z_iᵀ A z_j,   A = Σ_t ‖Eᵀ z'_t‖² z'_t z'_tᵀ.

    ``regression``: of all rows. ``scores``: takes features to scores. ``left``: takes scores to factors of W Wᵀ / n.
    ``cross``: E. ``totals``: T and A.
    """

    def __init__(self, regression: FeatureRegression) -> None:
        spectrum, kept = regression.spectrum, regression.influential()
        self.right, self.given = regression.right, regression.given
        self.inverse = spectrum.inverse(regression.problem.ridge)[kept]
        self.scores, self.cross = spectrum.basis[:, kept], spectrum.cross[kept]
        self.left = spectrum.values[kept].sqrt() * self.inverse / spectrum.rows**0.5

    def of_block(self, _right: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """T and A of a block of rows."""
        p = self.inverse.numel()
        third, weighted = self.cross.new_zeros(p * p, p), self.cross.new_zeros(p, p)
        for part in (self.given(given) @ (self.scores * self.inverse)).split(_MOMENT_ROWS):
            third.addmm_(_pairs(part, part).T, part)
            weighted.addmm_((part * (part @ self.cross).square().sum(1, keepdim=True)).T, part)
        return third, weighted

    def finalise(self) -> Self:
        """The sums are what is needed."""
        return self

    def __call__(self, right_rows: Tensor, given_rows: Tensor) -> ElementwiseProduct:
        """The vectors of some rows; g_i has (B Wᵀ)_ij = g_i · z_j."""
        (third, weighted), rho = self.totals, self.right(right_rows)
        z = self.given(given_rows) @ self.scores
        pairs = zip(z.split(_MOMENT_ROWS), (rho @ self.cross.T).split(_MOMENT_ROWS), strict=True)
        g = torch.cat([_pairs(a, b) @ third for a, b in pairs]) - z @ weighted / 2
        return ElementwiseProduct(z * self.left, rho, (g / self.n, z))


def _pairs(a: Tensor, b: Tensor) -> Tensor:  # (m, p), (m, p) -> (m, p p)
    return (a[:, :, None] * b[:, None, :]).flatten(1)
