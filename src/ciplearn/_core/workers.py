"""Where work is done: in this process, by workers elsewhere that may be lost, or by processes that train together.

The objective of processes that train one network together, each on its own rows of every batch, is that of the union of
their rows, and every worker knows its value. A worker differentiates it in its own rows only: in a total, its own part
counts one to one. Gradients of the weights are then added over the workers, which gives the gradient that one process
would have found on all rows.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed as distributed
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from ciplearn._core.errors import InputError
from ciplearn._core.files import scratch_folder

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
_LARGE = 1 << 20  # smaller pieces are used again at once: a batch is one


class Workers:
    """A single process: everything is its own.

    ``rank``, ``size``: the number of this worker, from 0, and how many there are.
    """

    rank, size = 0, 1

    def total(self, part: Tensor) -> Tensor:
        """Σ of all workers' parts, differentiable in one's own."""
        return part

    def gathered(self, part: Tensor) -> Tensor:  # (n, ...) -> (n of all, ...)
        """All workers' rows, one below the other, differentiable in one's own."""
        return part

    def counted(self, n: int) -> int:
        """Σ of all workers' numbers."""
        return n

    def span(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest of all workers' numbers."""
        return low, high

    def own(self, index: Tensor) -> Tensor:
        """One's own share of the rows of a batch that all workers know."""
        return index

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all workers."""

    def agreed(self, value: Any) -> Any:
        """The first worker's value."""
        return value


ALONE = Workers()


class ProcessGroup(Workers):
    """The processes of ``torch.distributed``, as torchrun, Ray Train or `ciplearn.scale` start them.

    Every process must come here: each of them waits for the others.
    """

    def __init__(self) -> None:
        if not (distributed.is_available() and distributed.is_initialized()):
            why = "There is no process group, got a process of its own"
            raise InputError(f"{why}; start with torchrun and call torch.distributed.init_process_group first.")
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        # What NCCL adds up lies on a device, be it a single number.
        on_device = distributed.get_backend() == "nccl"
        self.device = torch.device("cuda", torch.cuda.current_device()) if on_device else torch.device("cpu")

    def total(self, part: Tensor) -> Tensor:
        """Σ of all workers' parts, differentiable in one's own."""
        return _Total.apply(part)

    def gathered(self, part: Tensor) -> Tensor:
        """All workers' rows: each worker's in their place among zeros, added up."""
        sizes = torch.zeros(self.size, dtype=torch.int64, device=self.device)
        sizes[self.rank] = len(part)
        distributed.all_reduce(sizes)
        before, after = int(sizes[: self.rank].sum()), int(sizes[self.rank + 1 :].sum())
        zeros = part.new_zeros(1, *part.shape[1:])
        placed = torch.cat([zeros.expand(before, *zeros.shape[1:]), part, zeros.expand(after, *zeros.shape[1:])])
        return self.total(placed)

    def counted(self, n: int) -> int:
        """Σ of all workers' numbers."""
        number = torch.tensor(n, device=self.device)
        distributed.all_reduce(number)
        return int(number)

    def span(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest of all workers' numbers; NaN where one of them is."""
        ends = torch.tensor([-low, high], dtype=torch.float64, device=self.device)
        # The largest of several may not notice NaN.
        ends = torch.where(ends.isnan(), torch.full_like(ends, torch.inf), ends)
        distributed.all_reduce(ends, op=distributed.ReduceOp.MAX)
        return -float(ends[0]), float(ends[1])

    def own(self, index: Tensor) -> Tensor:
        """One's own share of the rows of a batch that all workers know."""
        return index.tensor_split(self.size)[self.rank]

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all workers, all at once."""
        trained = [weights for weights in parameters if weights.requires_grad]
        gradients = [torch.zeros_like(weights) if weights.grad is None else weights.grad for weights in trained]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        for weights, part in zip(trained, flat.split([weights.numel() for weights in trained]), strict=True):
            weights.grad = part.view_as(weights)

    def agreed(self, value: Any) -> Any:
        """The first worker's value."""
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]


class _Total(torch.autograd.Function):
    """Σ over workers; the gradient in one's own part is that in the total."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        total = part.detach().clone().contiguous()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        return upstream


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


def give_back_what_is_freed() -> None:
    """Have large pieces of memory go back to the system as soon as they are freed.

    C's allocator keeps them for later, and so does Arrow's: a process that reads a table piece by piece would hold a
    quarter more than it uses. Only for a process of one's own, such as a command; without glibc only Arrow's changes.
    """
    if "pyarrow" in sys.modules:
        import pyarrow

        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
    mallopt(_TRIM_THRESHOLD, _LARGE)


def give_back_what_is_free() -> None:
    """Have free memory between pieces that are in use go back to the system too: small pieces leave such gaps."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return


def on_one_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function that works on many small matrices.

    On several threads they are slower than on one: by half on idle cores, ten times on busy ones.
    """
    limited: Callable[Arguments, Result] = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return limited
