"""HSIC: the Hilbert-Schmidt independence criterion [gretton2005]."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ciplearn._core.errors import InputError
from ciplearn.kernels import FeatureMap, Kernel
from ciplearn.penalties.base import (
    DEFAULT_FEATURES,
    DEFAULT_KERNEL,
    EXACT_ROWS,
    Penalty,
    check_approximation,
    check_kernels,
    is_exact,
)
from ciplearn.penalties.forms import Dense, LowRank
from ciplearn.penalties.operator import Operator, Setting
from ciplearn.penalties.rows import Rows

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

    def _build(self, rows: Rows) -> Operator:
        sample, _ = rows.sample(_SAMPLE_ROWS, seed=0)
        kernel = self.right_kernel.resolve(sample)
        if is_exact(self.exact_rows, rows.n):
            right, _ = rows.whole()
            form = Dense(kernel.gram(right, right) / rows.n**2).centred()
            return Operator(self.kernel, form, Setting(kernel), exact=True)
        features = self.features.fit(kernel, sample)
        total = sample.new_zeros(features.size)
        for right, _ in rows.chunks():
            total += features(right).sum(dim=0)
        mean = total / rows.n
        parts = [((features(right) - mean) / rows.n).to(rows.dtype) for right, _ in rows.chunks()]
        return Operator(self.kernel, LowRank(torch.cat(parts)), Setting(kernel), exact=False)
