"""The prepared operator Q of a criterion, all that a training step needs; of rows in memory, or of rows that stream."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.tensors import as_rows, extremes, same_device
from ciplearn._core.workers import ALONE, Workers
from ciplearn.kernels import Kernel
from ciplearn.penalties.inner_product import inner_product, stacked_inner_products
from ciplearn.penalties.rows import checked
from ciplearn.penalties.storage import RowMap, Storage

# To choose a Fourier series the host must know the predictions, and so wait for a CUDA device; up to this many rows the
# device passes over a block faster than that.
LARGEST_BATCH_WITHOUT_WAITING = 2048


@dataclass(frozen=True)
class Setting:
    """Everything a criterion left open, as it was settled on the data.

    Examples
    --------
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
                raise InputError(
                    f"The operator was prepared on {self.n_rows} rows, got {b} predictions; "
                    f"pass rows= with the index of each prediction's row."
                )
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
            raise InputError(
                f"rows must have shape ({b},), one index per prediction, got {tuple(index.shape)}; "
                f"pass the index of each prediction's row."
            )
        # On a device an order would wait for all work before it.
        ordered = torch.stack(torch.aminmax(index)).tolist() if index.is_cuda else np.sort(index.numpy())
        if b and (ordered[0] < 0 or ordered[-1] >= self.n_rows):
            raise InputError(
                f"rows must lie between 0 and {self.n_rows - 1}, got {ordered[0]} to {ordered[-1]}; "
                f"number rows as they were when the operator was prepared."
            )
        if not index.is_cuda and (repeated := np.count_nonzero(ordered[1:] == ordered[:-1])):
            raise InputError(
                f"rows must name each row at most once, got {b - repeated} different ones among {b}; draw batches "
                f"without replacement."
            )
        return index.to(self.storage.parts()[0].device)


@dataclass(frozen=True, eq=False)
class StreamedOperator:
    """penalty(ŷ) = ⟨K_Ŷ, Q⟩ with Q_ij = v(r_i, s_i) · v(r_j, s_j), v prepared on sums over n rows.

    ``row_map`` is v, which takes rows (right, given) to their short vectors; ``n_rows`` is n, more than memory holds,
    so that a batch brings its own rows. The others are those of `Operator`.

    Examples
    --------
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
