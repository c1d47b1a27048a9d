"""Training rows in files, for tables beyond memory: read in blocks, shuffled within windows of many blocks.

A file holds encoded rows as they are: per row its inputs, target, the variables of the independence and its inputs in
other worlds, in single precision, one row after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.errors import InputError
from ciplearn._core.files import whole_file
from ciplearn._core.workers import ALONE, Workers
from ciplearn.learning.rows import DatasetRows, TrainingRows, batches_of

_BLOCK = 1024  # rows that are read in one go, from a place that is drawn
_WINDOW = 64  # blocks that are shuffled together


@dataclass(frozen=True)
class RowLayout:
    """How a row stands in a file."""

    inputs: int  # numbers of each; of right and given 0 where there are none
    outputs: int | None  # columns of the target; None for a target of one dimension
    classes: bool  # whether the target holds classes
    right: int = 0
    given: int = 0
    worlds: int = 0  # how often the inputs are imagined

    @classmethod
    def of(cls, rows: TrainingRows) -> Self:
        """Read it off some rows."""
        further = [0 if part is None else part.shape[1] for part in (rows.right, rows.given, rows.imagined)]
        outputs = None if rows.target.dim() == 1 else rows.target.shape[1]
        return cls(rows.inputs[0].shape[1], outputs, not rows.target.is_floating_point(), *further)

    @property
    def widths(self) -> tuple[int, int, int, int, int]:
        """Numbers of inputs, target, right, given and imagined inputs."""
        return self.inputs, self.outputs or 1, self.right, self.given, self.worlds * self.inputs

    def packed(self, rows: TrainingRows) -> Tensor:  # (n, width)
        """Put a row's numbers beside each other."""
        others = [part for part in (rows.target, rows.right, rows.given, rows.imagined) if part is not None]
        parts = [rows.inputs[0], *(part.reshape(len(rows), -1) for part in others)]
        return torch.cat([part.float() for part in parts], dim=1)

    def unpacked(self, numbers: Tensor) -> TrainingRows:  # (n, width)
        """Take them apart again."""
        inputs, target, right, given, imagined = numbers.split(self.widths, dim=1)
        target = target[:, 0] if self.outputs is None else target
        return TrainingRows(
            (inputs,),
            target.round().long() if self.classes else target,
            right if self.right else None,
            given if self.given else None,
            imagined=imagined.unflatten(1, (self.worlds, self.inputs)) if self.worlds else None,
        )


