"""One step of training, and an epoch of them without waiting for the device in between; of one network or many at once.

On a CUDA device a step of a small network is all launching and no arithmetic: a step is recorded there once and
replayed, and a hundred stacked networks cost little more than one. On a CPU stacking does not pay.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from tqdm import tqdm

from ciplearn._core.errors import InputError, NumericalError
from ciplearn._core.tensors import may_draw, torch_seeded
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.invariance import Invariance, as_invariance
from ciplearn.learning.rows import TrainingRows, batches_of
from ciplearn.learning.settings import Fit, Objective, TrainingSettings, adam, set_rate
from ciplearn.learning.streamed_rows import Rows, StreamPlan
from ciplearn.penalties import Operator
from ciplearn.penalties.penalty import LARGEST_BATCH_WITHOUT_WAITING

_LEAST_STEPS_TO_RECORD, _WARM_UP = 50, 3  # a recording costs about as much as this many steps


class NotFinite(Exception):  # noqa: N818 - tells the loop where training stands
    """The first step of an epoch whose loss or penalty is not finite: the step, the loss, the penalty."""


class Stepper:
    """Forward, loss plus gamma times penalty, backward, Adam; all of them on the rows of all workers together."""

    def __init__(
        self,
        module: nn.Module,
        rows: Rows,
        objective: Objective,
        settings: TrainingSettings,
        invariance: Invariance | None,
        workers: Workers = ALONE,
    ) -> None:
        self.module, self.rows, self.objective, self.settings = module, rows, objective, settings
        self.invariance, self.workers = invariance, workers
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
        reached, sizes = [], []
        for index, step in self._steps(plan):
            reached.append(step)
            sizes.append(len(index))
            if self._reads_each_step and not all(map(math.isfinite, step.tolist())):
                break
        steps = torch.stack(reached).double().cpu()
        bad = (~torch.isfinite(steps).all(dim=1)).nonzero()
        if len(bad):
            raise NotFinite(int(bad[0]), *steps[int(bad[0])].tolist())
        weights = torch.tensor(sizes, dtype=torch.float64)
        return weights @ steps / weights.sum().clamp_min(1)

    def output_of(self, inputs: Sequence[Tensor]) -> Tensor:  # (b, k)
        """Run the network, in half precision where that is asked for."""
        if not self.settings.mixed_precision:
            return self.module(*inputs)
        with torch.autocast(self.rows.device.type, dtype=torch.bfloat16):
            output: Tensor = self.module(*inputs)
        return output.float() if isinstance(output, Tensor) else output

    def _steps(self, plan: Sequence[Tensor] | StreamPlan) -> Iterator[tuple[Tensor, Tensor]]:
        """Take the steps of an epoch, recorded or one by one; yield the rows of each, with its loss and penalty."""
        rows = self.rows
        if self._may_record and not isinstance(plan, StreamPlan) and isinstance(rows, TrainingRows):
            self._record(plan, rows)
        if self._replay is None or isinstance(plan, StreamPlan) or not isinstance(rows, TrainingRows):
            for index, batch in rows.batches(plan):  # type: ignore[arg-type]
                yield index, self._step(index, batch)
            return
        for index in torch.cat(list(plan)).to(rows.device).split([len(index) for index in plan]):
            if len(index) == len(self._index):
                self._index.copy_(index)
                self._replay()
                yield index, self._reached.clone()
            else:
                yield index, self._step(index, rows.take(index))

    def _step(self, index: Tensor, batch: TrainingRows) -> Tensor:  # (2,)
        # The network is asked about a batch and what is imagined beside it in one call.
        more = None if self.invariance is None else self.invariance.imagined_inputs(index, batch)
        inputs = batch.inputs
        if more is not None:
            inputs = tuple(torch.cat([seen, other]) for seen, other in zip(inputs, more, strict=True))
        everything = self.output_of(inputs)
        output, imagined = (everything, None) if more is None else (everything[: len(batch)], everything[len(batch) :])
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
        return torch.stack((loss.detach(), penalty.detach()))

    def _record(self, plan: Sequence[Tensor], rows: TrainingRows) -> None:
        self._may_record = False
        size, times = Counter(len(index) for index in plan).most_common(1)[0]
        if times * self.settings.epochs < _LEAST_STEPS_TO_RECORD:
            return
        self._index = next(index for index in plan if len(index) == size).to(rows.device)

        def step() -> None:
            self._reached.copy_(self._step(self._index, rows.take(self._index)))

        try:
            self._replay = recorded(step, (*self.module.parameters(), *self.module.buffers()), self.optimiser)
        except RuntimeError:
            # The network reads its numbers while it runs: it is trained step by step.
            torch.cuda.synchronize(rows.device)


def recorded(
    step: Callable[[], None], tensors: Iterable[Tensor], optimiser: torch.optim.Optimizer
) -> Callable[[], None]:
    """Record a step as a CUDA graph: the function returned launches everything at once.

    ``step`` reads and writes the same ``tensors`` in every call, and never waits for the device; the optimiser is made
    with ``capturable=True``. Raises `RuntimeError` if the step cannot be recorded. Weights, buffers and optimiser are
    afterwards as they were before.
    """
    before = [(tensor, tensor.detach().clone()) for tensor in tensors]
    moments = {part: {name: one.clone() for name, one in state.items()} for part, state in optimiser.state.items()}
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
            for tensor, value in before:
                tensor.copy_(value)
            for parameter, state in optimiser.state.items():
                for name, entry in state.items():
                    entry.copy_(moments[parameter][name]) if parameter in moments else entry.zero_()
    return graph.replay


def train_stacked(
    modules: Sequence[nn.Module],
    gammas: Sequence[float],
    rows: TrainingRows,
    objective: Objective,
    settings: TrainingSettings,
    penalty: Operator | Invariance | None,
    *,
    verbose: bool = False,
) -> list[Fit]:
    """Train modules of one architecture together, each with its own gamma, all on the same batches and operator.

    As in `train`, but the modules are left as they are, ``settings.gamma`` is not used, and there are no checkpoints,
    no patience and no mixed precision. A fit's history is the last epoch's mean loss.
    """
    if len(modules) != len(gammas) or not modules:
        had = f"{len(modules)} networks and {len(gammas)} gammas"
        raise InputError(f"Each network needs its gamma, got {had}; match them.")
    device, invariance = rows.device, as_invariance(penalty)
    draws = any(may_draw(module) for module in modules)
    with torch_seeded(settings.seed, device) if draws else nullcontext():
        trained = [copy.deepcopy(module).to(device).train() for module in modules]
        parameters, buffers = stack_module_state(trained)
        skeleton = copy.deepcopy(trained[0]).to("meta")
        weights = settings.gamma_scale * torch.tensor(list(gammas), dtype=torch.float32, device=device)
        optimiser = adam(parameters.values(), settings, device)
        generator = torch.Generator().manual_seed(settings.seed)
        # One size for all batches, so that one recorded step serves all; the few rows left over change every epoch.
        n_batches = batches_of(len(rows), settings.batch_size)
        size = len(rows) // n_batches
        index = torch.arange(size, device=device)
        # Sums over an epoch: of the loss, and of the loss with its penalty.
        losses, costs = torch.zeros(2, len(trained), device=device)

        def step() -> None:
            batch = rows.take(index)
            more = None if invariance is None else invariance.imagined_inputs(index)
            inputs = batch.inputs
            if more is not None:
                inputs = tuple(torch.cat([seen, other]) for seen, other in zip(inputs, more, strict=True))

            def one(weights: dict[str, Tensor], state: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
                output = functional_call(skeleton, (weights, state), inputs)
                return objective.loss(output[:size], batch.target, batch.weights), objective.prediction(output)

            cost, predictions = vmap(one, randomness="different")(parameters, buffers)
            losses.add_(cost.detach())
            if invariance is not None:
                seen, imagined = predictions[:, :size], predictions[:, size:]
                cost = cost + weights * invariance.penalty(seen, imagined, index, batch)
            costs.add_(cost.detach())
            optimiser.zero_grad()
            cost.sum().backward()
            optimiser.step()

        launch: Callable[[], None] = step
        if device.type == "cuda":
            launch = recorded(step, (*parameters.values(), *buffers.values()), optimiser)
        for epoch in tqdm(range(settings.epochs), disable=not verbose, unit="epoch"):
            set_rate(optimiser, settings.rate_in(epoch))
            losses.zero_()
            costs.zero_()
            if invariance is not None:
                invariance.begin_epoch(generator)
            order = torch.randperm(len(rows), generator=generator)[: n_batches * size]
            for batch in order.to(device).split(size):
                index.copy_(batch)
                launch()
            if bad := (~torch.isfinite(costs)).nonzero()[:, 0].tolist():
                gamma = f"{float(weights[bad[0]]) / settings.gamma_scale:g} (one of {len(bad)} such networks)"
                why = f"The loss is no longer finite in epoch {epoch + 1} of the network with gamma {gamma}"
                raise NumericalError(f"{why}; lower the learning rate {settings.learning_rate:g} or gamma.")
        with torch.no_grad():
            for number, module in enumerate(trained):
                module.load_state_dict({name: part[number] for name, part in (parameters | buffers).items()})
                module.eval()
    means = (losses / n_batches).tolist()
    return [Fit(module, ({"loss": mean},)) for module, mean in zip(trained, means, strict=True)]
