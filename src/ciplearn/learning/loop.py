"""The training loop: loss plus gamma times the penalty, batch by batch."""

from __future__ import annotations

import copy
import hashlib
import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from ciplearn._core.errors import InputError, InputTypeError, NumericalError
from ciplearn._core.torch_generator import may_draw, torch_seeded
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.checkpoint import Checkpoint
from ciplearn.learning.dataset_rows import DatasetRows, Rows
from ciplearn.learning.invariance import Invariance, as_invariance
from ciplearn.learning.objectives import Objective
from ciplearn.learning.settings import TrainingSettings, set_rate
from ciplearn.learning.stepper import NotFinite, Stepper
from ciplearn.learning.streamed_rows import StreamedRows
from ciplearn.penalties import Operator, Penalty

_VALIDATION_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Validation:
    """Rows that training does not see, and the penalty on them where it counts in the judgement.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, Validation, train
    >>> rows = TrainingRows((torch.zeros(5, 2),), target=torch.zeros(5, 1))
    >>> settings = TrainingSettings(epochs=2, patience=1)
    >>> fit = train(nn.Linear(2, 1), rows, SquaredError(), settings, validation=Validation(rows))
    >>> "validation" in fit.history[0]
    True
    """

    rows: Rows
    invariance: Invariance | None = None


@dataclass(frozen=True)
class Fit:
    """A trained network and how it got there.

    Attributes
    ----------
    module : nn.Module
        In evaluation mode.
    history : tuple of dict
        Mean ``loss`` of each epoch, mean ``penalty`` unless gamma is 0, and the objective on ``validation`` rows where
        there are any.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
    >>> rows = TrainingRows((torch.zeros(5, 2),), target=torch.zeros(5, 1))
    >>> fit = train(nn.Linear(2, 1), rows, SquaredError(), TrainingSettings(epochs=2))
    >>> type(fit).__name__, fit.module(torch.zeros(1, 2)).shape
    ('Fit', torch.Size([1, 1]))
    """

    module: nn.Module
    history: tuple[dict[str, float], ...]


def train(
    module: nn.Module,
    rows: Rows,
    objective: Objective,
    settings: TrainingSettings,
    penalty: Penalty | Operator | Invariance | None = None,
    validation: Validation | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    workers: Workers = ALONE,
) -> Fit:
    """Train ``module`` in place.

    Batches are drawn from a generator of the training's own, so that trainings in several threads do not disturb each
    other. Dropout, and whatever else a network or a dataset draws by itself, comes from torch's own generator, of which
    a process has one: it is seeded, put back at the end, and such trainings wait for each other.

    Parameters
    ----------
    module : nn.Module
        Takes ``rows.inputs`` as arguments and returns a tensor of shape (b, k).
    rows : TrainingRows or DatasetRows
        Tensors on the device to train on, or a dataset that is read batch by batch.
    objective : Objective
    settings : TrainingSettings
    penalty : Operator, Penalty or Invariance, optional
        An operator prepared on these rows; a penalty, which is then prepared anew on each batch, as the paper does; or
        an invariance, such as the variance between imagined rows.
    validation : Validation, optional
        Rows to judge epochs on, for ``settings.patience``.
    checkpoint : path, optional
        Where to write unfinished work; training that finds its own file there goes on from it and ends with the same
        weights.
    verbose : bool
        Show a bar with loss, penalty and gamma.
    workers : Workers
        Who trains this network together, each on its own rows of every batch: all call this function alike, and all
        end with the same weights. The first one keeps the checkpoint and shows the bar.

    Raises
    ------
    NumericalError
        If the loss is no longer finite; the module then holds the weights from the end of the last good epoch.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from ciplearn import Gaussian, ResidualHSCIC
    >>> from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
    >>> draw = torch.Generator().manual_seed(0)
    >>> s, a = torch.randn(2, 100, 1, generator=draw)
    >>> rows = TrainingRows((torch.cat([s, a], dim=1),), target=s + a, right=a, given=s)
    >>> operator = ResidualHSCIC(kernel=Gaussian(1.0)).prepare(rows.right, rows.given)
    >>> fit = train(nn.Linear(2, 1), rows, SquaredError(), TrainingSettings(gamma=1.0, epochs=3), operator)
    >>> len(fit.history)
    3
    """
    invariance = as_invariance(penalty)
    _check(module, rows, settings, invariance)
    # A dataset may draw when it is asked for an item.
    draws = may_draw(module) or isinstance(rows, DatasetRows)
    first = workers.rank == 0
    # Rows of several workers must not share a dropout.
    with torch_seeded(settings.seed + workers.rank, rows.device) if draws else nullcontext():
        run = _Run(module, rows, objective, settings, invariance, validation, draws=draws, workers=workers)
        keeper = None if checkpoint is None or not first else Checkpoint(checkpoint, _identity(run))
        state = workers.agreed(None if keeper is None else keeper.load())
        if state is not None:
            run.load_state(state)
        shown = verbose and first
        with tqdm(total=settings.epochs, initial=run.epoch, disable=not shown, unit="epoch") as bar:
            while run.epoch < settings.epochs and not run.is_stale:
                last = run.one_epoch()
                bar.update()
                bar.set_postfix({**{name: f"{value:.3g}" for name, value in last.items()}, "gamma": settings.gamma})
                if keeper is not None:
                    keeper.save(run.state())
        run.finish()
        if keeper is not None:
            keeper.remove()
    return Fit(module.eval(), tuple(run.history))


