"""What a penalty is: a criterion of independence that prepares an operator Q once, all that a training step needs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.arguments import whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tensors import as_rows, extremes, same_device, same_rows
from ciplearn._core.workers import ALONE, Engine, Workers
from ciplearn.kernels import FeatureMap, Gaussian, Kernel, Nystroem
from ciplearn.penalties.inner_product import inner_product, stacked_inner_products
from ciplearn.penalties.rows import PenaltyRows, RowPart, checked, with_codes
from ciplearn.penalties.storage import DenseMatrix, RowMap, Storage

# Up to so many rows the operator is exact: cubic in rows, a few seconds on one thread.
EXACT_ROWS = 2048
DEFAULT_FEATURES = Nystroem(n_features=128)

# On variables its length scale is read off the data; on predictions it is left to be settled.
DEFAULT_KERNEL = Gaussian("median")

# To choose a Fourier series the host must know the predictions, and so wait for a CUDA device; up to this many rows the
# device passes over a block faster than that.
LARGEST_BATCH_WITHOUT_WAITING = 2048


class Penalty(ABC):
    """A criterion of (conditional) independence between a prediction and other variables.

    Call it on a stand-alone batch, or `prepare` an operator on all rows once and call that with ``rows=`` in each step.
    A length scale of ``kernel``, that of the predictions, that is left open, ``"median"``, is never read off
    predictions, with which it would shrink: an estimator settles it, `for_outcome` does, or the number is named.

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


@dataclass(frozen=True)
class Setting:
    """Everything a criterion left open, as it was settled on the data.

    >>> import torch
    >>> from ciplearn import ResidualHSCIC
    >>> s, a = torch.randn(2, 50, 1)
    >>> ResidualHSCIC(ridge=0.1).prepare(a, s).setting.ridge
    0.1
    """

    right_kernel: Kernel | None = None
    given_kernel: Kernel | None = None
    ridge: float | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """penalty(ŷ) = ⟨K_Ŷ, Q⟩ = Σ_ij Q_ij k(ŷ_i, ŷ_j), with Q prepared on n rows.

    Attributes
    ----------
    kernel : Kernel
        Of the predictions; its length scale must be a number by the time it is called.
    storage : DenseMatrix, Factor or ElementwiseProduct
        Q as a matrix, or as short vectors per row.
    setting : Setting
    exact : bool
        Whether Q came from full Gram matrices; if not, from features.
    relative_error : float
        How far gradients of the penalty lie from those of the exact operator: √(1 − c²) for their cosine c, which is
        ‖g̃ − g‖ / ‖g‖ up to a common scale. Measured on 1 024 rows for smooth predictions, at the ridge of all rows:
        where these are very many and have ten columns and more, it overstates.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import HSIC, Gaussian
    >>> operator = HSIC(kernel=Gaussian(1.0)).prepare(torch.randn(50, 1))
    >>> operator.n_rows, operator.exact, operator.matrix().shape
    (50, True, torch.Size([50, 50]))
    """

    kernel: Kernel
    storage: Storage
    setting: Setting
    exact: bool
    relative_error: float = 0.0

    def __call__(self, y_hat: Any, rows: Any = None, workers: Workers = ALONE) -> Tensor:
        """Return the penalty of predictions, differentiable in them.

        That is ⟨K_Ŷ, Q⟩, or for a batch drawn at random the estimate of it that is unbiased,
        n(n−1)/(b(b−1)) Σ_{i≠j} Q_ij k_ij + n/b Σ_i Q_ii k_ii.

        Parameters
        ----------
        y_hat : Tensor, shape (b,) or (b, d)
            Predictions, or class probabilities. One that is not finite is refused; on a CUDA device, where a search
            would wait for all work before it, a small batch with NaN has the penalty NaN.
        rows : sequence of int, shape (b,), optional
            Which of the n prepared rows the predictions belong to, each at most once; all, in order, by default.
        workers : Workers
            Who else has rows of this batch, and the same operator.
        """
        y_hat = as_rows(y_hat, "y_hat", integers=self.kernel.takes_codes, finite=False)
        same_device(y_hat.device, "y_hat", self.storage.parts()[0].device, "the operator")
        return _estimate(self, y_hat, self.storage, self._checked_rows(rows, len(y_hat)), workers)

    def stacked(self, y_hat: Tensor, rows: Tensor) -> Tensor:  # (k, b, d), (b,) -> (k,)
        """Return the penalty of k models' predictions for the same batch, one value per model.

        For training loops that have checked their rows: nothing is checked here, so nothing waits for the device.
        """
        block = self.storage.block(rows).to(y_hat.dtype)
        return stacked_inner_products(self.kernel, y_hat, block, *_batch_weights(self, y_hat.shape[1]))

    @property
    def n_rows(self) -> int:
        """n, the number of rows that Q was prepared on."""
        return self.storage.rows

    @property
    def floor(self) -> float:
        """1ᵀQ1, the penalty of any constant prediction under a kernel with k(y, y) = 1; zero if Q is centred."""
        return float(self.storage.row_sums().sum())

    def matrix(self) -> Tensor:  # (n, n)
        """Q in full; n² numbers."""
        return self.storage.block(None)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        """Return the same operator on another device or in another precision."""
        return replace(self, storage=self.storage.to(None if device is None else torch.device(device), dtype))

    def __repr__(self) -> str:
        low_rank = f"low-rank, {self.storage.width} numbers per row, relative error {self.relative_error:.2g}"
        how = "exact" if self.exact else low_rank
        return f"Operator({self.n_rows} rows, {how}{_ridge(self.setting)}, kernel={self.kernel})"

    def _checked_rows(self, rows: Any, b: int) -> Tensor | None:
        if rows is None:
            if b != self.n_rows:
                why = f"The operator was prepared on {self.n_rows} rows, got {b} predictions"
                raise InputError(f"{why}; pass rows= with the index of each prediction's row.")
            return None
        try:
            index = torch.as_tensor(rows)
            is_whole = not (index.dtype == torch.bool or index.is_floating_point() or index.is_complex())
            kind = None if is_whole else str(index.dtype)
        except (TypeError, ValueError, RuntimeError):
            kind = type(rows).__name__
        if kind is not None:
            raise InputTypeError(f"rows must hold whole numbers, got {kind}; pass the index of each row.")
        index = index.to(torch.int64)
        if index.shape != (b,):
            why = f"rows must have shape ({b},), one index per prediction, got {tuple(index.shape)}"
            raise InputError(f"{why}; pass the index of each prediction's row.")
        # On a device an order would wait for all work before it.
        ordered = torch.stack(torch.aminmax(index)).tolist() if index.is_cuda else np.sort(index.numpy())
        if b and (ordered[0] < 0 or ordered[-1] >= self.n_rows):
            why = f"rows must lie between 0 and {self.n_rows - 1}, got {ordered[0]} to {ordered[-1]}"
            raise InputError(f"{why}; number rows as they were when the operator was prepared.")
        if not index.is_cuda and (repeated := np.count_nonzero(ordered[1:] == ordered[:-1])):
            why = f"rows must name each row at most once, got {b - repeated} different ones among {b}"
            raise InputError(f"{why}; draw batches without replacement.")
        return index.to(self.storage.parts()[0].device)


