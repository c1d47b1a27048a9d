"""The engine of processes that torchrun, or a loop of Ray Train, has started: each runs the same program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch.distributed as distributed

from ciplearn._core.engine import Engine, Item, Result
from ciplearn._core.workers import ProcessGroup, Workers


class TorchRun(Engine):
    """All processes of ``torch.distributed`` together.

    Every process makes the same calls. Each does its share of independent work and has the results of all.
    """

    def __init__(self) -> None:
        self._group = ProcessGroup()
        self.workers = self._group.size

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Do every so-manieth item, and gather; an error of one process is raised in all."""
        found: list[tuple[int, Any, Exception | None]] = []
        for place in range(self._group.rank, len(items), self._group.size):
            try:
                found.append((place, work(items[place]), None))
            except Exception as error:  # noqa: BLE001 - the others wait for an answer, whatever has happened
                found.append((place, None, error))
                break
        gathered: list[Any] = [None] * self._group.size
        distributed.all_gather_object(gathered, found)
        results = sorted((entry for part in gathered for entry in part), key=lambda entry: entry[0])
        for _, _, raised in results:
            if raised is not None:
                raise raised
        return (result for _, result, _ in results)

    def train(self, task: Callable[[Workers], Result]) -> Result:
        """Run it here, with the others."""
        return task(self._group)
