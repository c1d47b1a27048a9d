"""The rows a network is trained on: tensors, or inputs that are read batch by batch from a dataset."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Self, cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset, default_collate
from tqdm import tqdm

from ciplearn._core.arguments import whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.settings import chosen_device

_ROWS_READ_AT_ONCE = 1024


@dataclass(frozen=True)
class TrainingRows:
    """Tensors with one entry per row.

    ``inputs`` are what the network takes, in the order of its arguments, and ``right`` and ``given`` the variables of
    the independence to enforce. ``weights`` count in the loss; the penalty counts every row alike. ``imagined``: the
    first inputs as they would be in m other worlds, where rows bring these with them.

    >>> import torch
    >>> from ciplearn.learning import TrainingRows
    >>> rows = TrainingRows((torch.zeros(5, 2),), target=torch.zeros(5, 1))
    >>> rows.take(torch.tensor([0, 3])).target.shape
    torch.Size([2, 1])
    """

    inputs: tuple[Tensor, ...]  # (n, ...) each
    target: Tensor  # (n,) or (n, k)
    right: Tensor | None = None  # (n, d)
    given: Tensor | None = None  # (n, d)
    weights: Tensor | None = None  # (n,)
    imagined: Tensor | None = None  # (n, m, width)

    def __post_init__(self) -> None:
        if strange := [name for name, part in self._named() if not isinstance(part, Tensor)]:
            raise InputTypeError(f"Training rows are tensors, {strange[0]} is none; convert it with torch.as_tensor.")
        sizes = {name: part.shape[0] for name, part in self._named()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"All parts of the training rows must have the same length, got {sizes}; match them.")

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

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put rows of one kind below each other."""
        names = [name for name, _ in parts[0]._named() if not name.startswith("inputs")]
        others = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(tuple(torch.cat(inputs) for inputs in zip(*(part.inputs for part in parts), strict=True)), **others)

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