@dataclass(frozen=True, eq=False)
class StreamedOperator:
    """penalty(ŷ) = ⟨K_Ŷ, Q⟩ with Q_ij = v(r_i, s_i) · v(r_j, s_j), v prepared on sums over n rows.

    ``row_map`` is v, which takes rows (right, given) to their short vectors; ``n_rows`` is n, more than memory holds,
    so that a batch brings its own rows. The others are those of `Operator`.

    >>> from types import SimpleNamespace
    >>> import torch
    >>> from ciplearn import Gaussian, ResidualHSCIC
    >>> s, a = torch.linspace(0, 60, 200)[:, None].sin(), torch.linspace(0, 250, 200)[:, None].cos()
    >>> part = SimpleNamespace(start=0, pairs=lambda: iter([(a, s)]))  # a file of rows, read block by block
    >>> operator = ResidualHSCIC(kernel=Gaussian(1.0)).prepare_parts([part])
    >>> operator.n_rows, bool(operator(a, a, s) > operator(s, a, s))
    (200, True)
    """

    kernel: Kernel
    row_map: RowMap
    n_rows: int
    setting: Setting
    relative_error: float

    def __call__(self, y_hat: Any, right: Any, given: Any = None, workers: Workers = ALONE) -> Tensor:
        """Return the unbiased estimate of the penalty of all rows from a batch of them, differentiable in ``y_hat``.

        ``right``, ``given``: the rows that the predictions belong to. For the others see `Operator`.
        """
        y_hat = as_rows(y_hat, "y_hat", integers=self.kernel.takes_codes, finite=False)
        with torch.no_grad():
            pair = checked(right, given, (True, True))
            precision = torch.promote_types(pair[0].dtype, torch.float32)
            storage = self.row_map(*(side.double() for side in pair)).to(None, precision)
        return _estimate(self, y_hat, storage, None, workers)

    def __repr__(self) -> str:
        error = f"relative error {self.relative_error:.2g}"
        return f"StreamedOperator({self.n_rows} rows, {error}{_ridge(self.setting)}, kernel={self.kernel})"


def _estimate(
    operator: Operator | StreamedOperator, y_hat: Tensor, storage: Storage, rows: Tensor | None, workers: Workers
) -> Tensor:
    """The penalty of a batch whose rows of Q are those of a storage."""
    off, on = _batch_weights(operator, workers.counted(len(y_hat)))
    if y_hat.dtype in (torch.float16, torch.bfloat16):
        y_hat = y_hat.float()
    span = None
    if workers.size > 1 or not y_hat.is_cuda or len(y_hat) > LARGEST_BATCH_WITHOUT_WAITING:
        # The check that all are finite gives the smallest and the largest prediction.
        span = workers.span(*(extremes(y_hat, "y_hat") if len(y_hat) else (math.inf, -math.inf)))
    return inner_product(operator.kernel, y_hat, storage, rows, off, on, span, workers)


def _ridge(setting: Setting) -> str:
    return "" if setting.ridge is None else f", ridge {setting.ridge:.1e}"


def _batch_weights(operator: Operator | StreamedOperator, b: int) -> tuple[float, float]:
    """Weights of pairs and of the diagonal that make the value of b rows an unbiased estimate of that of all."""
    if b < 2:
        raise InputError(f"A batch needs at least 2 rows, got {b}; use a larger batch.")
    if operator.kernel.is_open:
        raise InputError(
            f"The kernel on predictions has no length scale, got {operator.kernel}; name one, for example "
            "Gaussian(1.0), or use penalty.for_outcome(y), because read off the predictions it would shrink with them."
        )
    n = operator.n_rows
    return n * (n - 1) / (b * (b - 1)), n / b
