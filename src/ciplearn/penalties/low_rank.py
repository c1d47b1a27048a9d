"""Q from features, where rows are too many for Gram matrices: vectors row by row, as short as a stated error allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn.kernels import Features, Gaussian
from ciplearn.kernels.ridge import RidgeSpectrum, eigh, leading
from ciplearn.penalties.inner_product import GaussianBlockProduct
from ciplearn.penalties.rows import PenaltyRows, Sums
from ciplearn.penalties.storage import ElementwiseProduct, Factor, RowMap, Storage, VectorsOf

if TYPE_CHECKING:
    from ciplearn.penalties.conditional import RegressionProblem

# Directions whose weight is below this share of the largest have no influence on the operator.
_NEGLIGIBLE = 1e-9

# Rows whose columns of Q span the factor. They are drawn evenly: pivots that explain most of the trace are outlying
# rows, which few others resemble. Directions that together hold this share of their trace are left out.
_LANDMARKS, _TOLERANCE = 512, 1e-6

# A factor must keep gradients as near to those of the product form as this, a cosine of 0.968.
MOST_FACTOR_ERROR = 0.25

# A row that carries more numbers than this keeps them in half the precision, and so in no more memory. Rounding then
# turns gradients by 0.003, where features turn them by 0.1 and more.
_FULL_PRECISION_WIDTH = 128

# How far gradients of an approximation point away from those of the exact Q is measured on this many rows, whose Gram
# matrices can be had, and for predictions of the kind that networks make: smooth functions of R and S. Training follows
# gradients, so that is what counts: large parts of Q act on no prediction that a network would make.
CHECKED_ROWS, _PREDICTIONS = 1024, 4

# For predictions of unit variance, as the estimators choose it.
_KERNEL = Gaussian(2**0.5)

_HALF = {torch.float64: torch.float32, torch.float32: torch.bfloat16}


class MomentSums(Sums[tuple[RidgeSpectrum, Tensor]]):
    """Σ φ φᵀ, Σ φ ρᵀ and Σ ρ ρᵀ over rows, for features ρ of the right-hand side and φ of what is given."""

    def __init__(self, right: Features, given: Features) -> None:
        self.right, self.given = right, given

    def of_block(self, right: Tensor, given: Tensor) -> tuple[Tensor, ...]:
        """The three sums over a block."""
        phi, rho = self.given(given), self.right(right)
        return phi.T @ phi, phi.T @ rho, rho.T @ rho

    def finalise(self) -> tuple[RidgeSpectrum, Tensor]:
        """Return the spectrum of Σ φ φᵀ, with Σ φ ρᵀ, and Σ ρ ρᵀ."""
        of_given, cross, second = self.totals
        return RidgeSpectrum.from_moments(of_given, cross, self.n), second


@dataclass(frozen=True)
class FeatureRegression:
    """Ridge regression of right-hand side features ρ on conditioning features φ."""

    problem: RegressionProblem
    right: Features  # ρ
    given: Features  # φ
    spectrum: RidgeSpectrum  # of Σ φ φᵀ, with Σ φ ρᵀ
    second: Tensor  # (q, q): Σ ρ ρᵀ

    @classmethod
    def of(cls, problem: RegressionProblem) -> Self:
        """Sum over all rows; a ridge that was chosen on a sample is chosen again for these sums."""
        sample_right, sample_given = problem.sample
        right = problem.features.fit(problem.right_kernel, sample_right)
        given = problem.features.fit(problem.given_kernel, sample_given)
        spectrum, second = problem.rows.summed(MomentSums(right, given))
        if problem.ridge_is_provisional:
            ridge, _ = spectrum.best_ridge(given(sample_given) @ spectrum.basis, right(sample_right))
            problem = replace(problem, ridge=ridge, ridge_is_provisional=False)
        return cls(problem, right, given, spectrum, second)

    def of_sample(self, size: int) -> FeatureRegression:
        """The same regression, features, kernels and ridge, of a sample of the rows alone."""
        sample = PenaltyRows.of_pair(self.problem.rows.sample.first(size))
        spectrum, second = sample.summed(MomentSums(self.right, self.given))
        return replace(self, problem=replace(self.problem, rows=sample), spectrum=spectrum, second=second)

    def influential(self) -> Tensor:  # (p,), boolean
        """Which directions of the spectrum W = (K + nλI)⁻¹ K does not shrink to nothing."""
        weight = self.spectrum.values * self.spectrum.inverse(self.problem.ridge)
        return weight > _NEGLIGIBLE * weight.max()

    def smoother(self) -> Tensor:  # (r, p)
        """M with W Wᵀ = (Φ M)(Φ M)ᵀ."""
        scale = self.spectrum.values.sqrt() * self.spectrum.inverse(self.problem.ridge)
        return (self.spectrum.basis * scale)[:, self.influential()]

    def residual_vectors(self, left: Tensor) -> VectorsOf:  # (r, p)
        """Return what takes rows to the vectors of (Φ M)(Φ M)ᵀ ∘ K̃_R, with M = ``left`` and K̃_R of the residuals."""
        coefficients = self.spectrum.coefficients(self.problem.ridge)  # (r, q)
        scores = self.spectrum.basis.T @ coefficients  # (p, q)
        explained = scores.T @ self.spectrum.cross
        variance = self.second - explained - explained.T + scores.T @ (self.spectrum.values[:, None] * scores)
        # ρ P − φ B are the residuals in the fewest directions P that hold all their variance.
        values, rotation = eigh(variance)
        kept = values > _NEGLIGIBLE * values[-1]
        kept[-1] = True  # a right-hand side that is explained in full still has one, vanishing, direction
        return _ResidualVectors(self.right, self.given, left, rotation[:, kept], coefficients @ rotation[:, kept])


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


@dataclass(frozen=True)
class _FactorRows:
    """V = Q_·Z U Λ^(−1/2) for landmark rows Z and the leading eigenvectors U and eigenvalues Λ of Q_ZZ."""

    vectors_of: VectorsOf  # what gives entries of Q
    landmarks: ElementwiseProduct  # the vectors of Z
    directions: Tensor  # (m, k): U Λ^(−1/2), in the precision of V

    def __call__(self, right: Tensor, given: Tensor) -> Factor:
        vectors = self.vectors_of(right, given).to(None, self.directions.dtype)
        return Factor(vectors.between(self.landmarks) @ self.directions)


@dataclass(frozen=True)
class CentredFactor:
    """V − 1 v̄ᵀ, with the mean v̄ over all rows."""

    factor_of: RowMap
    mean: Tensor  # (k,)

    def __call__(self, right: Tensor, given: Tensor) -> Factor:
        """Rows of the centred factor."""
        return Factor(_factor(self.factor_of, right, given) - self.mean)


class FactorMean(Sums[Tensor]):
    """Mean of a factor's rows."""

    def __init__(self, factor_of: RowMap) -> None:
        self.factor_of = factor_of

    def of_block(self, right: Tensor, given: Tensor) -> tuple[Tensor, ...]:
        """Sum of the factor's rows."""
        return (_factor(self.factor_of, right, given).double().sum(dim=0),)

    def finalise(self) -> Tensor:  # (k,)
        """Divide by the number of rows."""
        return self.totals[0] / self.n


