"""Ridge regression of the right-hand side R on the conditioning variables S: what conditional criteria share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor

from ciplearn.kernels import FeatureMap, Features, Kernel
from ciplearn.kernels.eigen import eigh
from ciplearn.kernels.ridge import GramRidge, RidgeSpectrum
from ciplearn.penalties.low_rank import VectorsOf
from ciplearn.penalties.operator import Setting
from ciplearn.penalties.rows import PenaltyRows, Sums
from ciplearn.penalties.storage import ElementwiseProduct

# Length scales are chosen, and leave-one-out errors averaged, over at most this many rows.
_LOO_ROWS = 2048

# Up to this many rows a Gram matrix is factorised as it is; beyond, features do as well for choosing a ridge.
_GRAM_ROWS = 384

# Directions whose weight is below this share of the largest have no influence on the operator.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class RegressionProblem:
    """Rows, with the kernels and the ridge of their conditional means settled."""

    rows: PenaltyRows
    # right_kernel, given_kernel: resolved
    right_kernel: Kernel
    given_kernel: Kernel
    ridge: float  # λ of every regression on the conditioning variables
    features: FeatureMap
    ridge_is_provisional: bool = False  # whether the ridge was chosen on some of the rows only

    @classmethod
    def settle(
        cls, rows: PenaltyRows, right_kernel: Kernel, given_kernel: Kernel, ridge: float | str, features: FeatureMap
    ) -> Self:
        """Resolve the kernels; ``"loo"`` chooses ridge and open length scale by the error in R's features."""
        right, given = rows.sample.first(_LOO_ROWS)
        right_kernel = right_kernel.resolve(right)
        if not isinstance(ridge, str):
            return cls(rows, right_kernel, given_kernel.resolve(given), float(ridge), features)
        targets = features.fit(right_kernel, right)(right)
        trials = []
        for candidate in given_kernel.candidates(given):
            spectrum, scores = _spectrum(candidate, given, targets, features)
            trials.append((*spectrum.best_ridge(scores, targets), candidate))
        best_ridge, _, best_kernel = min(trials, key=lambda trial: trial[1])
        return cls(rows, right_kernel, best_kernel, best_ridge, features, rows.n > _LOO_ROWS)

    @property
    def setting(self) -> Setting:
        """What was settled, for people to see."""
        return Setting(self.right_kernel, self.given_kernel, self.ridge)

    def kernel_matrices(self) -> tuple[Tensor, Tensor]:
        """K_R and K_S."""
        right, given = self.rows.whole()
        return self.right_kernel.gram(right, right), self.given_kernel.gram(given, given)

    def grams(self) -> tuple[Tensor, Tensor, GramRidge]:
        """K_R, K_S and the factorised K_S + nλI."""
        right, given = self.rows.whole()
        given_gram = self.given_kernel.gram(given, given)
        ridge = GramRidge(given_gram, self.ridge)
        return self.right_kernel.gram(right, right), given_gram, ridge

    def regression(self) -> FeatureRegression:
        """Sum over all rows; a ridge that was chosen on a sample is chosen again for these sums."""
        sample_right, sample_given = self.rows.sample.first(_LOO_ROWS)
        right = self.features.fit(self.right_kernel, sample_right)
        given = self.features.fit(self.given_kernel, sample_given)
        moments = self.rows.summed(MomentSums(right, given))
        problem = self
        if self.ridge_is_provisional:
            scores = given(sample_given) @ moments.spectrum.basis
            ridge, _ = moments.spectrum.best_ridge(scores, right(sample_right))
            problem = replace(self, ridge=ridge, ridge_is_provisional=False)
        return FeatureRegression(problem, right, given, moments)


class MomentSums(Sums["Moments"]):
    """Σ φ φᵀ, Σ φ ρᵀ and Σ ρ ρᵀ over rows, for features ρ of the right-hand side and φ of what is given."""

    def __init__(self, right: Features, given: Features) -> None:
        self.right, self.given = right, given

    def of_block(self, right: Tensor, given: Tensor) -> tuple[Tensor, ...]:
        """The three sums over a block."""
        phi, rho = self.given(given), self.right(right)
        return phi.T @ phi, phi.T @ rho, rho.T @ rho

    def finalise(self) -> Moments:
        """Factorise Σ φ φᵀ."""
        own, cross, second = self.totals
        return Moments(RidgeSpectrum.from_moments(own, cross, self.n), second)


