"""What a penalty is: a criterion of independence that prepares an operator once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from ciplearn._core.arguments import whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tensors import as_rows, same_device, same_rows
from ciplearn._core.workers import Engine
from ciplearn.kernels import FeatureMap, Gaussian, Kernel, Nystroem
from ciplearn.penalties.operator import Operator, Setting, StreamedOperator
from ciplearn.penalties.rows import PenaltyRows, RowPart, with_codes
from ciplearn.penalties.storage import DenseMatrix, RowMap

# Up to so many rows the operator is exact: cubic in rows, a few seconds on one thread. Beyond that, the most columns of
# a factor; half of them do where few columns are involved.
EXACT_ROWS, DEFAULT_RANK = 2048, 256
DEFAULT_FEATURES = Nystroem(n_features=128)

# On variables its length scale is read off the data; on predictions it is left to be settled.
DEFAULT_KERNEL = Gaussian("median")


class Penalty(ABC):
    """A criterion of (conditional) independence between a prediction and other variables.

    Call it on a stand-alone batch, or `prepare` an operator on all rows once and call that with ``rows=`` in each step.
    A length scale of ``kernel``, that of the predictions, that is left open, ``"median"``, is never read off
    predictions, with which it would shrink: an estimator settles it, `for_outcome` does, or the number is named.

    Examples
    --------
    >>> from ciplearn import ResidualHSCIC
    >>> ResidualHSCIC().for_outcome([1.0, 3.0]).kernel.lengthscale == 2**0.5
    True
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        # What every dataclass of a criterion may have among its settings.
        settings = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        for name, kernel in settings.items():
            if name.endswith("kernel") and not isinstance(kernel, Kernel):
                raise InputTypeError(f"{name} must be a kernel, got {kernel!r}; pass for example Gaussian(0.1).")
        if settings.get("exact_rows") is not None:
            whole(settings["exact_rows"], "exact_rows", minimum=0)
        if not isinstance(features := settings.get("features", DEFAULT_FEATURES), FeatureMap):
            raise InputTypeError(f"features must be a feature map, got {features!r}; pass for example Nystroem(128).")

    def __call__(self, y_hat: Any, right: Any, given: Any = None) -> Tensor:
        """Return the penalty of a stand-alone batch: prepare on it, then evaluate. Differentiable in ``y_hat``.

        Of shape (n,) or (n, d): predictions; what they shall not depend on, labels too where codes of categories are
        taken (in MMD, and under a Categorical kernel); the conditioning variables, for criteria that have them.
        """
        y_hat = as_rows(y_hat, "y_hat", integers=self.kernel.takes_codes)
        right = with_codes(right) if self._takes_codes()[0] else right
        right = as_rows(right, "right", integers=True)
        same_rows(y_hat, "y_hat", right, "right")
        same_device(y_hat.device, "y_hat", right.device, "right")
        # One evaluation does not pay for a factor.
        return self._operator(PenaltyRows.from_arrays(right, given, self._takes_codes()))(y_hat)

    def for_outcome(self, outcome: Any) -> Self:
        """Return this penalty with an open length scale of its kernel on predictions settled by the outcome.

        That is √2 times the standard deviation of an outcome of shape (n,) or (n, d), in the units of the predictions:
        the root mean squared distance between two outcomes.
        """
        values = as_rows(outcome, "outcome", integers=True).double()
        spread = math.sqrt(2 * float(values.var(dim=0, correction=0).mean()))
        # Around an outcome that never changes any unit will do.
        return replace(self, kernel=self.kernel.with_lengthscale(spread or 1.0))  # type: ignore[type-var]

    def prepare(self, right: Any, given: Any = None) -> Operator:
        """Return the operator Q of these rows; everything expensive happens here, once and without gradients."""
        return self._prepared(PenaltyRows.from_arrays(right, given, self._takes_codes()))

    def prepare_chunks(self, chunks: Iterable[Any]) -> Operator:
        """Return the operator Q of rows that come in pieces, the same as `prepare` would on all of them at once.

        The pairs (right, given) are read several times, so not from a generator: from a list, or an object whose
        ``__iter__`` opens the files anew. For criteria without conditioning variables the second entry is None.
        """
        return self._prepared(PenaltyRows.from_chunks(chunks, self._takes_codes()))

    def prepare_parts(self, parts: Sequence[RowPart], engine: Engine | None = None) -> StreamedOperator:
        """Return the operator Q of rows in parts that are never all in memory: a batch brings its own rows.

        The same as `prepare` gives beyond ``exact_rows``, up to rounding, whichever ``engine`` goes through the parts.
        Each has a ``start``, the number of its first row, and ``pairs()``, which opens it anew.
        """
        rows = PenaltyRows(parts, engine)
        self._check_given(rows.has_given)
        with torch.no_grad():
            row_map, setting, error = self._mapped(rows)
        return StreamedOperator(self.kernel, row_map, rows.n, setting, error)

    def _mapped(self, rows: PenaltyRows) -> tuple[RowMap, Setting, float]:
        """Return what takes rows to their part of the operator, what was settled, and the error."""
        raise InputError(f"{type(self).__name__} is prepared on rows in memory; use HSIC or ResidualHSCIC here.")

    def _operator(self, rows: PenaltyRows) -> Operator:
        self._check_given(rows.has_given)
        with torch.no_grad():
            return self._build(rows)

    def _prepared(self, rows: PenaltyRows) -> Operator:
        operator = self._operator(rows)
        if not operator.exact:
            # Vectors of rows were stored in the precision that they keep.
            return operator
        storage = operator.storage
        storage = storage.factorised(rows.dtype) if isinstance(storage, DenseMatrix) else storage
        return replace(operator, storage=storage.to(None, rows.dtype))

    @abstractmethod
    def _takes_codes(self) -> tuple[bool, bool]:
        """Whether right and given may be codes of categories."""

    @abstractmethod
    def _check_given(self, present: bool) -> None:
        """Refuse conditioning variables that are missing, or that the criterion has no place for."""

    @abstractmethod
    def _build(self, rows: PenaltyRows) -> Operator:
        """Build the operator of checked rows."""