def shortest_map(rows: PenaltyRows, vectors_of: VectorsOf, rank: int, predictions: Tensor) -> tuple[RowMap, float]:
    """Return what takes rows to a factor V, or to their vectors as they are where no short factor will do.

    ``rank``: the most columns of V; half as many are taken where they do. ``predictions``: for the first m rows of the
    sample, which were drawn apart from the landmarks: what a factor is judged by. The number: how far gradients of
    the factor are from those of the product form; 0 for the latter.
    """
    landmarks = vectors_of(*rows.sample.last(_LANDMARKS))
    values, eigenvectors = leading(landmarks.between(landmarks), _TOLERANCE)
    directions = eigenvectors[:, :rank] / values[:rank].sqrt()
    if not len(values):  # Q is zero
        directions = landmarks.left.new_zeros(len(landmarks.left), 1)
    judged = vectors_of(*rows.sample.first(predictions.shape[1]))
    similar, exact = judged.between(landmarks), judged.between(judged)
    for columns in (rank // 2, rank):
        factor = similar @ directions[:, :columns]
        error = gradient_error(factor @ factor.T, exact, predictions)
        if error <= MOST_FACTOR_ERROR:
            kept = directions[:, :columns].to(rows.dtype)
            return _FactorRows(vectors_of, landmarks.to(None, rows.dtype), kept), error
    return vectors_of, 0.0


def stored(rows: PenaltyRows, row_map: RowMap) -> Storage:
    """Keep what a map gives for every row."""
    start, whole = 0, None
    for right, given in rows.chunks():
        vectors, stop = row_map(right, given), start + right.shape[0]
        if whole is None:
            # With a correction Q is a small difference of large terms, which rounding would not leave alone.
            is_difference = isinstance(vectors, ElementwiseProduct) and vectors.correction is not None
            in_full = vectors.width <= _FULL_PRECISION_WIDTH or is_difference
            whole = vectors.room(rows.n, rows.dtype if in_full else _HALF.get(rows.dtype, rows.dtype))
        # Filled in place: pieces and whole together would need twice the memory.
        for part, piece in zip(whole.parts(), vectors.parts(), strict=True):
            part[start:stop] = piece
        start = stop
    if whole is None:
        raise InputError("There are no rows to prepare on, got an empty table; pass some.")
    return whole


def _factor(factor_of: RowMap, right: Tensor, given: Tensor) -> Tensor:  # (n, k)
    vectors = factor_of(right, given)
    if not isinstance(vectors, Factor):
        why = "Rows of a product of two factors cannot be centred as they come"
        raise InputError(f"{why}; pass centre=False, or prepare in memory.")
    return vectors.factor


def smooth_predictions(*grams: Tensor) -> Tensor:  # (m, m) each -> (k, m)
    """Noise that is smoothed by each Gram matrix, in equal shares, with unit variance."""
    generator = torch.Generator().manual_seed(0)
    total = grams[0].new_zeros(grams[0].shape[0], _PREDICTIONS)
    for gram in grams:
        noise = torch.randn(gram.shape[0], _PREDICTIONS, generator=generator, dtype=torch.float64)
        total += _standardised(gram @ noise.to(gram))
    return _standardised(total).T


def gradient_error(approximate: Tensor, exact: Tensor, predictions: Tensor) -> float:  # (m, m), (m, m), (k, m)
    """√(1 − c²) for the cosine c between the gradients of ⟨K_Ŷ, Q⟩, in the mean over the predictions.

    That is ‖s g̃ − g‖ / ‖g‖ with the scale s that fits best: a gradient of another length only means another gamma.
    """
    near, true = _gradients(approximate, predictions), _gradients(exact, predictions)
    lengths = near.square().sum(dim=1) * true.square().sum(dim=1)
    squared = (near * true).sum(dim=1).square() / lengths.clamp_min(torch.finfo(lengths.dtype).tiny)
    # Where there is no gradient, there is none to miss.
    missed = torch.where(true.abs().amax(dim=1) > 0, 1 - squared, torch.zeros_like(squared))
    return float(missed.clamp_min(0).mean().sqrt())


def _gradients(matrix: Tensor, predictions: Tensor) -> Tensor:  # (m, m), (k, m) -> (k, m)
    gradients = []
    # One after the other: each needs several matrices of the size of the block.
    for prediction in predictions.to(matrix):
        with torch.enable_grad():
            y_hat = prediction[:, None].requires_grad_()
            value = GaussianBlockProduct.apply(y_hat, matrix, _KERNEL.scale(1), 1.0, 1.0)
            gradients.append(torch.autograd.grad(value, y_hat)[0][:, 0])
    return torch.stack(gradients)


def _standardised(columns: Tensor) -> Tensor:  # (m, k)
    centred = columns - columns.mean(dim=0)
    spread = centred.square().mean(dim=0).sqrt()
    return torch.where(spread > 0, centred / spread.clamp_min(torch.finfo(spread.dtype).tiny), 0.0)
