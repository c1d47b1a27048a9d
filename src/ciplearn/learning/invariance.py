"""What training is penalised for beside the loss: dependence in the data, or differences between imagined rows.

A step asks the network about the rows of a batch and, where an invariance needs them, about imagined ones beside them,
all in one call. The invariance then says what the predictions cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.dataset_rows import Rows
from ciplearn.learning.imagined_rows import ImaginedRows
from ciplearn.penalties import Operator, Penalty, StreamedOperator

# Imagined rows per row and step: enough to know a variance, few enough that a step costs five plain ones.
PER_STEP = 4


class Invariance(ABC):
    """A penalty on the predictions of a batch, and of rows imagined beside it."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """How many rows it was prepared on; None where any batch will do."""

    @property
    def can_be_recorded(self) -> bool:
        """Whether its value is computed without looking at numbers on a device."""
        return True

    @property
    def imagined_per_row(self) -> int:
        """How many imagined rows it asks about per row of a batch."""
        return 0

    def begin_epoch(self, generator: torch.Generator) -> None:  # noqa: B027 - most have nothing to draw
        """Draw what changes from epoch to epoch."""

    def imagined_inputs(  # (b,) -> (b · m, ...) each
        self, index: Tensor, batch: Rows | None = None
    ) -> tuple[Tensor, ...] | None:
        """Return further rows to ask the network about, in the order of the batch's rows; None for none."""
        return None

    def joined(self, blocks: Sequence[Tensor]) -> Tensor:  # (b · m, d) each -> (Σ b · m, d)
        """Return the answers about the imagined rows of several batches as those of one batch with all their rows."""
        return torch.cat(list(blocks))

    @abstractmethod
    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return what the predictions cost, differentiable in them.

        ``predictions``: of the batch; further dimensions in front are several models. ``imagined``: of the imagined
        rows; empty where there are none. ``index``: (b,). ``batch``: for criteria that are prepared on each batch, or
        whose rows come with it. ``workers``: who else has rows of this batch; what is returned is the cost of all of
        them.
        """

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells it apart from others, in a checkpoint."""


@dataclass(frozen=True)
class Dependence(Invariance):
    """⟨K_Ŷ, Q⟩ with Q prepared once on all rows."""

    operator: Operator

    @property
    def n_rows(self) -> int:
        """The operator's."""
        return self.operator.n_rows

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Evaluate the operator on the batch."""
        if predictions.dim() == 3:
            return self.operator.stacked(predictions, index)
        if index.is_cuda and workers.size == 1:
            return self.operator.stacked(predictions[None], index)[0]
        return self.operator(predictions, rows=index, workers=workers)

    @property
    def identity(self) -> str:
        """The kernels and the ridge behind the operator."""
        return f"{self.operator.kernel} {self.operator.setting}"


@dataclass(frozen=True)
class StreamedDependence(Invariance):
    """⟨K_Ŷ, Q⟩ with Q prepared once on rows that are never all in memory; a batch brings its own."""

    operator: StreamedOperator

    can_be_recorded = False

    @property
    def n_rows(self) -> int:
        """The operator's."""
        return self.operator.n_rows

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Ask the batch's rows what Q is between them."""
        if batch is None:
            raise InputError("An operator of rows that stream needs the batch's rows; pass them.")
        return self.operator(predictions, batch.right, batch.given, workers)

    @property
    def identity(self) -> str:
        """The kernels and the ridge behind the operator."""
        return f"{self.operator.kernel} {self.operator.setting}"


@dataclass(frozen=True)
class BatchDependence(Invariance):
    """A criterion prepared on each batch anew, as the paper does."""

    criterion: Penalty

    n_rows = None
    can_be_recorded = False

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Prepare on the batch and evaluate."""
        if batch is None:
            raise InputError("A criterion that is prepared on each batch needs its rows; pass them.")
        right, given = (None if side is None else workers.gathered(side) for side in (batch.right, batch.given))
        return self.criterion(workers.gathered(predictions), right, given)

    @property
    def identity(self) -> str:
        """The criterion as it prints."""
        return repr(self.criterion)


class CounterfactualVariance(Invariance):
    """Mean over rows of Var over interventions of f(row had A been a′), summed over outputs.

    Where worlds are listed with their probabilities w the variance is Σ w (f − Σ w f)²; where each row has its own
    draws it is the unbiased one, over a few of them that change from epoch to epoch.
    """

    def __init__(self, rows: ImaginedRows) -> None:
        self.rows = rows
        listed = rows.weights is not None
        self._worlds = torch.arange(rows.n_worlds if listed else min(PER_STEP, rows.n_worlds), device=rows.device)

    @property
    def n_rows(self) -> int:
        """Those that were imagined."""
        return self.rows.n_rows

    @property
    def imagined_per_row(self) -> int:
        """The worlds of an epoch."""
        return len(self._worlds)

    def begin_epoch(self, generator: torch.Generator) -> None:
        """Draw the worlds that count in this epoch; all, where they are listed."""
        if self.rows.weights is None:
            drawn = torch.randperm(self.rows.n_worlds, generator=generator)[: len(self._worlds)]
            # In place: a step that was recorded on a device reads this tensor.
            self._worlds.copy_(drawn)

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...]:
        """Return the rows of the batch in each of these worlds, row by row."""
        return tuple(part.flatten(0, 1) for part in self.rows.read(index, self._worlds))

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return the mean variance between worlds."""
        answers = imagined.unflatten(-2, (-1, self.imagined_per_row))
        return _mean_over_rows(_variance(answers, self.rows.weights), workers)

    @property
    def identity(self) -> str:
        """That of the imagined rows."""
        return self.rows.identity


