"""What every conditional criterion has: three kernels and a ridge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import non_negative, whole
from ciplearn.kernels import FeatureMap, Kernel
from ciplearn.penalties.base import (
    DEFAULT_FEATURES,
    DEFAULT_KERNEL,
    DEFAULT_RANK,
    EXACT_ROWS,
    Penalty,
    check_approximation,
    check_kernels,
    is_exact,
)
from ciplearn.penalties.conditioning import Conditional, FeatureRegression
from ciplearn.penalties.forms import Dense, Form
from ciplearn.penalties.landmarks import Entries, low_rank
from ciplearn.penalties.operator import Operator
from ciplearn.penalties.rows import Rows


@dataclass(frozen=True)
class ConditionalPenalty(Penalty, ABC):
    """A criterion of Ŷ ⊥ R | S built on ridge regression on S.

    Parameters
    ----------
    kernel, right_kernel, given_kernel : Kernel
        Of the predictions, of the right-hand side R, and of the conditioning variables S.
    ridge : float or "loo"
        λ; ``"loo"`` chooses it by leave-one-out error, and with it the length scale of ``given_kernel`` if that is
        ``"median"``.
    center : bool
        Use C Q C with C = I − 11ᵀ/n instead of Q. Ridge weights do not sum to one, so a constant prediction has the
        penalty 1ᵀQ1 > 0; centring removes that floor and leaves the population value alone.
    exact_rows : int or None
        Up to this many rows Q comes from full Gram matrices, beyond it from ``features``; 0 means always from features,
        None never.
    features : FeatureMap
        What replaces the Gram matrices beyond ``exact_rows``.
    rank : int
        The most numbers that a row carries beyond ``exact_rows``.
    """

    kernel: Kernel = DEFAULT_KERNEL
    right_kernel: Kernel = DEFAULT_KERNEL
    given_kernel: Kernel = DEFAULT_KERNEL
    ridge: float | str = "loo"
    center: bool = False
    exact_rows: int | None = EXACT_ROWS
    features: FeatureMap = DEFAULT_FEATURES
    rank: int = DEFAULT_RANK

    def __post_init__(self) -> None:
        check_kernels(kernel=self.kernel, right_kernel=self.right_kernel, given_kernel=self.given_kernel)
        check_approximation(self.exact_rows, self.features)
        whole(self.rank, "rank", minimum=1)
        if self.ridge != "loo":
            if isinstance(self.ridge, str):
                raise InputError(f"ridge must be a number or 'loo', got {self.ridge!r}; pass one of these.")
            non_negative(self.ridge, "ridge")

    def _takes_codes(self) -> tuple[bool, bool]:
        return self.right_kernel.takes_codes, self.given_kernel.takes_codes

    def _check_given(self, present: bool) -> None:
        if not present:
            raise InputError(
                f"{type(self).__name__} needs conditioning variables, got given=None; pass given, or use HSIC."
            )

    def _build(self, rows: Rows) -> Operator:
        problem = Conditional.settle(rows, self.right_kernel, self.given_kernel, self.ridge, self.features)
        exact = is_exact(self.exact_rows, rows.n)
        form: Form
        if exact:
            form = self._exact_form(problem)
        else:
            regression = problem.regression(ridge_is_free=self.ridge == "loo")
            form, problem = low_rank(rows, self._entries(regression), self.rank), regression.problem
        if self.center:
            form = form.centred()
        return Operator(self.kernel, form, problem.setting, exact)

    @abstractmethod
    def _exact_form(self, problem: Conditional) -> Dense:
        """Q from full Gram matrices."""

    @abstractmethod
    def _entries(self, regression: FeatureRegression) -> Callable[[Tensor, Tensor], Entries]:
        """Return what takes rows (right, given) to the vectors that give entries of Q."""
