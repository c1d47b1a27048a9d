"""Kernel ridge regression in Gram or in feature form, each from one factorisation, always in double precision.

With rows in a kernel's feature space, regression of targets F (n, q) on features Φ (n, r) with ridge λ minimises
Σ_i ‖f_i − Bᵀ φ_i‖² + nλ ‖B‖². In Gram form the fitted values are H F with H = K (K + nλ I)⁻¹, K = Φ Φᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from ciplearn._core.errors import NumericalError
from ciplearn.kernels.eigen import eigh
from ciplearn.kernels.left_out import LeftOut

_EPS = torch.finfo(torch.float64).eps

# Columns that a system is solved for at a time: large enough for fast products, small beside the system itself.
_BLOCK = 256

# From almost interpolating to almost constant, two values per decade.
RIDGE_GRID = tuple(10.0 ** (exponent / 2) for exponent in range(-16, 1))


def loading(n: int, ridge: float) -> float:
    """What is added to the diagonal: nλ, not λ, so that a ridge smooths alike at every number of rows."""
    return n * ridge


def ridge_floor(trace: float) -> float:
    """The smallest ridge that arithmetic can tell from zero.

    nλ must stand above the rounding error n ε ‖K‖ of the largest eigenvalue, and the trace bounds that norm.
    """
    return _EPS * trace


class GramRidge:
    """The factorised matrix K + nλI of one Gram matrix and one ridge.

    ``gram``: (n, n). ``ridge``: λ; raised to the numerical floor where it lies below.
    """

    def __init__(self, gram: Tensor, ridge: float) -> None:
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
        """Return the ridge of the grid with the smallest leave-one-out error, and that error.

        The rows may be a sample of all those summed over: the error is then an unbiased estimate of the one over all.
        """
        floor = self.floored(0.0)
        grid = [ridge for ridge in RIDGE_GRID if ridge > floor] or [floor]
        loadings = torch.tensor([loading(self.rows, ridge) for ridge in grid]).to(self.values)
        errors = LeftOut(scores, self.values, loadings).errors(targets, self.cross).sum(dim=1).tolist()
        best = min(range(len(grid)), key=errors.__getitem__)
        return grid[best], errors[best]
