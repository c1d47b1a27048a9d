"""The paper's penalty solved anew on every batch, for many networks at once on a GPU.

`prepare_once=False` does this for one network. Networks that are trained as one stack share their batches, so each
batch's operator is needed once for all of them; it is built here from matrix products alone, which a recorded training
step can replay without waiting for the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ciplearn._core.workers import ALONE, Workers
from ciplearn.penalties import HSCIC, Operator
from ciplearn.penalties.inner_product import stacked_inner_products

# Newton steps go on until the inverse is exact to this share.
_PRECISION = 1e-12


@dataclass(frozen=True)
class InBatchHSCIC(HSCIC):
    """HSCIC whose operator for some rows is that of the rows alone, not a part of all rows' operator."""

    def prepare(self, right: Any, given: Any = None) -> Any:
        """Keep the rows; batches are solved when they come."""
        return _BatchOperator(self, right, given)


class _BatchOperator:
    """What a stacked training and the judge of its networks ask of an operator."""

    def __init__(self, penalty: InBatchHSCIC, right: Tensor, given: Tensor) -> None:
        self.penalty, self.right, self.given = penalty, right, given
        self.kernel, self.n_rows = penalty.kernel, len(right)
        self._whole: Operator | None = None

    def __call__(self, y_hat: Tensor, rows: Tensor | None = None, workers: Workers = ALONE) -> Tensor:
        if rows is not None and len(rows) < self.n_rows:
            return self.stacked(y_hat[None], rows)[0]
        if self._whole is None:
            self._whole = HSCIC.prepare(self.penalty, self.right, self.given)
        return self._whole(y_hat, workers=workers)

    def stacked(self, y_hat: Tensor, rows: Tensor) -> Tensor:  # (k, b, d), (b,) -> (k,)
        """Return the penalty of k networks on a stand-alone batch."""
        with torch.no_grad():
            block = hscic_matrix(self.penalty, self.right[rows].double(), self.given[rows].double())
        return stacked_inner_products(self.penalty.kernel, y_hat, block.to(y_hat.dtype), 1.0, 1.0)


def hscic_matrix(penalty: HSCIC, right: Tensor, given: Tensor) -> Tensor:  # (b, d), (b, d') -> (b, b)
    """Q of `HSCIC` on these rows, for kernels with numbers as length scales and a number as ridge."""
    b = right.shape[0]
    right_gram, given_gram = penalty.right_kernel.gram(right, right), penalty.given_kernel.gram(given, given)
    loading = b * float(penalty.ridge)
    weights = torch.eye(b, dtype=right.dtype, device=right.device) - loading * _inverse(given_gram, loading)
    joint = weights * (right_gram @ weights)
    joint = joint - weights * (joint.sum(dim=0) / 2)
    cross = joint @ weights.T
    return (right_gram * (weights @ weights.T) - cross - cross.T) / b


def _inverse(gram: Tensor, loading: float) -> Tensor:
    """(K + cI)⁻¹ by Newton's iteration X ← X (2I − M X).

    The eigenvalues of K lie between 0 and its size b, since its diagonal is one. From X = 2/(2c + b) I the error is at
    most ρ = b/(2c + b), and each step squares it.
    """
    b = gram.shape[0]
    eye = torch.eye(b, dtype=gram.dtype, device=gram.device)
    matrix = gram + loading * eye
    steps = math.ceil(math.log2(math.log(_PRECISION) / math.log(b / (2 * loading + b))))
    inverse = eye * (2 / (2 * loading + b))
    for _ in range(steps):
        inverse = inverse @ (2 * eye - matrix @ inverse)
    return inverse
