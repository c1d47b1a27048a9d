"""The engine of processes that torchrun, or a loop of Ray Train, has started: each runs the same program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.distributed as distributed

from ciplearn._core.workers import Engine, Item, ProcessGroup, Result


class TorchRun(Engine):
    """All processes of ``torch.distributed`` together.

    Every process makes the same calls. Each does its share of independent work and has the results of all.

    Parameters
    ----------
    scratch : path, optional
        A folder that all processes see: encoded rows and checkpoints are kept there while a job runs.

    Examples
    --------
    >>> from ciplearn.scale import TorchRun
    >>> torch.distributed.init_process_group("gloo")  # doctest: +SKIP
    >>> model.fit("rows/*.parquet", engine=TorchRun())  # doctest: +SKIP
    """

    def __init__(self, scratch: str | os.PathLike[str] | None = None) -> None:
        self._group = ProcessGroup()
        self.workers = self._group.size
        self.scratch = None if scratch is None else os.fspath(scratch)

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Do every n-th item, with n processes, and gather; an error of one process is raised in all."""
        done: list[tuple[int, Any, Exception | None]] = []
        for number in range(self._group.rank, len(items), self._group.size):
            try:
                done.append((number, work(items[number]), None))
            except Exception as error:  # noqa: BLE001 - the others wait for an answer, whatever has happened
                done.append((number, None, error))
                break
        gathered: list[Any] = [None] * self._group.size
        distributed.all_gather_object(gathered, done)
        results = sorted((entry for part in gathered for entry in part), key=lambda entry: entry[0])
        for _, _, raised in results:
            if raised is not None:
                raise raised
        return (result for _, result, _ in results)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield the first process's folder, which all must see."""
        if self._group.rank == 0:
            with super().folder() as folder:
                yield Path(self._group.agreed(str(folder)))
                # Others may still read.
                distributed.barrier()
        else:
            yield Path(self._group.agreed(None))
            distributed.barrier()

    def train(self, task: Callable[..., Result]) -> Result:
        """Run it here, with the others."""
        return task(workers=self._group)
