"""What training is penalised for beside the loss: dependence in the data, or differences between imagined rows.

A step asks the network about the rows of a batch and, where an invariance needs them, about imagined ones beside them,
all in one call. The invariance then says what the predictions cost.

What a penalty's values are depends on kernels, columns and rows: the outcome's own penalty is 1e-2 in the paper's first
synthetic case and 3e-4 on Adult. Relative to it, and to the loss of a constant prediction, a gamma means the same
everywhere: loss / loss of a constant + gamma · penalty / penalty of the outcome.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ciplearn._core.answers import digest_of
from ciplearn._core.errors import InputError
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.streamed_rows import Rows
from ciplearn.penalties import Operator, Penalty, StreamedOperator

# Enough rows, orders and columns to know the scale of a penalty, few enough to cost nothing.
_ROWS, _SHUFFLES, _COLUMNS = 4096, 8, 16

# Below this, what is found may be noise. In 2000 rows of the processes in benchmarks/processes.py outcomes have 0.4 to
# 1, but 0.04 and 0.05 in two of them.
_LEAST_SHARE = 0.1
_NOTHING = 1e-4  # relative to the penalty of shuffled outcomes, a difference this small is rounding

# Imagined rows per row and step: enough to know a variance, few enough that a step costs five plain ones.
PER_STEP = 4


@dataclass(frozen=True)
class ImaginedRows:
    """For each row, the network's inputs as they would be in m worlds that differ in the protected variables."""

    inputs: tuple[Tensor, ...]  # (n, m, ...) each
    # (m,): the probability of each world, where the worlds are all the values that the protected variables take; None
    # where each row has m values of its own, drawn from their law
    weights: Tensor | None = None
    # per world what the network takes beside these, as `FurtherInputs` of the estimators, read when it is needed
    further: tuple[Any, ...] = ()

    @property
    def device(self) -> torch.device:
        """Where rows arrive."""
        return self.inputs[0].device

    def read(self, index: Tensor, worlds: Tensor) -> tuple[Tensor, ...]:  # (b,), (k,) -> (b, k, ...) each
        """Return the inputs of some rows in some worlds."""
        held = tuple(part[index.to(part.device)[:, None], worlds.to(part.device)] for part in self.inputs)
        if not self.further:
            return held
        read = zip(*(self.further[world].read(index.cpu()) for world in worlds.tolist()), strict=True)
        return (*held, *(torch.stack(parts, dim=1).to(self.device) for parts in read))

    def take(self, index: Tensor) -> ImaginedRows:
        """Return some of the rows; what was not read stays unread."""
        inputs = tuple(part[index.to(part.device)] for part in self.inputs)
        return replace(self, inputs=inputs, further=tuple(part.take(index.cpu().numpy()) for part in self.further))

    def to(self, device: torch.device) -> ImaginedRows:
        """Return rows that arrive on a device."""
        weights = None if self.weights is None else self.weights.to(device)
        return replace(self, inputs=tuple(part.to(device) for part in self.inputs), weights=weights)


class Invariance(ABC):
    """A penalty on the predictions of a batch, and of rows imagined beside it."""

    can_be_recorded = True  # whether its value is computed without looking at numbers on a device
    n_rows: int | None = None  # how many rows it was prepared on; None where any batch will do
    imagined_per_row = 0  # how many imagined rows it asks about per row of a batch

    def begin_epoch(self, generator: torch.Generator) -> None:  # noqa: B027 - most have nothing to draw
        """Draw what changes from epoch to epoch."""

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...] | None:
        """Return further rows to ask the network about, (b · m, ...) each, in the order of the b rows, or None."""
        return None

    def joined(self, blocks: Sequence[Tensor]) -> Tensor:  # (b · m, d) each -> (Σ b · m, d)
        """Return the answers about the imagined rows of several batches as those of one batch with all their rows."""
        return torch.cat(list(blocks))

    @abstractmethod
    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return what the predictions of a batch cost, differentiable in them; further dimensions are several models.

        ``imagined``: those of the imagined rows; empty where there are none. ``batch``: for criteria that are prepared
        on each batch, or whose rows come with it. ``workers``: who else has rows of this batch; the cost is that of all
        of them.
        """

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells it apart from others, in a checkpoint."""


