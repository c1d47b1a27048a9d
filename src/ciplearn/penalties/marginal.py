"""Criteria that need no regression: HSIC [gretton2005] and MMD [gretton2012, veitch2021]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ciplearn._core.errors import InputError
from ciplearn.kernels import FeatureMap, Features, Kernel
from ciplearn.penalties import low_rank
from ciplearn.penalties.low_rank import CHECKED_ROWS, CentredFactor, FactorMean, gradient_error, smooth_predictions
from ciplearn.penalties.penalty import DEFAULT_FEATURES, DEFAULT_KERNEL, EXACT_ROWS, Operator, Penalty, Setting
from ciplearn.penalties.rows import PenaltyRows
from ciplearn.penalties.storage import DenseMatrix, Factor, RowMap

# Rows that features are fitted on.
_SAMPLE_ROWS = 2048


@dataclass(frozen=True)
class HSIC(Penalty):
    """Q = (1/n²) C K_R C with C = I − 11ᵀ/n: independence with no conditioning variables. Always centred.

    Parameters: see `ResidualHSCIC`.

    >>> import torch
    >>> from ciplearn import HSIC, Gaussian
    >>> a, e = torch.linspace(0, 60, 200).sin(), torch.linspace(0, 250, 200).cos()
    >>> penalty = HSIC(kernel=Gaussian(1.0))
    >>> bool(penalty(a, a) > 10 * penalty(e, a))
    True
    """

    kernel: Kernel = DEFAULT_KERNEL
    right_kernel: Kernel = DEFAULT_KERNEL
    exact_rows: int | None = EXACT_ROWS
    features: FeatureMap = DEFAULT_FEATURES

    def _takes_codes(self) -> tuple[bool, bool]:
        return self.right_kernel.takes_codes, True

    def _check_given(self, present: bool) -> None:
        if present:
            raise InputError("HSIC has no conditioning variables, got given; leave it out, or use ResidualHSCIC.")

    def _build(self, rows: PenaltyRows) -> Operator:
        if self.exact_rows is None or rows.n <= self.exact_rows:
            kernel, (right, _) = self._right_kernel(rows), rows.whole()
            storage = DenseMatrix(kernel.gram(right, right) / rows.n**2).centred()
            return Operator(self.kernel, storage, Setting(kernel), exact=True)
        row_map, setting, error = self._mapped(rows)
        return Operator(self.kernel, low_rank.stored(rows, row_map), setting, exact=False, relative_error=error)

    def _mapped(self, rows: PenaltyRows) -> tuple[RowMap, Setting, float]:
        kernel = self._right_kernel(rows)
        features = self.features.fit(kernel, rows.sample.first(_SAMPLE_ROWS)[0])
        right, _ = rows.sample.first(CHECKED_ROWS)
        gram = kernel.gram(right, right)
        near, exact = Factor(features(right)).centred(), DenseMatrix(gram).centred()
        error = gradient_error(near.block(None), exact.block(None), smooth_predictions(gram))
        factor = _FeatureRows(features, rows.n)
        return CentredFactor(factor, rows.summed(FactorMean(factor))), Setting(kernel), error

    def _right_kernel(self, rows: PenaltyRows) -> Kernel:
        return self.right_kernel.resolve(rows.sample.first(_SAMPLE_ROWS)[0])


@dataclass(frozen=True)
class _FeatureRows:
    """φ_i / n: rows of a factor of K_R / n²."""

    features: Features
    n: int

    def __call__(self, right: Tensor, _given: Tensor) -> Factor:
        return Factor(self.features(right) / self.n)


@dataclass(frozen=True)
class MMD(Penalty):
    """Q = Σ_cells p(cell) · mean over pairs of groups g, h of v vᵀ, v = 1_g / n_g − 1_h / n_h within the cell.

    Groups are the distinct rows of the right-hand side, cells the distinct rows of the conditioning variables (one cell
    without them), n_g the size of group g in the cell. Two groups in one cell give ‖μ_g − μ_h‖², the squared
    discrepancy. A cell with a single group has nothing to compare and counts zero. The operator is exact at any number
    of rows. ``kernel``: of the predictions.

    >>> import torch
    >>> from ciplearn import MMD, Gaussian
    >>> group, noise = torch.arange(200) % 2, torch.linspace(-2, 2, 200)
    >>> penalty = MMD(kernel=Gaussian(1.0))
    >>> bool(penalty(noise + group, group) > penalty(noise, group))
    True
    """

    kernel: Kernel = DEFAULT_KERNEL

    def _takes_codes(self) -> tuple[bool, bool]:
        return True, True

    def _check_given(self, present: bool) -> None:
        """With conditioning variables or without: both are fine."""

    def _build(self, rows: PenaltyRows) -> Operator:
        right, given = rows.whole()
        group, n_groups = _levels(right, "right")
        cell, n_cells = _levels(given, "given") if rows.has_given else (torch.zeros_like(group), 1)
        sizes = torch.zeros(n_cells, n_groups, dtype=torch.float64, device=right.device)
        sizes.index_put_((cell, group), torch.ones_like(group, dtype=torch.float64), accumulate=True)
        present = (sizes > 0).double()
        counts = present.sum(dim=1)  # groups in each cell
        # Over m groups with u_g = 1_g / n_g, Σ_{g<h} (u_g − u_h)(u_g − u_h)ᵀ = m Σ_g (u_g − ū)(u_g − ū)ᵀ, and there are
        # m(m − 1)/2 pairs.
        weight = (sizes.sum(dim=1) / rows.n * 2 / (counts - 1).clamp_min(1)).sqrt() * (counts > 1)
        centred = one_hot(group, n_groups) - present[cell] / counts[cell, None]
        within = centred * (weight[cell] / sizes[cell, group])[:, None]  # (n, groups)
        apart = within[:, None, :] * one_hot(cell, n_cells)[:, :, None]  # rows of different cells never meet
        met = present.flatten() > 0
        return Operator(self.kernel, Factor(apart.flatten(1)[:, met]), Setting(), exact=True)


def _levels(values: Tensor, name: str) -> tuple[Tensor, int]:  # (n, d) -> (n,)
    levels, codes = torch.unique(values, dim=0, return_inverse=True)
    n, n_levels = values.shape[0], levels.shape[0]
    if n_levels > max(2, n // 2):
        why = f"{name} must be discrete for MMD, got {n_levels} distinct values in {n} rows"
        raise InputError(f"{why}; use HSIC or ResidualHSCIC.")
    return codes, n_levels
