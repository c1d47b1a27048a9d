"""One step of training, and an epoch of them without waiting for the device in between."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from ciplearn._core.errors import InputError
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.invariance import Invariance
from ciplearn.learning.objectives import Objective
from ciplearn.learning.rows import TrainingRows
from ciplearn.learning.settings import TrainingSettings, adam
from ciplearn.learning.streamed_rows import Rows, StreamPlan
from ciplearn.penalties.operator import LARGEST_BATCH_WITHOUT_WAITING

# A recording costs about as much as this many steps.
_LEAST_STEPS_TO_RECORD, _WARM_UP = 50, 3


class NotFinite(Exception):  # noqa: N818 - tells the loop where training stands
    """The first step of an epoch whose loss or penalty is not finite: the step, the loss, the penalty."""


class Stepper:
    """Forward, loss plus gamma times penalty, backward, Adam; all of them on the rows of all workers together.

    On a CUDA device a step of a small network is all launching and no arithmetic: where rows are tensors there and the
    penalty is prepared, the step is recorded once and replayed.
    """

    def __init__(
        self,
        module: nn.Module,
        rows: Rows,
        objective: Objective,
        settings: TrainingSettings,
        invariance: Invariance | None,
        workers: Workers = ALONE,
    ) -> None:
        self.workers = workers
        self.module, self.rows, self.objective, self.settings = module, rows, objective, settings
        self.invariance = invariance
        if not any(part.requires_grad for part in module.parameters()):
            raise InputError("The network has no weights to train; pass one with parameters that require gradients.")
        on_device = rows.device.type == "cuda"
        self.optimiser = adam(module.parameters(), settings, rows.device)
        # Reading a number from a device waits for all work before it. Larger batches keep a device busy by themselves,
        # and their penalty reads the predictions anyway.
        self._reads_each_step = not on_device or settings.batch_size > LARGEST_BATCH_WITHOUT_WAITING
        recordable = workers.size == 1 and (invariance is None or invariance.can_be_recorded)
        self._may_record = not self._reads_each_step and isinstance(rows, TrainingRows) and recordable
        self._replay: Callable[[], None] | None = None
        self._index = torch.zeros(0, dtype=torch.int64)
        self._reached = torch.zeros(2, device=rows.device)

    def epoch(self, plan: Sequence[Tensor] | StreamPlan) -> Tensor:  # -> (2,), float64 on the CPU
        """Take one step per batch; return the mean loss and penalty, over rows.

        Raises `NotFinite` at once where reading a number is free, at the end of the epoch on a device.
        """
        if self._reads_each_step:
            return self._checked_each_step(plan)
        if self._may_record and not isinstance(plan, StreamPlan):
            self._record(plan)
        reached, sizes = torch.zeros(len(plan), 2, device=self.rows.device), []
        if self._replay is not None and isinstance(self.rows, TrainingRows) and not isinstance(plan, StreamPlan):
            self._replayed(plan, self.rows, self._replay, reached)
            sizes = [len(index) for index in plan]
        else:
            for number, (index, batch) in enumerate(self.rows.batches(plan)):  # type: ignore[arg-type]
                reached[number] = torch.stack(self._step(index, batch))
                sizes.append(len(index))
        found = reached.double().cpu()
        bad = (~torch.isfinite(found).all(dim=1)).nonzero()
        if len(bad):
            raise NotFinite(int(bad[0]), *found[int(bad[0])].tolist())
        return _mean(found, sizes)

    def output_of(self, inputs: Sequence[Tensor]) -> Tensor:  # (b, k)
        """Run the network, in half precision where that is asked for."""
        if not self.settings.mixed_precision:
            return self.module(*inputs)
        with torch.autocast(self.rows.device.type, dtype=torch.bfloat16):
            output: Tensor = self.module(*inputs)
        return output.float() if isinstance(output, Tensor) else output

    def _checked_each_step(self, plan: Sequence[Tensor] | StreamPlan) -> Tensor:  # (2,)
        reached, sizes = [], []
        for number, (index, batch) in enumerate(self.rows.batches(plan)):  # type: ignore[arg-type]
            loss, penalty = (float(part) for part in self._step(index, batch))
            if not math.isfinite(loss + penalty):
                raise NotFinite(number, loss, penalty)
            reached.append((loss, penalty))
            sizes.append(len(index))
        return _mean(torch.tensor(reached, dtype=torch.float64), sizes)

    def _step(self, index: Tensor, batch: TrainingRows) -> tuple[Tensor, Tensor]:
        output, imagined = self._outputs(index, batch)
        self.objective.check(output, batch.target)
        loss = self.objective.loss(output, batch.target, batch.weights, self.workers)
        penalty = loss.new_zeros(())
        # A penalty that reads its predictions refuses those that are not finite, in words that are not about training.
        if self.invariance is not None and not (self._reads_each_step and not math.isfinite(loss.detach())):
            predictions = self.objective.prediction(output)
            others = predictions[:0] if imagined is None else self.objective.prediction(imagined)
            penalty = self.invariance.penalty(predictions, others, index, batch, self.workers)
        self.optimiser.zero_grad()
        (loss + self.settings.weight * penalty).backward()
        self.workers.add_gradients(self.module.parameters())
        self.optimiser.step()
        return loss.detach(), penalty.detach()

    def _outputs(self, index: Tensor, batch: TrainingRows) -> tuple[Tensor, Tensor | None]:  # (b, k), (b · m, k)
        """Ask the network about a batch and what is imagined beside it, in one call."""
        more = None if self.invariance is None else self.invariance.imagined_inputs(index, batch)
        if more is None:
            return self.output_of(batch.inputs), None
        both = [torch.cat([own, other]) for own, other in zip(batch.inputs, more, strict=True)]
        output = self.output_of(both)
        return output[: len(batch)], output[len(batch) :]

    def _record(self, plan: Sequence[Tensor]) -> None:
        self._may_record = False
        rows = self.rows
        size, times = Counter(len(index) for index in plan).most_common(1)[0]
        if times * self.settings.epochs < _LEAST_STEPS_TO_RECORD or not isinstance(rows, TrainingRows):
            return
        self._index = next(index for index in plan if len(index) == size).to(rows.device)

        def step() -> None:
            self._reached.copy_(torch.stack(self._step(self._index, rows.take(self._index))))

        try:
            self._replay = recorded(step, (*self.module.parameters(), *self.module.buffers()), self.optimiser)
        except RuntimeError:
            # The network reads its numbers while it runs: it is trained step by step.
            torch.cuda.synchronize(rows.device)

    def _replayed(
        self, plan: Sequence[Tensor], rows: TrainingRows, replay: Callable[[], None], reached: Tensor
    ) -> None:
        moved = torch.cat(list(plan)).to(rows.device).split([len(index) for index in plan])
        for number, index in enumerate(moved):
            if len(index) == len(self._index):
                self._index.copy_(index)
                replay()
                reached[number].copy_(self._reached)
            else:
                reached[number] = torch.stack(self._step(index, rows.take(index)))


def _mean(reached: Tensor, sizes: Sequence[int]) -> Tensor:  # (steps, 2) -> (2,)
    weights = torch.tensor(sizes, dtype=torch.float64)
    return weights @ reached / weights.sum().clamp_min(1)


def recorded(
    step: Callable[[], None], tensors: Iterable[Tensor], optimiser: torch.optim.Optimizer
) -> Callable[[], None]:
    """Record a step as a CUDA graph: the function returned launches everything at once.

    ``step`` reads and writes the same ``tensors`` in every call, and never waits for the device; the optimiser is made
    with ``capturable=True``. Raises `RuntimeError` if the step cannot be recorded. Weights, buffers and optimiser are
    afterwards as they were before.
    """
    kept = [(tensor, tensor.detach().clone()) for tensor in tensors]
    moments = {
        parameter: {name: entry.clone() for name, entry in state.items()}
        for parameter, state in optimiser.state.items()
    }
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
    finally:
        # Warming up has moved the weights, and Adam remembers it.
        with torch.no_grad():
            for tensor, value in kept:
                tensor.copy_(value)
            for parameter, state in optimiser.state.items():
                for name, entry in state.items():
                    entry.copy_(moments[parameter][name]) if parameter in moments else entry.zero_()
    return graph.replay
