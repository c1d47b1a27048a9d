"""HSIC: the Hilbert-Schmidt independence criterion [gretton2005]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn.kernels import FeatureMap, Features, Kernel
from ciplearn.penalties.approximation_error import CHECKED_ROWS, gradient_error, smooth_predictions
from ciplearn.penalties.base import (
    DEFAULT_FEATURES,
    DEFAULT_KERNEL,
    EXACT_ROWS,
    Penalty,
    check_approximation,
    check_kernels,
    is_exact,
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
    """

    kernel: Kernel = DEFAULT_KERNEL
    right_kernel: Kernel = DEFAULT_KERNEL
    exact_rows: int | None = EXACT_ROWS
    features: FeatureMap = DEFAULT_FEATURES

    def __post_init__(self) -> None:
        check_kernels(kernel=self.kernel, right_kernel=self.right_kernel)
        check_approximation(self.exact_rows, self.features)

    def _takes_codes(self) -> tuple[bool, bool]:
        return self.right_kernel.takes_codes, True

    def _check_given(self, present: bool) -> None:
        if present:
            raise InputError("HSIC has no conditioning variables, got given; leave it out, or use ResidualHSCIC.")

    def _build(self, rows: PenaltyRows) -> Operator:
        sample, _ = rows.sample.first(_SAMPLE_ROWS)
        kernel = self.right_kernel.resolve(sample)
        if is_exact(self.exact_rows, rows.n):
            right, _ = rows.whole()
            storage = DenseMatrix(kernel.gram(right, right) / rows.n**2).centred()
            return Operator(self.kernel, storage, Setting(kernel), exact=True)
        features = self.features.fit(kernel, sample)
        mean = rows.summed(_FeatureMean(features))
        parts = [((features(right) - mean) / rows.n).to(rows.dtype) for right, _ in rows.chunks()]
        error = _features_error(kernel, features, rows.sample.first(CHECKED_ROWS)[0])
        return Operator(self.kernel, Factor(torch.cat(parts)), Setting(kernel), exact=False, relative_error=error)


class _FeatureMean:
    """Mean of the features over rows."""

    def __init__(self, features: Features) -> None:
        self.features, self.n, self.total = features, 0, torch.zeros(())

    def update(self, right: Tensor, _given: Tensor) -> None:
        """Add a block of rows."""
        self.n += right.shape[0]
        self.total = self.total.to(right) + self.features(right).sum(dim=0)

    def merge(self, other: _FeatureMean) -> None:
        """Add the sum over other rows."""
        self.n += other.n
        self.total = self.total.to(other.total) + other.total

    def finalise(self) -> Tensor:  # (size,)
        """Divide by the number of rows."""
        return self.total / self.n


def _features_error(kernel: Kernel, features: Features, right: Tensor) -> float:  # (m, d)
    gram = kernel.gram(right, right)
    found, exact = Factor(features(right)).centred(), DenseMatrix(gram).centred()
    return gradient_error(found.block(None), exact.block(None), smooth_predictions(gram))
