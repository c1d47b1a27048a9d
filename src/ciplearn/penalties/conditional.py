"""Criteria of Ŷ ⊥ R | S on ridge regressions on S: HSCIC [quinzan2024, park2020], and those on R's residuals alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from ciplearn._core.arguments import check_flags, non_negative, whole
from ciplearn._core.errors import InputError
from ciplearn.kernels import FeatureMap, Gaussian, Kernel
from ciplearn.kernels.ridge import GramRidge, RidgeSpectrum
from ciplearn.penalties import low_rank
from ciplearn.penalties.low_rank import CHECKED_ROWS, FeatureRegression, gradient_error
from ciplearn.penalties.penalty import DEFAULT_FEATURES, DEFAULT_KERNEL, EXACT_ROWS, Operator, Penalty, Setting
from ciplearn.penalties.rows import PenaltyRows, Sums
from ciplearn.penalties.storage import DenseMatrix, ElementwiseProduct, RowMap, Storage, VectorsOf

# Length scales are chosen, and leave-one-out errors averaged, over at most this many rows. Up to so many a Gram matrix
# is factorised as it is; beyond, features do as well for choosing a ridge.
_LOO_ROWS, _GRAM_ROWS = 2048, 384

# The most columns of a factor beyond exact rows; half of them do where few columns are involved.
_RANK = 256

# Rows whose third moments are formed at a time: each needs the square of the number of directions.
_MOMENT_ROWS = 1024


@dataclass(frozen=True)
class RegressionProblem:
    """Rows, with the kernels and the ridge of their conditional means settled."""

    rows: PenaltyRows
    right_kernel: Kernel  # resolved, as is the next
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
    def sample(self) -> tuple[Tensor, Tensor]:
        """The rows (right, given) that open settings are chosen on."""
        return self.rows.sample.first(_LOO_ROWS)

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
        right_gram, given_gram = self.kernel_matrices()
        return right_gram, given_gram, GramRidge(given_gram, self.ridge)


def _spectrum(
    kernel: Kernel, given: Tensor, targets: Tensor, features: FeatureMap
) -> tuple[RidgeSpectrum, Tensor]:  # (m, d), (m, q) -> scores (m, p)
    if given.shape[0] <= _GRAM_ROWS:
        return RidgeSpectrum.from_gram(kernel.gram(given, given), targets)
    phi = features.fit(kernel, given)(given)
    spectrum = RidgeSpectrum.from_moments(phi.T @ phi, phi.T @ targets, given.shape[0])
    return spectrum, phi @ spectrum.basis


@dataclass(frozen=True)
class ConditionalPenalty(Penalty, ABC):
    """A criterion of Ŷ ⊥ R | S built on ridge regression on S; `ResidualHSCIC` describes its parameters."""

    kernel: Kernel = DEFAULT_KERNEL
    right_kernel: Kernel = DEFAULT_KERNEL
    given_kernel: Kernel = DEFAULT_KERNEL
    ridge: float | str = "loo"
    centre: bool = False
    exact_rows: int | None = EXACT_ROWS
    features: FeatureMap = DEFAULT_FEATURES
    rank: int = _RANK

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flags(self, "centre")
        whole(self.rank, "rank", minimum=1)
        if not isinstance(self.ridge, str):
            non_negative(self.ridge, "ridge")
        elif self.ridge != "loo":
            raise InputError(f"ridge must be a number or 'loo', got {self.ridge!r}; pass one of these.")

    def _takes_codes(self) -> tuple[bool, bool]:
        return self.right_kernel.takes_codes, self.given_kernel.takes_codes

    def _check_given(self, present: bool) -> None:
        if not present:
            need = f"{type(self).__name__} needs conditioning variables, got given=None"
            raise InputError(f"{need}; pass given, or use HSIC.")

    def _build(self, rows: PenaltyRows) -> Operator:
        storage: Storage
        exact, error = self.exact_rows is None or rows.n <= self.exact_rows, 0.0
        if exact:
            problem = self._settled(rows)
            problem = FeatureRegression.of(problem).problem if problem.ridge_is_provisional else problem
            storage, setting = DenseMatrix(self._exact_matrix(problem)), problem.setting
        else:
            row_map, setting, error = self._approximation(rows)
            storage = low_rank.stored(rows, row_map)
        return Operator(self.kernel, storage.centred() if self.centre else storage, setting, exact, error)

    def _mapped(self, rows: PenaltyRows) -> tuple[RowMap, Setting, float]:
        row_map, setting, error = self._approximation(rows)
        if self.centre:
            mean = rows.summed(low_rank.FactorMean(row_map)).to(rows.dtype)
            row_map = low_rank.CentredFactor(row_map, mean)
        return row_map, setting, error

    def _settled(self, rows: PenaltyRows) -> RegressionProblem:
        return RegressionProblem.settle(rows, self.right_kernel, self.given_kernel, self.ridge, self.features)

    def _approximation(self, rows: PenaltyRows) -> tuple[RowMap, Setting, float]:
        """What gives Q from features, what was settled, and the error.

        What features lose shows on a sample, where Gram matrices can be had; what a factor loses, on the vectors of
        rows. The two errors have nothing to do with each other, so their squares add.
        """
        regression = FeatureRegression.of(self._settled(rows))
        sample = regression.of_sample(CHECKED_ROWS)
        # One matrix of this many rows is 8 MB: none is kept longer than needed.
        predictions = low_rank.smooth_predictions(*sample.problem.kernel_matrices())
        exact = self._exact_matrix(sample.problem)
        lost = gradient_error(self._vectors(sample)(*sample.problem.rows.whole()).block(None), exact, predictions)
        del exact
        row_map, also_lost = low_rank.shortest_map(rows, self._vectors(regression), self.rank, predictions)
        return row_map, regression.problem.setting, math.hypot(lost, also_lost)

    @abstractmethod
    def _exact_matrix(self, problem: RegressionProblem) -> Tensor:  # (n, n)
        """Q from full Gram matrices."""

    @abstractmethod
    def _vectors(self, regression: FeatureRegression) -> VectorsOf:
        """Return what takes rows (right, given) to the vectors that give entries of Q."""


@dataclass(frozen=True)
class ResidualHSCIC(ConditionalPenalty):
    """Q = (1/n) (W Wᵀ) ∘ K̃_R with W = (K_S + nλI)⁻¹ K_S, K̃_R = (I − H) K_R (I − H)ᵀ, H = K_S (K_S + nλI)⁻¹.

    Its population value is zero exactly where HSCIC's is. The prediction itself is never smoothed, so a predictor that
    is a function of the conditioning variables alone is not punished for the smoothing's bias, as it is by `HSCIC`.

    Parameters
    ----------
    kernel, right_kernel, given_kernel : Kernel
        Of the predictions, of the right-hand side R, and of the conditioning variables S.
    ridge : float or "loo"
        λ; ``"loo"`` chooses it by leave-one-out error, and with it the length scale of ``given_kernel`` if that is
        ``"median"``.
    centre : bool
        Use C Q C with C = I − 11ᵀ/n instead of Q. Ridge weights do not sum to one, so a constant prediction has the
        penalty 1ᵀQ1 > 0; centring removes that floor and leaves the population value alone.
    exact_rows, features : int or None, FeatureMap
        Up to this many rows Q comes from full Gram matrices, beyond it from these features; 0 means always, None never.
    rank : int
        Beyond ``exact_rows``, the most numbers per row of a factor V with Q ≈ V Vᵀ; half of them are taken where they
        do. Where no such factor keeps the direction of gradients, as with many columns, a row carries the two vectors
        of its features instead.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian, ResidualHSCIC
    >>> s, e = torch.linspace(0, 60, 200).sin(), torch.linspace(0, 250, 200).cos()
    >>> operator = ResidualHSCIC(kernel=Gaussian(1.0)).prepare(right=s + e, given=s)  # once
    >>> bool(operator(s + e) > 10 * operator(s))
    True
    >>> prediction = torch.zeros(20, 1, requires_grad=True)
    >>> operator(prediction, rows=torch.arange(20)).backward()  # one batch of a training loop
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