@dataclass(frozen=True)
class DatasetRows:
    """Target and variables of the independence as tensors, and inputs that a dataset holds.

    ``known`` is all that is in memory; its inputs, if any, are the network's first arguments. ``dataset`` is map-style,
    one item per row: a tensor, or a tuple of tensors, the network's further arguments. ``workers`` read ahead.

    >>> import torch
    >>> from ciplearn.learning import DatasetRows
    >>> items = [((row,), row[:1], row[:1], row[1:]) for row in torch.zeros(5, 2)]
    >>> DatasetRows.of(items).given.shape  # (inputs, target, right, given)
    torch.Size([5, 1])
    """

    known: TrainingRows
    dataset: Dataset[Any]
    workers: int = 0

    def __post_init__(self) -> None:
        n_items = checked_length(self.dataset)
        if n_items != len(self.known):
            raise InputError(f"The dataset has {n_items} items for {len(self.known)} rows; pass one item per row.")

    @classmethod
    def of(
        cls, dataset: Dataset[Any], device: str | torch.device = "cpu", *, workers: int = 0, verbose: bool = False
    ) -> Self:
        """Take a map-style dataset of (inputs, target), (inputs, target, right) or (inputs, target, right, given).

        Each is a tensor or a number; inputs may be a tuple. All but the inputs is read in one pass and kept: a penalty
        can then be prepared on all rows. ``device``: where batches go. ``workers``: processes that read ahead.
        ``verbose``: show a bar for the pass.
        """
        n, target_device = checked_length(dataset), chosen_device(device)
        if n < 2:
            raise InputError(f"Training needs at least 2 rows, got a dataset of {n}; pass more rows.")
        workers = whole(workers, "workers", minimum=0)
        others = _Part(dataset, slice(1, None))
        loader = DataLoader(others, _ROWS_READ_AT_ONCE, num_workers=workers, generator=torch.Generator())
        bar = tqdm(loader, total=-(-n // _ROWS_READ_AT_ONCE), disable=not verbose)
        try:
            target, *sides = (torch.cat(parts) for parts in zip(*map(list, bar), strict=True))
        except InputError:
            raise
        except (TypeError, RuntimeError) as error:
            due = "Beside its inputs, an item of the dataset must hold numbers of one shape"
            raise InputTypeError(f"{due}, got others ({error}); return tensors or numbers.") from error
        right, given = (*(_columns(part) for part in sides), None, None)[:2]
        # Whole numbers are classes; all else is one column per output.
        in_memory = TrainingRows((), _columns(target) if target.is_floating_point() else target, right, given)
        return cls(in_memory.to(target_device), _Part(dataset, 0), workers)

    def __len__(self) -> int:
        return len(self.known)

    device, inputs, target, weights, right, given = (
        property(attrgetter(f"known.{name}")) for name in ("device", "inputs", "target", "weights", "right", "given")
    )
    imagined = None

    def cut(self, places: Sequence[int]) -> TrainingRows:
        """Return some columns of the table's inputs, without the dataset."""
        return self.known.cut(places)

    def plan(self, batch_size: int, generator: torch.Generator, workers: Workers = ALONE) -> tuple[Tensor, ...]:
        """Draw the batches of an epoch: the positions of one's own rows of each."""
        return shuffled(len(self), batch_size, generator, workers)

    def batches(self, plan: Iterable[Tensor]) -> Iterator[tuple[Tensor, TrainingRows]]:
        """Go through the rows as planned: the positions of a batch, and its rows."""
        plan = list(plan)
        for index, read in zip(plan, read_batches(self.dataset, plan, self.workers), strict=True):
            batch = self.known.take(index)
            further = tuple(part.to(self.device, non_blocking=True) for part in read)
            yield index, replace(batch, inputs=(*batch.inputs, *further))

    def take(self, index: Tensor) -> Self:
        """Return some of the rows, still unread."""
        return replace(self, known=self.known.take(index), dataset=Subset(self.dataset, index.tolist()))

    def to(self, device: torch.device) -> Self:
        """Return the same rows with batches on another device."""
        return replace(self, known=self.known.to(device))

    def fingerprint(self) -> str:
        """A digest of what is in memory."""
        return self.known.fingerprint()


def checked_length(dataset: Any) -> int:
    """Return how many items a map-style dataset has."""
    if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
        kind = type(dataset).__name__
        raise InputTypeError(f"A dataset must have a length and items by position, got {kind}; pass a map-style one.")
    return len(dataset)


def read_batches(dataset: Dataset[Any], plan: Sequence[Tensor], workers: int = 0) -> Iterator[tuple[Tensor, ...]]:
    """Read the items at the planned positions, as one tuple of tensors per batch.

    Workers are seeded by the plan, so that each epoch has its own numbers and torch's own generator is left alone.
    """
    planned = b"".join(index.cpu().numpy().tobytes() for index in plan)
    seed = int.from_bytes(hashlib.blake2b(planned, digest_size=7).digest())
    loader = DataLoader(
        dataset,
        batch_sampler=[index.tolist() for index in plan],
        num_workers=workers,
        collate_fn=_as_inputs,
        pin_memory=torch.cuda.is_available(),
        generator=torch.Generator().manual_seed(seed),
    )
    yield from cast(Iterable[tuple[Tensor, ...]], loader)


def _as_inputs(items: list[Any]) -> tuple[Tensor, ...]:
    collated = default_collate(items)
    return tuple(collated) if isinstance(collated, tuple | list) else (collated,)


def _columns(values: Tensor) -> Tensor:  # (n,) or (n, d) -> (n, d)
    return values.reshape(len(values), -1).float()


@dataclass(frozen=True)
class _Part(Dataset[Any]):
    """Some of what each item of a dataset holds."""

    dataset: Dataset[Any]
    which: int | slice

    def __len__(self) -> int:
        return len(cast(Sized, self.dataset))

    def __getitem__(self, position: int) -> Any:
        item = self.dataset[position]
        if not isinstance(item, tuple | list) or not 2 <= len(item) <= 4:
            due = "(inputs, target), (inputs, target, right) or (inputs, target, right, given)"
            got = f"{type(item).__name__} at position {position}"
            raise InputTypeError(f"An item of the dataset must be {due}, got {got}; return such a tuple.")
        return item[self.which]


def shuffled(n: int, batch_size: int, generator: torch.Generator, workers: Workers) -> tuple[Tensor, ...]:
    """Cut n rows in a random order, which all workers share, into batches, and each into the workers' own parts."""
    order = torch.randperm(n, generator=generator)
    return tuple(workers.own(index) for index in order.tensor_split(batches_of(n, batch_size)))


def batches_of(n: int, batch_size: int) -> int:
    """How many batches of nearly equal size n rows make: one of a single row would have no pairs for the penalty."""
    return max(1, min(math.ceil(n / batch_size), n // 2))