def _check(module: Any, rows: Any, settings: TrainingSettings, invariance: Invariance | None) -> None:
    if not isinstance(module, nn.Module):
        raise InputTypeError(f"module must be a torch.nn.Module, got {type(module).__name__}; pass a network.")
    if not isinstance(rows, Rows):
        raise InputTypeError(
            f"rows must be TrainingRows, DatasetRows or StreamedRows, got {type(rows).__name__}; pass one of these."
        )
    if len(rows) < 2:
        raise InputError(f"Training needs at least 2 rows, got {len(rows)}; pass more rows.")
    if settings.gamma > 0 and invariance is None:
        raise InputError(f"gamma is {settings.gamma:g}, but there is no penalty to weigh; pass one, or gamma 0.")
    if invariance is not None and invariance.n_rows not in (None, len(rows)):
        raise InputError(
            f"The penalty was prepared on {invariance.n_rows} rows, got {len(rows)} to train on; prepare it on these."
        )


class _Run:
    """The moving parts of one training."""

    def __init__(
        self,
        module: nn.Module,
        rows: Rows,
        objective: Objective,
        settings: TrainingSettings,
        invariance: Invariance | None,
        validation: Validation | None,
        *,
        draws: bool,
        workers: Workers,
    ) -> None:
        self.module, self.rows, self.settings, self.draws, self.workers = module, rows, settings, draws, workers
        self.validation = validation if settings.patience is not None else None
        kept = invariance if settings.gamma > 0 else None
        self.stepper = Stepper(module, rows, objective, settings, kept, workers)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.epoch = 0
        self.history: list[dict[str, float]] = []
        self.best: tuple[int, float, dict[str, Tensor]] | None = None

    def one_epoch(self) -> dict[str, float]:
        """Go through all rows once; return the means."""
        self.module.train()
        good = copy.deepcopy(self.module.state_dict())
        plan = self.rows.plan(self.settings.batch_size, self.generator, self.workers)
        if self.stepper.invariance is not None:
            self.stepper.invariance.begin_epoch(self.generator)
        set_rate(self.stepper.optimiser, self.settings.rate_in(self.epoch))
        try:
            loss, penalty = self.stepper.epoch(plan).tolist()
        except NotFinite as where:
            self.module.load_state_dict(good)
            raise NumericalError(
                f"The loss is no longer finite at step {where.step + 1} of epoch {self.epoch + 1} "
                f"(loss {where.loss:.3g}, penalty {where.penalty:.3g}); the weights from before that epoch are kept, "
                f"lower the learning rate {self.settings.learning_rate:g} or gamma {self.settings.gamma:g}."
            ) from None
        # Without a penalty none was computed, which is not a penalty of zero.
        record = {"loss": loss} if self.stepper.invariance is None else {"loss": loss, "penalty": penalty}
        if self.validation is not None:
            # All workers judge all of these rows, and must agree when to stop.
            record["validation"] = self.workers.agreed(self._objective_on(self.validation))
            if self.best is None or record["validation"] < self.best[1]:
                self.best = self.epoch, record["validation"], copy.deepcopy(self.module.state_dict())
        self.epoch += 1
        self.history.append(record)
        return record

    @property
    def is_stale(self) -> bool:
        """Whether patience has run out."""
        if self.best is None or self.settings.patience is None:
            return False
        return self.epoch - 1 - self.best[0] >= self.settings.patience

    def finish(self) -> None:
        """Return to the best weights, if there was a validation."""
        if self.best is not None:
            self.module.load_state_dict(self.best[2])

    def state(self) -> dict[str, Any]:
        """All that a resumed training needs."""
        return {
            "epoch": self.epoch,
            "history": self.history,
            "best": None if self.best is None else list(self.best),
            "module": self.module.state_dict(),
            "optimiser": self.stepper.optimiser.state_dict(),
            "shuffles": self.generator.get_state(),
            "random": torch.get_rng_state() if self.draws else None,
            "device_random": torch.cuda.get_rng_state(self.rows.device) if self._draws_on_device else None,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.epoch, self.history = state["epoch"], state["history"]
        self.best = None if state["best"] is None else tuple(state["best"])
        self.module.load_state_dict(state["module"])
        optimiser = self.stepper.optimiser
        rates = [group["lr"] for group in optimiser.param_groups]
        optimiser.load_state_dict(state["optimiser"])
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            # A recorded step reads the rate where it was made, on the device; every epoch sets it anew.
            group["lr"] = rate
        self.generator.set_state(state["shuffles"])
        if state["random"] is not None:
            torch.set_rng_state(state["random"])
        if state["device_random"] is not None:
            torch.cuda.set_rng_state(state["device_random"], self.rows.device)

    @property
    def _draws_on_device(self) -> bool:
        return self.draws and self.rows.device.type == "cuda"

    def _objective_on(self, validation: Validation) -> float:
        self.module.eval()
        rows, invariance = validation.rows, validation.invariance
        if isinstance(rows, StreamedRows):
            raise InputError("Rows that say when to stop are held in memory, got rows that stream; pass some of them.")
        outputs, imagined = [], []
        with torch.no_grad():
            for index, batch in rows.batches(torch.arange(len(rows)).split(_VALIDATION_ROWS_AT_ONCE)):
                outputs.append(self.stepper.output_of(batch.inputs))
                if invariance is not None and (more := invariance.imagined_inputs(index, batch)) is not None:
                    imagined.append(self.stepper.output_of(more))
            output, objective = torch.cat(outputs), self.stepper.objective
            total = float(objective.loss(output, rows.target, rows.weights))
            if invariance is not None:
                others = invariance.joined(imagined) if imagined else output[:0]
                everything = torch.arange(len(rows), device=output.device)
                both = objective.prediction(output), objective.prediction(others)
                total += self.settings.weight * float(invariance.penalty(*both, everything, rows))
        self.module.train()
        return total


def _identity(run: _Run) -> str:
    shapes = [(name, tuple(part.shape)) for name, part in run.module.state_dict().items()]
    invariance = run.stepper.invariance
    known = None if invariance is None else invariance.identity
    text = f"{run.rows.fingerprint()} {run.settings} {run.stepper.objective} {known} {shapes}"
    return hashlib.sha256(text.encode()).hexdigest()