@dataclass(frozen=True)
class StoredPart:
    """Encoded rows in a file."""

    path: str
    n_rows: int
    start: int  # the number of the first among all rows
    layout: RowLayout

    def read(self, first: int, count: int) -> Tensor:  # (count, width)
        """Read some rows."""
        size = sum(self.layout.widths)
        numbers = np.fromfile(self.path, dtype="<f4", count=count * size, offset=first * size * 4)
        if len(numbers) != count * size:
            raise InputError(f"{self.path} ends too early; it was cut short, prepare the rows anew.")
        return torch.from_numpy(numbers.reshape(count, size))

    def pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Right-hand side and conditioning variables, block by block: what a penalty is prepared on."""
        for first in range(0, self.n_rows, _BLOCK):
            rows = self.layout.unpacked(self.read(first, min(_BLOCK, self.n_rows - first)))
            if rows.right is None:
                raise InputError("Rows without a right-hand side have no penalty; name protected columns.")
            yield rows.right, rows.right.new_zeros(len(rows), 0) if rows.given is None else rows.given


def store(path: Path, pieces: Iterator[TrainingRows], layout: RowLayout) -> int:
    """Write rows into a file that appears whole; return how many."""
    n_rows = 0
    with whole_file(path) as stream:
        for rows in pieces:
            stream.write(layout.packed(rows).numpy().astype("<f4", copy=False).tobytes())
            n_rows += len(rows)
    return n_rows


@dataclass(frozen=True)
class StreamedRows:
    """Rows that are read from files while training goes on.

    ``sample`` holds some of the rows, drawn from all files, for what a network reads off its rows before it is trained;
    ``places`` are the only inputs that are read, None reads all.

    >>> from ciplearn.learning import StreamedRows
    >>> from ciplearn.learning.streamed_rows import RowLayout, StoredPart
    >>> layout = RowLayout(inputs=2, outputs=1, classes=False)
    >>> len(StreamedRows((StoredPart("0.rows", 5, 0, layout), StoredPart("1.rows", 3, 5, layout)), layout))
    8
    """

    parts: tuple[StoredPart, ...]
    layout: RowLayout
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))  # where batches go
    sample: TrainingRows | None = None
    places: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return sum(part.n_rows for part in self.parts)

    # Those of the sample.
    inputs = property(lambda self: self._first_rows().inputs)
    target = property(lambda self: self._first_rows().target)
    right = given = weights = imagined = None

    def plan(self, batch_size: int, generator: torch.Generator, workers: Workers = ALONE) -> StreamPlan:
        """Draw an epoch: each worker goes through its own blocks, in an order of its own."""
        seed = int(torch.randint(2**62, (), generator=generator))
        # Smaller where rows are few, so that every worker has some.
        size = max(1, min(_BLOCK, len(self) // (8 * workers.size)))
        blocks = [
            (number, first, min(size, part.n_rows - first))
            for number, part in enumerate(self.parts)
            for first in range(0, part.n_rows, size)
        ]
        # As many steps for all workers, whatever share of the rows they have.
        steps = batches_of(len(self), batch_size)
        return StreamPlan(tuple(blocks[workers.rank :: workers.size]), steps, seed + workers.rank)

    def batches(self, plan: StreamPlan) -> Iterator[tuple[Tensor, TrainingRows]]:
        """Go through one's own rows: windows of blocks are read, shuffled, and cut into as many batches as planned."""
        generator = torch.Generator().manual_seed(plan.seed)
        order = torch.randperm(len(plan.blocks), generator=generator).tolist()
        n_rows = sum(count for _, _, count in plan.blocks)
        start, waiting = 0, torch.empty(0, sum(self.layout.widths))
        for step in range(plan.steps):
            end = n_rows * (step + 1) // plan.steps
            while len(waiting) < end - start:
                window, order = order[:_WINDOW], order[_WINDOW:]
                waiting = self._shuffled(waiting, [plan.blocks[number] for number in window], generator)
            batch, waiting = waiting[: end - start], waiting[end - start :]
            yield torch.arange(start, end), self._unpacked(batch.to(self.device))
            start = end

    def take(self, index: Tensor) -> Self:
        """Rows that stream have no positions."""
        raise InputError("Rows that stream cannot be taken by position; hold them in memory.")

    def cut(self, places: Sequence[int]) -> Self:
        """Return rows with some of the inputs' columns alone."""
        return replace(self, places=tuple(places))

    def to(self, device: torch.device) -> Self:
        """Return the same rows with batches on another device."""
        return replace(self, device=device)

    def fingerprint(self) -> str:
        """A digest of the layout and of the first rows of each file."""
        digest = hashlib.sha256(f"{self.layout} {self.places}".encode())
        for part in self.parts:
            digest.update(f" {part.n_rows}".encode())
            digest.update(part.read(0, min(part.n_rows, 16)).numpy().tobytes())
        return digest.hexdigest()

    def _shuffled(
        self, waiting: Tensor, blocks: Sequence[tuple[int, int, int]], generator: torch.Generator
    ) -> Tensor:  # (n, width), m further rows -> (n + m, width)
        """Rows that wait and those of some blocks in a random order: each goes to its place as it is read."""
        n = len(waiting) + sum(count for _, _, count in blocks)
        order = torch.randperm(n, generator=generator)
        places = torch.empty_like(order)
        places[order] = torch.arange(n)
        shuffled = torch.empty(n, sum(self.layout.widths))
        shuffled[places[: len(waiting)]] = waiting
        start = len(waiting)
        for number, first, count in blocks:
            shuffled[places[start : start + count]] = self.parts[number].read(first, count)
            start += count
        return shuffled

    def _first_rows(self) -> TrainingRows:
        """The sample; without one, the first rows, which tell how wide they are."""
        if self.sample is not None:
            rows = self.sample.to(self.device)
            return rows if self.places is None else rows.cut(self.places)
        part = next(part for part in self.parts if part.n_rows)
        return self._unpacked(part.read(0, min(part.n_rows, 16)).to(self.device))

    def _unpacked(self, numbers: Tensor) -> TrainingRows:  # (n, width)
        rows = self.layout.unpacked(numbers)
        return rows if self.places is None else rows.cut(self.places)


@dataclass(frozen=True)
class StreamPlan:
    """An epoch of one worker."""

    blocks: tuple[tuple[int, int, int], ...]
    steps: int  # batches to cut them into
    seed: int  # of the order

    def __len__(self) -> int:
        return self.steps


Rows = TrainingRows | DatasetRows | StreamedRows
