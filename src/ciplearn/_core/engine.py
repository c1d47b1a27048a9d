"""Where work is done: in this process, or by workers elsewhere that may be lost and replaced."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ciplearn._core.files import scratch_folder
from ciplearn._core.workers import ALONE

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(ABC):
    """Does independent pieces of work, and trainings on several workers.

    ``workers``: how many pieces are worked on at a time. ``scratch``: A folder that all workers see, for what is kept
    while a job runs; None takes the system's.
    """

    workers: int
    scratch: str | None = None

    @abstractmethod
    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Return the result of each item, in the order of the items; what a lost worker had is done again."""

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield an empty folder that all workers see, and that is gone at the end."""
        with scratch_folder(Path(self.scratch or tempfile.gettempdir())) as place:
            yield place

    @abstractmethod
    def train(self, task: Callable[..., Result]) -> Result:
        """Run ``task(workers=...)`` on every worker at once and return what the first one returns.

        A task that is started again after a loss finds its own checkpoint.
        """


class OneProcess(Engine):
    """Everything here, one after the other."""

    workers = 1

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Go through the items."""
        return map(work, items)

    def train(self, task: Callable[..., Result]) -> Result:
        """Run it alone."""
        return task(workers=ALONE)
