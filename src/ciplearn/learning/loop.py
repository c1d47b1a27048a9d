"""The training loop: loss plus gamma times the penalty, batch by batch; and unfinished training on disk."""

from __future__ import annotations

import copy
import hashlib
import io
import os
import pickle
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from tqdm import tqdm

from ciplearn._core.errors import InputError, InputTypeError, NumericalError
from ciplearn._core.files import checksum, whole_file
from ciplearn._core.tensors import may_draw, torch_seeded
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.invariance import Invariance, as_invariance
from ciplearn.learning.rows import DatasetRows
from ciplearn.learning.settings import Fit, Objective, TrainingSettings, set_rate
from ciplearn.learning.stepper import NotFinite, Stepper
from ciplearn.learning.streamed_rows import Rows, StreamedRows
from ciplearn.penalties import Operator, Penalty

_VALIDATION_ROWS_AT_ONCE = 8192

# A checkpoint is written at the end of an epoch, but not more often than this: a kill costs at most so many seconds and
# one epoch. It begins with a checksum of so many digits: a flipped bit would train on to another model.
_SECONDS_BETWEEN, _DIGITS = 2.0, 64


@dataclass(frozen=True)
class Validation:
    """Rows that training does not see, and the penalty on them where it counts in the judgement.

    >>> import torch
    >>> from torch import nn
    >>> from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, Validation, train
    >>> rows = TrainingRows((torch.zeros(5, 2),), target=torch.zeros(5, 1))
    >>> settings = TrainingSettings(epochs=2, patience=1)
    >>> sorted(train(nn.Linear(2, 1), rows, SquaredError(), settings, validation=Validation(rows)).history[0])
    ['loss', 'validation']
    """

    rows: Rows
    invariance: Invariance | None = None


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

    Batches are drawn from a generator of the training's own. Dropout, and whatever else a network or a dataset draws by
    itself, comes from torch's, of which a process has one: it is seeded and put back, and such trainings wait for each
    other.

    Parameters
    ----------
    module : nn.Module
        Takes ``rows.inputs`` as arguments and returns a tensor of shape (b, k).
    rows : TrainingRows, DatasetRows or StreamedRows
        On the device to train on, or read batch by batch.
    objective, settings
    penalty : Operator, Penalty or Invariance, optional
        An operator prepared on these rows, a penalty to prepare on each batch, as the paper does, or an invariance.
    validation : Validation, optional
        Rows to judge epochs on, for ``settings.patience``.
    checkpoint : path, optional
        Where to write unfinished work; training goes on from its own file and ends with the same weights.
    verbose : bool
    workers : Workers
        Who trains this network together, each on its own rows of every batch: all call this function alike and end
        with the same weights; the first keeps the checkpoint and shows the bar.

    Raises `NumericalError` if the loss is no longer finite; the module then holds the weights from the end of the last
    good epoch.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from ciplearn import Gaussian, ResidualHSCIC
    >>> from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
    >>> s, a = torch.randn(2, 100, 1)
    >>> rows = TrainingRows((torch.cat([s, a], dim=1),), target=s + a, right=a, given=s)
    >>> operator = ResidualHSCIC(kernel=Gaussian(1.0)).prepare(rows.right, rows.given)
    >>> len(train(nn.Linear(2, 1), rows, SquaredError(), TrainingSettings(gamma=1.0, epochs=3), operator).history)
    3
    """
    invariance = as_invariance(penalty)
    if not isinstance(module, nn.Module):
        raise InputTypeError(f"module must be a torch.nn.Module, got {type(module).__name__}; pass a network.")
    if not isinstance(rows, Rows):
        kind = type(rows).__name__
        raise InputTypeError(f"rows must be TrainingRows, DatasetRows or StreamedRows, got {kind}; pass one of these.")
    if len(rows) < 2:
        raise InputError(f"Training needs at least 2 rows, got {len(rows)}; pass more rows.")
    if settings.gamma > 0 and invariance is None:
        raise InputError(f"gamma is {settings.gamma:g}, but there is no penalty to weigh; pass one, or gamma 0.")
    if invariance is not None and invariance.n_rows not in (None, len(rows)):
        prepared = f"{invariance.n_rows} rows, got {len(rows)} to train on"
        raise InputError(f"The penalty was prepared on {prepared}; prepare it on these.")
    # A dataset may draw when it is asked for an item.
    draws = may_draw(module) or isinstance(rows, DatasetRows)
    first = workers.rank == 0
    # Rows of several workers must not share a dropout.
    with torch_seeded(settings.seed + workers.rank, rows.device) if draws else nullcontext():
        kept = invariance if settings.gamma > 0 else None
        run = _Run(Stepper(module, rows, objective, settings, kept, workers), validation, draws)
        keeper = None if checkpoint is None or not first else Checkpoint(checkpoint, run.identity())
        if (state := workers.agreed(None if keeper is None else keeper.load())) is not None:
            run.load_state(state)
        with tqdm(total=settings.epochs, initial=run.epoch, disable=not (verbose and first), unit="epoch") as bar:
            while run.epoch < settings.epochs and not run.is_stale:
                last = run.one_epoch()
                bar.update()
                bar.set_postfix({**{name: f"{value:.3g}" for name, value in last.items()}, "gamma": settings.gamma})
                if keeper is not None:
                    keeper.save(run.state())
        if run.best is not None:
            module.load_state_dict(run.best[2])
        if keeper is not None:
            keeper.remove()
    return Fit(module.eval(), tuple(run.history))


class _Run:
    """The moving parts of one training."""

    def __init__(self, stepper: Stepper, validation: Validation | None, draws: bool) -> None:
        self.stepper, self.draws = stepper, draws
        self.module, self.rows, self.settings = stepper.module, stepper.rows, stepper.settings
        self.validation = validation if self.settings.patience is not None else None
        self.generator = torch.Generator().manual_seed(self.settings.seed)
        self.epoch = 0
        self.history: list[dict[str, float]] = []
        self.best: tuple[int, float, dict[str, Tensor]] | None = None

    def one_epoch(self) -> dict[str, float]:
        """Go through all rows once; return the means."""
        self.module.train()
        good = _weights(self.module)
        plan = self.rows.plan(self.settings.batch_size, self.generator, self.stepper.workers)
        if self.stepper.invariance is not None:
            self.stepper.invariance.begin_epoch(self.generator)
        set_rate(self.stepper.optimiser, self.settings.rate_in(self.epoch))
        try:
            loss, penalty = self.stepper.epoch(plan).tolist()
        except NotFinite as where:
            self.module.load_state_dict(good)
            step, loss, penalty = where.args
            when = f"step {step + 1} of epoch {self.epoch + 1} (loss {loss:.3g}, penalty {penalty:.3g})"
            advice = f"lower the learning rate {self.settings.learning_rate:g} or gamma {self.settings.gamma:g}"
            sentence = f"The loss is no longer finite at {when}; the weights from before that epoch are kept, {advice}."
            raise NumericalError(sentence) from None
        # Without a penalty none was computed, which is not a penalty of zero.
        record = {"loss": loss} if self.stepper.invariance is None else {"loss": loss, "penalty": penalty}
        if self.validation is not None:
            # All workers judge all of these rows, and must agree when to stop.
            record["validation"] = self.stepper.workers.agreed(self._objective_on(self.validation))
            if self.best is None or record["validation"] < self.best[1]:
                self.best = self.epoch, record["validation"], _weights(self.module)
        self.epoch += 1
        self.history.append(record)
        return record

    @property
    def is_stale(self) -> bool:
        if self.best is None or self.settings.patience is None:
            return False
        return self.epoch - 1 - self.best[0] >= self.settings.patience

    def identity(self) -> str:
        shapes = [(name, tuple(part.shape)) for name, part in self.module.state_dict().items()]
        penalty = getattr(self.stepper.invariance, "identity", None)
        text = f"{self.rows.fingerprint()} {self.settings} {self.stepper.objective} {penalty} {shapes}"
        return hashlib.sha256(text.encode()).hexdigest()

    def state(self) -> dict[str, Any]:
        on_device = self.draws and self.rows.device.type == "cuda"
        return {
            "epoch": self.epoch,
            "history": self.history,
            "best": None if self.best is None else list(self.best),
            "module": self.module.state_dict(),
            "optimiser": self.stepper.optimiser.state_dict(),
            "shuffles": self.generator.get_state(),
            "random": torch.get_rng_state() if self.draws else None,
            "device_random": torch.cuda.get_rng_state(self.rows.device) if on_device else None,
        }

    def load_state(self, state: dict[str, Any]) -> None:
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


def _weights(module: nn.Module) -> dict[str, Tensor]:
    state = module.state_dict()
    # In place: the names carry versions of their modules with them, which loading asks for. A layer that has seen no
    # row yet may have weights without a shape.
    for name, part in state.items():
        state[name] = part.clone() if isinstance(part, Tensor) and not is_lazy(part) else copy.deepcopy(part)
    return state


class Checkpoint:
    """Where training writes its state, whole or not at all, and finds it again after a kill.

    The file exists while training is unfinished. One of another training, with other rows, settings or network, is
    refused by its ``identity``.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError(f"checkpoint must be a path, got {path!r}; pass for example 'work.ckpt'.")
        self.path, self.identity, self._written = Path(path), identity, time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Return the saved state, or None if there is no file."""
        why = f"The checkpoint {self.path} cannot be read, it is damaged or no checkpoint"
        damaged = InputError(f"{why}; delete it to start anew.")
        try:
            if not self.path.exists():
                return None
        except OSError as error:
            raise InputError(f"{self.path} cannot name a checkpoint: {error.strerror}; pass another path.") from error
        try:
            # A pipe would be waited for without end.
            content = self.path.read_bytes() if self.path.is_file() else b""
        except OSError as error:
            raise damaged from error
        state_bytes = content[_DIGITS:]
        if checksum(state_bytes).encode() != content[:_DIGITS]:
            raise damaged
        try:
            # Tensors and plain values only: loading never runs code from the file.
            state = torch.load(io.BytesIO(state_bytes), map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
            raise damaged from error
        if not isinstance(state, dict) or state.get("identity") != self.identity:
            why = f"The checkpoint {self.path} belongs to a training on other rows or with other settings"
            raise InputError(f"{why}; delete it, or pass another path.")
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Write the state, if the last one is old enough; a kill while writing leaves the last one in place."""
        if time.monotonic() - self._written < _SECONDS_BETWEEN:
            return
        content = io.BytesIO()
        torch.save({"identity": self.identity, **state}, content)
        with whole_file(self.path) as stream:
            stream.write(checksum(content.getvalue()).encode())
            stream.write(content.getbuffer())
        self._written = time.monotonic()

    def remove(self) -> None:
        """Forget the state: training is done."""
        self.path.unlink(missing_ok=True)
