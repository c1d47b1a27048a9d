"""The rows a network is trained on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.workers import ALONE, Workers


@dataclass(frozen=True)
class TrainingRows:
    """Tensors with one entry per row.

    Attributes
    ----------
    inputs : tuple of Tensor
        What the network takes, in the order of its arguments; any shape after the first dimension.
    target : Tensor, shape (n,) or (n, k)
    right, given : Tensor, shape (n, d), optional
        Variables of the independence to enforce.
    weights : Tensor, shape (n,), optional
        Weights of the rows in the loss; the penalty counts every row alike.
    imagined : Tensor, shape (n, m, width), optional
        The first inputs as they would be in m other worlds, where rows bring these with them.

    Examples
    --------
    >>> import torch
    >>> from ciplearn.learning import TrainingRows
    >>> rows = TrainingRows((torch.zeros(5, 2),), target=torch.zeros(5, 1))
    >>> rows.take(torch.tensor([0, 3])).target.shape
    torch.Size([2, 1])
    """

    inputs: tuple[Tensor, ...]
    target: Tensor
    right: Tensor | None = None
    given: Tensor | None = None
    weights: Tensor | None = None
    imagined: Tensor | None = None

    def __post_init__(self) -> None:
        strange = [name for name, part in self._named() if not isinstance(part, Tensor)]
        if strange:
            raise InputTypeError(
                f"Training rows are tensors, but {strange[0]} is none; convert it with torch.as_tensor."
            )
        sizes = {name: part.shape[0] for name, part in self._named()}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"All parts of the training rows must have the same length, got {sizes}; pass the same rows."
            )

    def __len__(self) -> int:
        return self.target.shape[0]

    @property
    def device(self) -> torch.device:
        """Where the rows live."""
        return self.target.device

    def plan(self, batch_size: int, generator: torch.Generator, workers: Workers = ALONE) -> tuple[Tensor, ...]:
        """Draw the batches of an epoch: the positions of one's own rows of each."""
        return shuffled(len(self), batch_size, generator, workers)

    def batches(self, plan: Iterable[Tensor]) -> Iterator[tuple[Tensor, Self]]:
        """Go through the rows as planned: the positions of a batch, and its rows."""
        for index in plan:
            yield index, self.take(index)

    def take(self, index: Tensor) -> Self:
        """Return some of the rows."""
        return self._each(lambda part: part[index.to(part.device)])

    def to(self, device: torch.device) -> Self:
        """Return the same rows on another device."""
        return self._each(lambda part: part.to(device))

    def cut(self, places: Sequence[int]) -> Self:
        """Return rows with some of the first inputs' columns alone."""
        return replace(self, inputs=(self.inputs[0][:, list(places)],), imagined=None)

    def fingerprint(self) -> str:
        """A digest of all entries, to tell one table from another."""
        digest = hashlib.sha256()
        for name, part in self._named():
            digest.update(f"{name}{tuple(part.shape)}{part.dtype}".encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _named(self) -> list[tuple[str, Tensor]]:
        named = [(f"inputs[{i}]", part) for i, part in enumerate(self.inputs)]
        others = [(name, getattr(self, name)) for name in ("target", "right", "given", "weights", "imagined")]
        return named + [(name, part) for name, part in others if part is not None]

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        others = {name: change(part) for name, part in self._named() if not name.startswith("inputs")}
        return replace(self, inputs=tuple(map(change, self.inputs)), **others)


def shuffled(n: int, batch_size: int, generator: torch.Generator, workers: Workers) -> tuple[Tensor, ...]:
    """Cut n rows in a random order, which all workers share, into batches, and each into the workers' own parts."""
    order = torch.randperm(n, generator=generator)
    return tuple(workers.own(index) for index in order.tensor_split(batches_of(n, batch_size)))


def batches_of(n: int, batch_size: int) -> int:
    """How many batches of nearly equal size n rows make: one of a single row would have no pairs for the penalty."""
    return max(1, min(math.ceil(n / batch_size), n // 2))