@dataclass(frozen=True)
class CIRCE(ConditionalPenalty):
    """Q = (1/n²) K_S ∘ K̃_R with K̃_R = (I − H) K_R (I − H)ᵀ, H = K_S (K_S + nλI)⁻¹.

    Conditional independence regression covariance [pogodin2022]. Parameters: see `ResidualHSCIC`.

    >>> import torch
    >>> from ciplearn import CIRCE, Gaussian
    >>> s, e = torch.linspace(0, 60, 200).sin(), torch.linspace(0, 250, 200).cos()
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


@dataclass(frozen=True)
class HSCIC(ConditionalPenalty):
    """Mean over rows i of ‖μ̂_{Ŷ,R|s_i} − μ̂_{Ŷ|s_i} ⊗ μ̂_{R|s_i}‖², the means estimated by ridge regression on S.

    With W = (K_S + nλI)⁻¹ K_S, whose column w_i weighs the rows at s_i, D_i = diag(w_i),

        Q = (1/n) Σ_i (D_i − w_i w_iᵀ) K_R (D_i − w_i w_iᵀ)
          = (1/n) [K_R ∘ (W Wᵀ) − B Wᵀ − W Bᵀ],   B = P − ½ W diag(a),   P = W ∘ (K_R W),   a = column sums of P.

    The paper prints the middle term of each norm as a product of two scalars; it is −2 wᵀ[(K_Ŷ w) ∘ (K_R w)], as here.
    Parameters: see `ResidualHSCIC`; the ridge is the paper's by default.

    >>> import torch
    >>> from ciplearn import HSCIC, Gaussian
    >>> s, e = torch.linspace(0, 60, 200).sin(), torch.linspace(0, 250, 200).cos()
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
        return (right_gram * (weights @ weights.T) - cross - cross.T) / problem.rows.n

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
        p = self.inverse.numel()
        third, weighted = self.cross.new_zeros(p * p, p), self.cross.new_zeros(p, p)
        for part in (self.given(given) @ (self.scores * self.inverse)).split(_MOMENT_ROWS):
            third.addmm_(_pairs(part, part).T, part)
            weighted.addmm_((part * (part @ self.cross).square().sum(1, keepdim=True)).T, part)
        return third, weighted

    def finalise(self) -> Self:
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