@dataclass(frozen=True)
class StreamedVariance(Invariance):
    """The same of rows that are never all in memory: a batch brings its own rows as they would be in other worlds."""

    # first, count: which of the worlds that rows bring are meant
    first: int
    count: int
    weights: Tensor | None = None  # (count,): the probability of each world, see `ImaginedRows`

    n_rows = None
    can_be_recorded = False

    @property
    def imagined_per_row(self) -> int:
        """All of these worlds."""
        return self.count

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...]:
        """Return the rows of the batch in each of these worlds, row by row."""
        if batch is None or batch.imagined is None:
            raise InputError("Rows that stream bring their imagined rows with them, got a batch without; pass it.")
        return (batch.imagined[:, self.first : self.first + self.count].flatten(0, 1),)

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return the mean variance between worlds."""
        return _mean_over_rows(_variance(imagined.unflatten(-2, (-1, self.count)), self.weights), workers)

    @property
    def identity(self) -> str:
        """Which worlds, and how probable they are."""
        return f"worlds {self.first} {self.count} {None if self.weights is None else self.weights.tolist()}"


@dataclass(frozen=True)
class Worst(Invariance):
    """The largest of several penalties, each in its own unit: what holds against the worst of several models."""

    parts: tuple[Invariance, ...]
    units: tuple[float, ...]  # what each is divided by before they are compared

    @property
    def n_rows(self) -> int | None:
        """Those of the parts."""
        return self.parts[0].n_rows

    @property
    def can_be_recorded(self) -> bool:
        """Whether all parts can."""
        return all(part.can_be_recorded for part in self.parts)

    @property
    def imagined_per_row(self) -> int:
        """Those of all parts."""
        return sum(part.imagined_per_row for part in self.parts)

    def begin_epoch(self, generator: torch.Generator) -> None:
        """Let each part draw."""
        for part in self.parts:
            part.begin_epoch(generator)

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...] | None:
        """Return the imagined rows of all parts, one part after the other."""
        asked = [more for part in self.parts if (more := part.imagined_inputs(index, batch)) is not None]
        return tuple(torch.cat(parts) for parts in zip(*asked, strict=True)) if asked else None

    def joined(self, blocks: Sequence[Tensor]) -> Tensor:
        """Join the answers of each part."""
        per_row = [part.imagined_per_row for part in self.parts]
        cut = [block.split([len(block) // sum(per_row) * count for count in per_row]) for block in blocks]
        return torch.cat([part.joined(own) for part, own in zip(self.parts, zip(*cut, strict=True), strict=True)])

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return the largest penalty."""
        found, start = [], 0
        for part, unit in zip(self.parts, self.units, strict=True):
            count = len(index) * part.imagined_per_row
            own = imagined[..., start : start + count, :]
            found.append(part.penalty(predictions, own, index, batch, workers) / unit)
            start += count
        return torch.stack(found).amax(dim=0)

    @property
    def identity(self) -> str:
        """All parts together."""
        return " ".join(f"{part.identity} in {unit}" for part, unit in zip(self.parts, self.units, strict=True))


def _variance(answers: Tensor, weights: Tensor | None) -> Tensor:  # (..., b, m, d), (m,) -> (..., b)
    """Var between the m worlds of a row, summed over outputs; unbiased where worlds are drawn and have no weights."""
    if weights is None:
        return answers.var(dim=-2).sum(dim=-1)
    shares = weights.to(answers)[:, None]
    # Around the mean, not as a difference of squares: predictions in nearly equal worlds would cancel.
    mean = (shares * answers).sum(dim=-2, keepdim=True)
    return (shares * (answers - mean).square()).sum(dim=(-1, -2))


def _mean_over_rows(values: Tensor, workers: Workers) -> Tensor:  # (..., b) -> (...)
    if workers.size == 1:
        return values.mean(dim=-1)
    return workers.total(values.sum(dim=-1)) / workers.counted(values.shape[-1])


def as_invariance(penalty: Any) -> Invariance | None:
    """Read what people pass to `train`: an operator, a criterion, an invariance, or None."""
    if penalty is None or isinstance(penalty, Invariance):
        return penalty
    if isinstance(penalty, StreamedOperator):
        return StreamedDependence(penalty)
    return Dependence(penalty) if isinstance(penalty, Operator) else BatchDependence(penalty)
