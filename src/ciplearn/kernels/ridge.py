"""Eigenvectors, partial Cholesky factors, and kernel ridge regression: what is solved, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from ciplearn._core.errors import NumericalError

# Eigenvalues below this share of the largest are rounding errors of what the matrix was made of.
_RANK = 1e-12

# Columns that a system is solved for, and targets taken together: enough for fast products, few enough for memory.
_BLOCK, _TARGETS = 256, 8

# From almost interpolating to almost constant, two values per decade.
RIDGE_GRID = tuple(10.0 ** (exponent / 2) for exponent in range(-16, 1))

# What is left of a row's weight in its own prediction is at least this: a row alone in its direction explains itself.
_LEAST = 1e-9


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:  # (k, k) -> (k,), (k, k)
    """Return eigenvalues from small to large, none below zero, and eigenvectors."""
    matrix = matrix.double()
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError as error:
        raise NumericalError(
            f"The eigendecomposition of a {matrix.shape[0]} × {matrix.shape[0]} matrix with largest entry "
            f"{float(matrix.abs().max()):.3g} did not converge; rescale the columns or use a larger length scale."
        ) from error
    return values.clamp_min(0), vectors


def eigenspace(matrix: Tensor) -> tuple[Tensor, Tensor]:  # (k, k) -> (r,), (k, r)
    """Return the eigenvalues above rounding error, and their eigenvectors."""
    values, vectors = eigh(matrix)
    kept = values > _RANK * values.max() if len(values) else values > 0
    return values[kept], vectors[:, kept]


def inverse_root(matrix: Tensor) -> Tensor:  # (k, k) -> (k, r)
    """R with R Rᵀ the pseudo-inverse of a matrix."""
    values, vectors = eigenspace(matrix)
    return vectors / values.sqrt()


def leading(matrix: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:  # (k, k) -> (r,), (k, r)
    """Return eigenvalues from large to small, and eigenvectors; the least, with a share of the trace together, go."""
    values, vectors = eigh(matrix)
    lost = values.cumsum(0)
    kept = lost > tolerance * lost[-1]
    return values[kept].flip(0), vectors[:, kept].flip(1)


def pivoted_cholesky(
    diagonal: Tensor,  # (n,)
    column: Callable[[int], Tensor],  # j -> (n,)
    rank: int,
    tolerance: float,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:  # (k,), (n, k)
    """Return pivots, at most ``rank``, and a factor F with F Fᵀ ≈ the matrix, exact in the pivots' rows and columns.

    Pivots are added until the unexplained share of the trace falls to ``tolerance``: drawn with probability
    proportional to the unexplained diagonal [chen2025], or the largest where there is no generator.
    """
    unexplained = diagonal.double().clamp_min(0)
    target = tolerance * float(unexplained.sum())
    factor = unexplained.new_zeros(diagonal.shape[0], min(rank, diagonal.shape[0]))
    pivots: list[int] = []
    for step in range(factor.shape[1]):
        if float(unexplained.sum()) <= target:
            break
        if generator is None:
            pivot = int(unexplained.argmax())
        else:
            pivot = int(torch.multinomial(unexplained.cpu(), 1, generator=generator))
        fresh = column(pivot).double() - factor[:, :step] @ factor[pivot, :step]
        factor[:, step] = fresh / unexplained[pivot].sqrt()
        unexplained = (unexplained - factor[:, step].square()).clamp_min(0)
        unexplained[pivot] = 0
        pivots.append(pivot)
    return torch.tensor(pivots, dtype=torch.int64, device=diagonal.device), factor[:, : len(pivots)]


def fewest_columns(factor: Tensor, tolerance: float) -> Tensor:  # (n, k) -> (n, r)
    """Rotate a factor to orthogonal columns and drop those that together hold ``tolerance`` of the trace."""
    _, rotation = leading(factor.T @ factor, tolerance)
    return factor if rotation.shape[1] == factor.shape[1] else factor @ rotation.to(factor.dtype)


def loading(n: int, ridge: float) -> float:
    """What is added to the diagonal: nλ, not λ, so that a ridge smooths alike at every number of rows."""
    return n * ridge


def ridge_floor(trace: float) -> float:
    """The least ridge that is not lost in rounding: nλ stands above the error n ε ‖K‖, and the trace bounds ‖K‖."""
    return torch.finfo(torch.float64).eps * trace


class GramRidge:
    """The factorised matrix K + nλI of one Gram matrix and one ridge, raised to the numerical floor."""

    def __init__(self, gram: Tensor, ridge: float) -> None:  # (n, n), λ
        self.gram = gram.double()
        n = gram.shape[0]
        trace = float(self.gram.diagonal().sum())
        self.ridge = max(ridge, ridge_floor(trace))
        self.loading = loading(n, self.ridge)
        loaded = self.gram.clone()
        loaded.diagonal().add_(self.loading)
        self._factor, failed = torch.linalg.cholesky_ex(loaded)
        if int(failed):
            raise NumericalError(
                f"The ridge system of {n} rows is not positive definite at row {int(failed)}: ridge {self.ridge:.1e} "
                f"adds {self.loading:.1e} to a Gram matrix of trace {trace:.3g}; "
                f"raise the ridge to {100 * self.ridge:.1e} or more."
            )

    def weights(self) -> Tensor:  # (n, n)
        """W = (K + nλI)⁻¹ K: column i holds the weights of the conditional mean at row i."""
        return self._solve(self.gram.clone())

    def residual_gram(self, target: Tensor) -> Tensor:  # (n, n) -> (n, n)
        """(I − H) T (I − H)ᵀ for a Gram matrix T of targets, using I − H = nλ (K + nλI)⁻¹; T is overwritten."""
        residual = target.double()
        # One factor at a time: the square of a large ridge is beyond any number.
        self._solve(residual).mul_(self.loading)
        self._solve(residual.T).mul_(self.loading)
        return (residual + residual.T).div_(2)

    def _solve(self, right: Tensor) -> Tensor:  # (n, m) -> (n, m)
        """Put (K + nλI)⁻¹ B in the place of B, some columns at a time: all at once would need as much memory again."""
        for columns in right.split(_BLOCK, dim=1):
            half = torch.linalg.solve_triangular(self._factor, columns, upper=False)
            columns.copy_(torch.linalg.solve_triangular(self._factor.T, half, upper=True))
        return right


@dataclass(frozen=True)
class LeftOut:
    """Regressions on rows z_i whose sum Σ z_i z_iᵀ = diag(e), one for each nλ.

    Fitted without its own row, a target is off by (f_i − f̂_i) / (1 − h_i) with h_i = Σ_k z_ik² / (e_k + nλ).
    """

    scores: Tensor  # (m, p): z of all rows, or of some of them
    values: Tensor  # (p,): e
    loadings: Tensor  # (r,): nλ
    fixed: Tensor | float = 0.0  # (m,): what each row adds to h besides, such as its share of an intercept

    @cached_property
    def inverse(self) -> Tensor:  # (p, r)
        """1 / (e + nλ)."""
        return 1.0 / (self.values[:, None] + self.loadings)

    @cached_property
    def rest(self) -> Tensor:  # (m, r)
        """1 − h."""
        return rest_of((self.scores.square() @ self.inverse).T + self.fixed).T

    def residuals(self, targets: Tensor, cross: Tensor, ridge: int) -> Tensor:  # (m, q), (p, q) -> (m, q)
        """Return what targets are off by at one of the ridges; ``cross`` is Σ z_i f_iᵀ over all rows."""
        fitted = self.scores @ (self.inverse[:, ridge, None] * cross)
        return (targets - fitted) / self.rest[:, ridge, None]

    def errors(self, targets: Tensor, cross: Tensor) -> Tensor:  # (m, q), (p, q) -> (r, q)
        """Return the mean squares of `residuals` for all ridges."""
        parts = []
        for wanted, along in zip(targets.split(_TARGETS, dim=1), cross.split(_TARGETS, dim=1), strict=True):
            fitted = self.scores @ (self.inverse[:, :, None] * along[:, None]).flatten(1)  # (m, r · q)
            left = (wanted[:, None] - fitted.unflatten(1, (-1, wanted.shape[1]))) / self.rest[:, :, None]
            parts.append(left.square().mean(dim=0))
        return torch.cat(parts, dim=1)


def rest_of(leverages: Tensor) -> Tensor:
    """1 − h, kept away from zero."""
    return (1 - leverages).clamp_min(_LEAST)


@dataclass(frozen=True)
class RidgeSpectrum:
    """Ridge regressions for every λ from one eigendecomposition.

    With ΦᵀΦ = V diag(e) Vᵀ and scores z_i = Vᵀ φ_i, the fitted value at row i is z_i diag(1 / (e + nλ)) Σ_j z_j f_jᵀ
    and its leverage is Σ_k z_ik² / (e_k + nλ).
    """

    values: Tensor  # (p,): eigenvalues e
    cross: Tensor  # (p, q): Σ_j z_j f_jᵀ
    # (r, p): V, which takes features to scores; the identity in Gram form, where the scores themselves are the features
    basis: Tensor
    rows: int  # the number of rows summed over

    @classmethod
    def from_moments(cls, second: Tensor, cross: Tensor, rows: int) -> Self:  # (r, r), (r, q)
        """Feature form, from the sums ΦᵀΦ and ΦᵀF; sums add over chunks, files and workers."""
        values, basis = eigh(second)
        return cls(values, basis.T @ cross.double(), basis, rows)

    @classmethod
    def from_gram(cls, gram: Tensor, targets: Tensor) -> tuple[Self, Tensor]:  # (n, n), (n, q)
        """Gram form, from K itself; also returns the scores of its rows, shape (n, n)."""
        values, vectors = eigh(gram)
        scores = vectors * values.sqrt()
        identity = torch.eye(values.numel(), dtype=values.dtype, device=values.device)
        return cls(values, scores.T @ targets.double(), identity, gram.shape[0]), scores

    def floored(self, ridge: float) -> float:
        """``ridge``, raised to the numerical floor where it lies below."""
        return max(ridge, ridge_floor(float(self.values.sum())))

    def inverse(self, ridge: float) -> Tensor:  # (p,)
        """1 / (e + nλ)."""
        return 1.0 / (self.values + loading(self.rows, self.floored(ridge)))

    def coefficients(self, ridge: float) -> Tensor:  # (r, q)
        """B, so that the fitted value at features φ is φ B."""
        return self.basis @ (self.inverse(ridge)[:, None] * self.cross)

    def best_ridge(self, scores: Tensor, targets: Tensor) -> tuple[float, float]:  # (m, p), (m, q)
        """Return the ridge of the grid with the least leave-one-out error on all rows or a sample, and that error."""
        floor = self.floored(0.0)
        grid = [ridge for ridge in RIDGE_GRID if ridge > floor] or [floor]
        loadings = torch.tensor([loading(self.rows, ridge) for ridge in grid]).to(self.values)
        errors = LeftOut(scores, self.values, loadings).errors(targets, self.cross).sum(dim=1).tolist()
        best = min(range(len(grid)), key=errors.__getitem__)
        return grid[best], errors[best]
