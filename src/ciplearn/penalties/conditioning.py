"""Regression of the right-hand side on the conditioning variables: what conditional criteria share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from ciplearn.kernels import FeatureMap, Features, Kernel
from ciplearn.kernels.ridge import GramRidge, RidgeSpectrum
from ciplearn.penalties.landmarks import Entries
from ciplearn.penalties.operator import Setting
from ciplearn.penalties.rows import Rows

# Length scales are chosen, and leave-one-out errors averaged, over at most this many rows.
_LOO_ROWS = 2048

# Up to this many rows a Gram matrix is factorised as it is; beyond, features do as well for choosing a ridge.
_GRAM_ROWS = 384

# Directions whose weight is below this share of the largest have no influence on the operator.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Conditional:
    """Rows, with the kernels and the ridge of their conditional means settled.

    Attributes
    ----------
    rows : Rows
    right_kernel, given_kernel : Kernel
        Resolved.
    ridge : float
        λ of every regression on the conditioning variables.
    features : FeatureMap
    """

    rows: Rows
    right_kernel: Kernel
    given_kernel: Kernel
    ridge: float
    features: FeatureMap

    @classmethod
    def settle(
        cls, rows: Rows, right_kernel: Kernel, given_kernel: Kernel, ridge: float | str, features: FeatureMap
    ) -> Self:
        """Resolve the kernels; with ridge ``"loo"`` choose ridge and open length scale by leave-one-out error.

        The error is that of predicting the right-hand side's features from the conditioning variables.
        """
        right, given = rows.sample(_LOO_ROWS, seed=0)
        right_kernel = right_kernel.resolve(right)
        if not isinstance(ridge, str):
            return cls(rows, right_kernel, given_kernel.resolve(given), float(ridge), features)
        targets = features.fit(right_kernel, right)(right)
        trials = []
        for candidate in given_kernel.candidates(given):
            spectrum, scores = _spectrum(candidate, given, targets, features)
            trials.append((*spectrum.best_ridge(scores, targets), candidate))
        best_ridge, _, best_kernel = min(trials, key=lambda trial: trial[1])
        return cls(rows, right_kernel, best_kernel, best_ridge, features)

    @property
    def setting(self) -> Setting:
        """What was settled, for people to see."""
        return Setting(self.right_kernel, self.given_kernel, self.ridge)

    def grams(self) -> tuple[Tensor, Tensor, GramRidge]:
        """K_R, K_S and the factorised K_S + nλI."""
        right, given = self.rows.whole()
        right_gram = self.right_kernel.gram(right, right)
        given_gram = self.given_kernel.gram(given, given)
        return right_gram, given_gram, GramRidge(given_gram, self.ridge)

    def regression(self, *, ridge_is_free: bool) -> FeatureRegression:
        """Sum over all rows; a free ridge that was chosen on a sample only is chosen again on all of them."""
        sample_right, sample_given = self.rows.sample(_LOO_ROWS, seed=0)
        right = self.features.fit(self.right_kernel, sample_right)
        given = self.features.fit(self.given_kernel, sample_given)
        own = sample_right.new_zeros(given.size, given.size)
        cross = sample_right.new_zeros(given.size, right.size)
        second = sample_right.new_zeros(right.size, right.size)
        for right_rows, given_rows in self.rows.chunks():
            phi, rho = given(given_rows), right(right_rows)
            own.addmm_(phi.T, phi)
            cross.addmm_(phi.T, rho)
            second.addmm_(rho.T, rho)
        spectrum = RidgeSpectrum.from_moments(own, cross, self.rows.n)
        problem = self
        if ridge_is_free and self.rows.n > _LOO_ROWS:
            ridge, _ = spectrum.best_ridge(given(sample_given) @ spectrum.basis, right(sample_right))
            problem = replace(self, ridge=ridge)
        return FeatureRegression(problem, right, given, spectrum, second)


@dataclass(frozen=True)
class FeatureRegression:
    """Ridge regression of right-hand side features ρ on conditioning features φ.

    Attributes
    ----------
    problem : Conditional
    right, given : Features
        ρ and φ.
    spectrum : RidgeSpectrum
        Of Σ φ φᵀ, with Σ φ ρᵀ.
    second : Tensor, shape (q, q)
        Σ ρ ρᵀ.
    """

    problem: Conditional
    right: Features
    given: Features
    spectrum: RidgeSpectrum
    second: Tensor

    def influential(self) -> Tensor:  # (p,), boolean
        """Which directions of the spectrum W = (K + nλI)⁻¹ K does not shrink to nothing."""
        weight = self.spectrum.values * self.spectrum.inverse(self.problem.ridge)
        return weight > _NEGLIGIBLE * weight.max()

    def smoother(self) -> Tensor:  # (r, p)
        """M with W Wᵀ = (Φ M)(Φ M)ᵀ."""
        kept = self.influential()
        scale = self.spectrum.values.sqrt() * self.spectrum.inverse(self.problem.ridge)
        return self.spectrum.basis[:, kept] * scale[kept]

    def residual_entries(self, left: Tensor) -> Callable[[Tensor, Tensor], Entries]:  # (r, p)
        """Return what takes rows to the entries of (Φ M)(Φ M)ᵀ ∘ K̃_R, with M = ``left`` and K̃_R of the residuals."""
        rotation, explained = self._residual_maps()

        def entries(right_rows: Tensor, given_rows: Tensor) -> Entries:
            phi = self.given(given_rows)
            return Entries(phi @ left, self.right(right_rows) @ rotation - phi @ explained)

        return entries

    def _residual_maps(self) -> tuple[Tensor, Tensor]:  # (q, s), (r, s)
        """P and B, so that ρ P − φ B are the residuals in the fewest directions that hold all their variance."""
        coefficients = self.spectrum.coefficients(self.problem.ridge)  # (r, q)
        scores = self.spectrum.basis.T @ coefficients  # (p, q)
        explained = scores.T @ self.spectrum.cross
        variance = self.second - explained - explained.T + scores.T @ (self.spectrum.values[:, None] * scores)
        values, rotation = torch.linalg.eigh(variance)
        kept = values > _NEGLIGIBLE * values[-1].clamp_min(0)
        kept[-1] = True  # a right-hand side that is explained in full still has one, vanishing, direction
        return rotation[:, kept], coefficients @ rotation[:, kept]


def _spectrum(
    kernel: Kernel, given: Tensor, targets: Tensor, features: FeatureMap
) -> tuple[RidgeSpectrum, Tensor]:  # (m, d), (m, q) -> scores (m, p)
    if given.shape[0] <= _GRAM_ROWS:
        return RidgeSpectrum.from_gram(kernel.gram(given, given), targets)
    phi = features.fit(kernel, given)(given)
    spectrum = RidgeSpectrum.from_moments(phi.T @ phi, phi.T @ targets, given.shape[0])
    return spectrum, phi @ spectrum.basis