class Dependence(Invariance):
    """⟨K_Ŷ, Q⟩ with Q prepared once on all rows; of rows that are never all in memory a batch brings its own."""

    def __init__(self, operator: Operator | StreamedOperator) -> None:
        self.operator, self.n_rows = operator, operator.n_rows
        self.can_be_recorded = isinstance(operator, Operator)

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Evaluate the operator on the batch."""
        if isinstance(self.operator, StreamedOperator):
            if batch is None:
                raise InputError("An operator of rows that stream needs the batch's rows; pass them.")
            return self.operator(predictions, batch.right, batch.given, workers)
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
class BatchDependence(Invariance):
    """A criterion prepared on each batch anew, as the paper does."""

    criterion: Penalty

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


class _VarianceBetweenWorlds(Invariance):
    """Mean over rows of Var over interventions of f(row had A been a′), summed over outputs.

    Where worlds are listed with their probabilities w the variance is Σ w (f − Σ w f)²; where each row has its own
    draws it is the unbiased one.
    """

    weights: Tensor | None  # (m,), see `ImaginedRows`

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return the mean variance between worlds."""
        answers = imagined.unflatten(-2, (-1, self.imagined_per_row))  # (..., b, m, d)
        if self.weights is None:
            values = answers.var(dim=-2).sum(dim=-1)
        else:
            shares = self.weights.to(answers)[:, None]
            # Around the mean, not as a difference of squares: predictions in nearly equal worlds would cancel.
            mean = (shares * answers).sum(dim=-2, keepdim=True)
            values = (shares * (answers - mean).square()).sum(dim=(-1, -2))
        if workers.size == 1:
            return values.mean(dim=-1)
        return workers.total(values.sum(dim=-1)) / workers.counted(values.shape[-1])


class CounterfactualVariance(_VarianceBetweenWorlds):
    """The variance between worlds of rows in memory; of worlds that are drawn, a few that change with the epoch."""

    def __init__(self, rows: ImaginedRows) -> None:
        self.rows, self.weights = rows, rows.weights
        self.n_rows, n_worlds = rows.inputs[0].shape[:2]
        self.imagined_per_row = n_worlds if self.weights is not None else min(PER_STEP, n_worlds)
        self._worlds = torch.arange(self.imagined_per_row, device=rows.device)

    def begin_epoch(self, generator: torch.Generator) -> None:
        """Draw the worlds that count in this epoch; all, where they are listed."""
        if self.weights is None:
            drawn = torch.randperm(self.rows.inputs[0].shape[1], generator=generator)[: len(self._worlds)]
            # In place: a step that was recorded on a device reads this tensor.
            self._worlds.copy_(drawn)

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...]:
        """Return the rows of the batch in each of these worlds, row by row."""
        return tuple(part.flatten(0, 1) for part in self.rows.read(index, self._worlds))

    @property
    def identity(self) -> str:
        """A digest of the imagined rows in memory."""
        return digest_of(self.rows.inputs, [part.tensors for part in self.rows.further])


class StreamedVariance(_VarianceBetweenWorlds):
    """The same of rows that are never all in memory: a batch brings its own rows as they would be in other worlds.

    ``first``, ``count``: which of the worlds that rows bring are meant.
    """

    can_be_recorded = False

    def __init__(self, first: int, count: int, weights: Tensor | None = None) -> None:
        self.first, self.imagined_per_row, self.weights = first, count, weights

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...]:
        """Return the rows of the batch in each of these worlds, row by row."""
        if batch is None or batch.imagined is None:
            raise InputError("Rows that stream bring their imagined rows with them, got a batch without; pass it.")
        return (batch.imagined[:, self.first : self.first + self.imagined_per_row].flatten(0, 1),)

    @property
    def identity(self) -> str:
        """Which worlds, and how probable they are."""
        return f"worlds {self.first} {self.imagined_per_row} {None if self.weights is None else self.weights.tolist()}"