@dataclass(frozen=True)
class Moments:
    """Sums over rows, factorised."""

    spectrum: RidgeSpectrum  # of Σ φ φᵀ, with Σ φ ρᵀ
    second: Tensor  # (q, q): Σ ρ ρᵀ


@dataclass(frozen=True)
class FeatureRegression:
    """Ridge regression of right-hand side features ρ on conditioning features φ."""

    problem: RegressionProblem
    # right, given: ρ and φ
    right: Features
    given: Features
    moments: Moments

    @property
    def spectrum(self) -> RidgeSpectrum:
        """Of the conditioning features."""
        return self.moments.spectrum

    def of_sample(self, size: int) -> FeatureRegression:
        """The same regression, features, kernels and ridge, of a sample of the rows alone."""
        sample = PenaltyRows.of_pair(self.problem.rows.sample.first(size))
        moments = sample.summed(MomentSums(self.right, self.given))
        return replace(self, problem=replace(self.problem, rows=sample), moments=moments)

    def influential(self) -> Tensor:  # (p,), boolean
        """Which directions of the spectrum W = (K + nλI)⁻¹ K does not shrink to nothing."""
        weight = self.spectrum.values * self.spectrum.inverse(self.problem.ridge)
        return weight > _NEGLIGIBLE * weight.max()

    def smoother(self) -> Tensor:  # (r, p)
        """M with W Wᵀ = (Φ M)(Φ M)ᵀ."""
        kept = self.influential()
        scale = self.spectrum.values.sqrt() * self.spectrum.inverse(self.problem.ridge)
        return self.spectrum.basis[:, kept] * scale[kept]

    def residual_vectors(self, left: Tensor) -> VectorsOf:  # (r, p)
        """Return what takes rows to the vectors of (Φ M)(Φ M)ᵀ ∘ K̃_R, with M = ``left`` and K̃_R of the residuals."""
        rotation, explained = self._residual_maps()
        return _ResidualVectors(self.right, self.given, left, rotation, explained)

    def _residual_maps(self) -> tuple[Tensor, Tensor]:  # (q, s), (r, s)
        """P and B, so that ρ P − φ B are the residuals in the fewest directions that hold all their variance."""
        coefficients = self.spectrum.coefficients(self.problem.ridge)  # (r, q)
        scores = self.spectrum.basis.T @ coefficients  # (p, q)
        explained = scores.T @ self.spectrum.cross
        variance = self.moments.second - explained - explained.T + scores.T @ (self.spectrum.values[:, None] * scores)
        values, rotation = eigh(variance)
        kept = values > _NEGLIGIBLE * values[-1]
        kept[-1] = True  # a right-hand side that is explained in full still has one, vanishing, direction
        return rotation[:, kept], coefficients @ rotation[:, kept]


@dataclass(frozen=True)
class _ResidualVectors:
    """Vectors l_i = φ_i M and r_i = ρ_i P − φ_i B of rows, see `FeatureRegression.residual_vectors`."""

    right: Features
    given: Features
    left: Tensor
    rotation: Tensor
    explained: Tensor

    def __call__(self, right_rows: Tensor, given_rows: Tensor) -> ElementwiseProduct:
        phi = self.given(given_rows)
        return ElementwiseProduct(phi @ self.left, self.right(right_rows) @ self.rotation - phi @ self.explained)


def _spectrum(
    kernel: Kernel, given: Tensor, targets: Tensor, features: FeatureMap
) -> tuple[RidgeSpectrum, Tensor]:  # (m, d), (m, q) -> scores (m, p)
    if given.shape[0] <= _GRAM_ROWS:
        return RidgeSpectrum.from_gram(kernel.gram(given, given), targets)
    phi = features.fit(kernel, given)(given)
    spectrum = RidgeSpectrum.from_moments(phi.T @ phi, phi.T @ targets, given.shape[0])
    return spectrum, phi @ spectrum.basis
