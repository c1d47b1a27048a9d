"""HSIC: the Hilbert-Schmidt independence criterion [gretton2005]."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn.kernels import FeatureMap, Features, Kernel
from ciplearn.penalties.base import DEFAULT_FEATURES, DEFAULT_KERNEL, EXACT_ROWS, Penalty, is_exact
from ciplearn.penalties.low_rank import (
    CHECKED_ROWS,
    CentredFactor,
    FactorMean,
    RowMap,
    gradient_error,
    smooth_predictions,
    stored,
)
from ciplearn.penalties.operator import Operator, Setting
from ciplearn.penalties.rows import PenaltyRows
from ciplearn.penalties.storage import DenseMatrix, Factor

# Rows that features are fitted on.
_SAMPLE_ROWS = 2048


@dataclass(frozen=True)
class HSIC(Penalty):
    """Q = (1/n²) C K_R C with C = I − 11ᵀ/n: independence with no conditioning variables. Always centred.

    Parameters
    ----------
    kernel, right_kernel : Kernel
        Of the predictions and of the right-hand side R.
    exact_rows : int or None
        Up to this many rows Q comes from full Gram matrices, beyond it from ``features``; 0 means always from features,
        None never.
    features : FeatureMap
        What replaces the Gram matrix beyond ``exact_rows``.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import HSIC, Gaussian
    >>> draw = torch.Generator().manual_seed(0)
    >>> a, e = torch.randn(2, 200, 1, generator=draw)
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
        if is_exact(self.exact_rows, rows.n):
            kernel, (right, _) = self._right_kernel(rows), rows.whole()
            storage = DenseMatrix(kernel.gram(right, right) / rows.n**2).centred()
            return Operator(self.kernel, storage, Setting(kernel), exact=True)
        row_map, setting, error = self._mapped(rows)
        return Operator(self.kernel, stored(rows, row_map), setting, exact=False, relative_error=error)

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