class Worst(Invariance):
    """The largest of several penalties, each divided by its unit: what holds against the worst of several models."""

    def __init__(self, parts: Sequence[Invariance], units: Sequence[float]) -> None:
        self.parts, self.units, self.n_rows = tuple(parts), tuple(units), parts[0].n_rows
        self.can_be_recorded = all(part.can_be_recorded for part in parts)
        self.imagined_per_row = sum(part.imagined_per_row for part in parts)

    def begin_epoch(self, generator: torch.Generator) -> None:
        """Let each part draw."""
        for part in self.parts:
            part.begin_epoch(generator)

    def imagined_inputs(self, index: Tensor, batch: Rows | None = None) -> tuple[Tensor, ...] | None:
        """Return the imagined rows of all parts, one part after the other."""
        inputs = [more for part in self.parts if (more := part.imagined_inputs(index, batch)) is not None]
        return tuple(torch.cat(parts) for parts in zip(*inputs, strict=True)) if inputs else None

    def joined(self, blocks: Sequence[Tensor]) -> Tensor:
        """Join the answers of each part."""
        counts = [part.imagined_per_row for part in self.parts]
        cut = [block.split([len(block) // sum(counts) * count for count in counts]) for block in blocks]
        return torch.cat([part.joined(each) for part, each in zip(self.parts, zip(*cut, strict=True), strict=True)])

    def penalty(
        self, predictions: Tensor, imagined: Tensor, index: Tensor, batch: Rows | None, workers: Workers = ALONE
    ) -> Tensor:
        """Return the largest penalty."""
        penalties, start = [], 0
        for part, unit in zip(self.parts, self.units, strict=True):
            end = start + len(index) * part.imagined_per_row
            penalties.append(part.penalty(predictions, imagined[..., start:end, :], index, batch, workers) / unit)
            start = end
        return torch.stack(penalties).amax(dim=0)

    @property
    def identity(self) -> str:
        """All parts together."""
        return " ".join(f"{part.identity} in {unit}" for part, unit in zip(self.parts, self.units, strict=True))


def as_invariance(penalty: Any) -> Invariance | None:
    """Read what people pass to `train`: an operator, a criterion, an invariance, or None."""
    if penalty is None or isinstance(penalty, Invariance):
        return penalty
    return Dependence(penalty) if isinstance(penalty, Operator | StreamedOperator) else BatchDependence(penalty)


def outcome_scale(operator: Callable[..., Tensor], outcome: Tensor, right: Tensor, constant_loss: float) -> float:
    """Return the loss of the best constant prediction over the penalty of the outcome.

    An outcome that keeps the independence has a penalty near zero, above or below, and a unit that small would punish
    every prediction for what is noise. So the unit is at least a share of what the outcome would have if it followed
    one of the right-hand columns: the same values, in the order of that column.

    ``operator``: of predictions and ``rows=``. ``outcome``: (n, d), a prediction that is always right. ``right``:
    (n, columns), what the prediction is to be independent of.
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randperm(len(outcome), generator=generator)[:_ROWS]
    truth, followed = outcome[rows.to(outcome.device)], right[rows.to(right.device)]
    shuffles = (torch.randperm(len(rows), generator=generator).to(truth.device) for _ in range(_SHUFFLES))
    noise = torch.stack([operator(truth[shuffle], rows=rows) for shuffle in shuffles]).mean()
    ordered = truth[truth[:, 0].argsort()]
    ranks = (column.argsort().argsort() for column in followed.T[:_COLUMNS])
    most = max(float(operator(ordered[rank], rows=rows) - noise) for rank in ranks)
    reached = float(operator(truth, rows=rows) - noise)
    if max(reached, most) <= _NOTHING * abs(float(noise)):
        # The penalty sees nothing: a constant column, or a category of its own in each row.
        return constant_loss
    return constant_loss / max(reached, _LEAST_SHARE * most)


def counterfactual_scale(
    invariance: CounterfactualVariance | StreamedVariance, rows: Rows, outcome: Tensor, constant_loss: float
) -> float:
    """Return the loss of the best constant prediction over the counterfactual variance of an unconstrained predictor.

    The predictor is a quick one, boosted trees on some of the rows. Where the protected variables hardly move it, the
    unit is at least a share of the variance of its predictions. ``outcome``: (n, d), a prediction that is always right.
    """
    # Only here: trees take memory, and most trainings have no use for them.
    from sklearn.ensemble import HistGradientBoostingRegressor

    generator = torch.Generator().manual_seed(0)
    some = torch.randperm(len(outcome), generator=generator)[:_ROWS]
    table = rows.inputs[0][some.to(rows.inputs[0].device)].cpu().numpy()
    batch = rows.take(some) if isinstance(invariance, StreamedVariance) else None
    imagined = invariance.imagined_inputs(some, batch)[0].cpu().numpy()
    variance = spread = 0.0
    for column in outcome[some.to(outcome.device)].cpu().numpy().T:
        quick = HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0).fit(table, column)
        answers, others = (torch.from_numpy(quick.predict(part))[:, None] for part in (table, imagined))
        variance += float(invariance.penalty(answers, others, some, rows))
        spread += float(answers.var())
    return constant_loss / max(variance, _LEAST_SHARE * spread) if spread > 0 else constant_loss
