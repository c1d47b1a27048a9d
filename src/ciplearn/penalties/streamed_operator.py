"""The operator Q over more rows than memory holds: a batch brings its own rows, and they say what Q is between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ciplearn._core.tensors import as_rows
from ciplearn._core.workers import ALONE, Workers
from ciplearn.kernels import Kernel
from ciplearn.penalties.inner_product import inner_product
from ciplearn.penalties.low_rank import RowMap
from ciplearn.penalties.operator import Setting, batch_weights, refuse_open, value_range
from ciplearn.penalties.rows import checked


@dataclass(frozen=True, eq=False)
class StreamedOperator:
    """penalty(ŷ) = ⟨K_Ŷ, Q⟩ with Q_ij = v(r_i, s_i) · v(r_j, s_j), v prepared on sums over n rows.

    Attributes
    ----------
    kernel : Kernel
        Of the predictions; its length scale must be a number by the time it is called.
    row_map : RowMap
        v: takes rows (right, given) to their short vectors.
    n_rows : int
        n.
    setting : Setting
        The kernels and the ridge behind Q.
    relative_error : float
        See `Operator`.

    Examples
    --------
    >>> import torch
    >>> from ciplearn import Gaussian, ResidualHSCIC
    >>> from ciplearn.learning import TrainingRows
    >>> from ciplearn.learning.streamed_rows import RowLayout, StoredPart, store
    >>> import tempfile
    >>> from pathlib import Path
    >>> draw = torch.Generator().manual_seed(0)
    >>> s, a = torch.randn(2, 200, 1, generator=draw)
    >>> rows = TrainingRows((s,), target=a, right=a, given=s)
    >>> layout = RowLayout.of(rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "0.rows"
    ...     _ = store(path, iter([rows]), layout)
    ...     operator = ResidualHSCIC(kernel=Gaussian(1.0)).prepare_parts([StoredPart(str(path), 200, 0, layout)])
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

        Parameters
        ----------
        y_hat : Tensor, shape (b,) or (b, d)
        right, given : Tensor, shape (b, d)
            The rows that the predictions belong to.
        workers : Workers
            Who else has rows of this batch.
        """
        y_hat = as_rows(y_hat, "y_hat", integers=self.kernel.takes_codes, finite=False)
        refuse_open(self.kernel)
        with torch.no_grad():
            pair = checked(right, given, right_codes=True, given_codes=True)
            precision = torch.promote_types(pair[0].dtype, torch.float32)
            storage = self.row_map(*(side.double() for side in pair)).to(None, precision)
        off, on = batch_weights(self.n_rows, workers.counted(len(y_hat)))
        return inner_product(self.kernel, y_hat, storage, None, off, on, value_range(y_hat, workers), workers)

    def __repr__(self) -> str:
        ridge = "" if self.setting.ridge is None else f", ridge {self.setting.ridge:.1e}"
        return (
            f"StreamedOperator({self.n_rows} rows, relative error {self.relative_error:.2g}{ridge}, "
            f"kernel={self.kernel})"
        )
