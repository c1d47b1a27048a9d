"""Many networks of one architecture trained as one: the gammas and seeds of a frontier share batches and operator.

On a CUDA device a step of a small network is all launching and no arithmetic, so a hundred networks cost little more
than one. On a CPU stacking does not pay: use processes there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from tqdm import tqdm

from ciplearn._core.errors import InputError, NumericalError
from ciplearn._core.tensors import may_draw, torch_seeded
from ciplearn.learning.invariance import Invariance, as_invariance
from ciplearn.learning.loop import Fit
from ciplearn.learning.objectives import Objective
from ciplearn.learning.rows import TrainingRows, batches_of
from ciplearn.learning.settings import TrainingSettings, adam, set_rate
from ciplearn.learning.stepper import recorded
from ciplearn.penalties import Operator


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
    """Train modules of one architecture together, each with its own gamma, all on the same batches.

    As in `train`, but the modules are left as they are, ``settings.gamma`` is not used, and there are no checkpoints,
    no patience and no mixed precision. A fit's history is the last epoch's mean loss.
    """
    if len(modules) != len(gammas) or not modules:
        raise InputError(
            f"Each network needs its gamma, got {len(modules)} networks and {len(gammas)} gammas; match them."
        )
    draws = any(may_draw(module) for module in modules)
    with torch_seeded(settings.seed, rows.device) if draws else nullcontext():
        stack = _Stack(modules, gammas, rows, objective, settings, as_invariance(penalty))
        for epoch in tqdm(range(settings.epochs), disable=not verbose, unit="epoch"):
            set_rate(stack.optimiser, settings.rate_in(epoch))
            stack.one_epoch()
            stack.refuse_what_is_not_finite(epoch)
        return stack.unstacked()


class _Stack:
    def __init__(
        self,
        modules: Sequence[nn.Module],
        gammas: Sequence[float],
        rows: TrainingRows,
        objective: Objective,
        settings: TrainingSettings,
        invariance: Invariance | None,
    ) -> None:
        device = rows.device
        self.settings = settings
        moved = [copy.deepcopy(module).to(device).train() for module in modules]
        self.modules, self.rows, self.objective, self.invariance = moved, rows, objective, invariance
        self.parameters, self.buffers = stack_module_state(moved)
        self.skeleton = copy.deepcopy(moved[0]).to("meta")
        self.gammas = settings.gamma_scale * torch.tensor(list(gammas), dtype=torch.float32, device=device)
        self.optimiser = adam(self.parameters.values(), settings, device)
        self.generator = torch.Generator().manual_seed(settings.seed)
        n_batches = batches_of(len(rows), settings.batch_size)
        # One size for all batches, so that one recorded step serves all; the few rows left over change every epoch.
        self.n_batches, self.batch = n_batches, len(rows) // n_batches
        self.index = torch.arange(self.batch, device=device)
        # Sums over an epoch: of the loss, and of the loss with its penalty.
        self.losses, self.costs = torch.zeros(2, len(moved), device=device)
        state = (*self.parameters.values(), *self.buffers.values())
        self.step: Callable[[], None] = (
            recorded(self._step, state, self.optimiser) if device.type == "cuda" else self._step
        )

    def one_epoch(self) -> None:
        self.losses.zero_()
        self.costs.zero_()
        if self.invariance is not None:
            self.invariance.begin_epoch(self.generator)
        order = torch.randperm(len(self.rows), generator=self.generator)[: self.n_batches * self.batch]
        for batch in order.to(self.index.device).split(self.batch):
            self.index.copy_(batch)
            self.step()

    def refuse_what_is_not_finite(self, epoch: int) -> None:
        bad = (~torch.isfinite(self.costs)).nonzero()[:, 0].tolist()
        if bad:
            gamma = float(self.gammas[bad[0]]) / self.settings.gamma_scale
            raise NumericalError(
                f"The loss is no longer finite in epoch {epoch + 1} of the network with gamma {gamma:g} (one of "
                f"{len(bad)} such networks); lower the learning rate {self.settings.learning_rate:g} or gamma."
            )

    def unstacked(self) -> list[Fit]:
        with torch.no_grad():
            for number, module in enumerate(self.modules):
                state = {name: part[number] for name, part in (*self.parameters.items(), *self.buffers.items())}
                module.load_state_dict(state)
                module.eval()
        losses = (self.losses / self.n_batches).tolist()
        return [Fit(module, ({"loss": loss},)) for module, loss in zip(self.modules, losses, strict=True)]

    def _step(self) -> None:
        batch = self.rows.take(self.index)
        more = None if self.invariance is None else self.invariance.imagined_inputs(self.index)
        inputs = batch.inputs
        if more is not None:
            inputs = tuple(torch.cat([own, other]) for own, other in zip(inputs, more, strict=True))

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            output = functional_call(self.skeleton, (parameters, buffers), inputs)
            loss = self.objective.loss(output[: self.batch], batch.target, batch.weights)
            return loss, self.objective.prediction(output)

        losses, predictions = vmap(one, randomness="different")(self.parameters, self.buffers)
        self.losses += losses.detach()
        if self.invariance is not None:
            own, imagined = predictions[:, : self.batch], predictions[:, self.batch :]
            losses = losses + self.gammas * self.invariance.penalty(own, imagined, self.index, batch)
        self.costs += losses.detach()
        self.optimiser.zero_grad()
        losses.sum().backward()
        self.optimiser.step()
