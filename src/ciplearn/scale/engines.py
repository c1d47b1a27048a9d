"""The engine of a Ray cluster, which may be this machine: tasks for independent work, actors for a training.

What a worker had when it was lost is done again: a task as often as needed, a training from its last checkpoint.
"""

from __future__ import annotations

import io
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as distributed

from ciplearn._core.arguments import whole
from ciplearn._core.errors import CiplearnError, InputError, MissingDependencyError
from ciplearn._core.workers import Engine, Item, ProcessGroup, Result

# Results that wait for an earlier one, per worker: no worker is idle, and results do not pile up. How often a training
# is begun anew before it is given up: more than that is no accident.
_WAITING, _MOST_RESTARTS = 8, 20

# Seconds between two looks at what a training says; how long a worker waits for the others to come.
_LISTENING, _PATIENCE = 1.0, timedelta(minutes=10)


class RayEngine(Engine):
    """Workers of a Ray cluster.

    Parameters
    ----------
    workers : int
    address : str, optional
        A cluster that runs; by default the one that this program has started, or a new one on this machine.
    gpus : float
        Devices per worker of a training; 0 trains on CPUs.
    scratch : path, optional
        A folder that all nodes see: encoded rows and checkpoints are kept there while a job runs. On one machine the
        system's folder for such files does.
    meet : str, optional
        HOST:PORT at which the first worker of a training waits for the others. By default a port that is free: on one
        machine at 127.0.0.1, where nobody else's machine can reach it, on several at the address of the worker's node.

    Examples
    --------
    >>> from ciplearn.scale import RayEngine
    >>> engine = RayEngine(workers=2)  # doctest: +SKIP
    >>> model.fit("rows/*.parquet", engine=engine)  # doctest: +SKIP
    """

    def __init__(
        self,
        workers: int = 2,
        address: str | None = None,
        *,
        gpus: float = 0.0,
        scratch: str | os.PathLike[str] | None = None,
        meet: str | None = None,
    ) -> None:
        self.scratch = None if scratch is None else os.fspath(scratch)
        self.workers = whole(workers, "workers", minimum=1)
        self.address, self.gpus, self.meet = address, gpus, None
        if meet is not None:
            host, _, port = meet.rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
                raise InputError(f"meet must be an address and a port, got {meet!r}; pass for example 10.0.0.7:29500.")
            self.meet = host, int(port)
        self._ray = _started(self.workers, address)
        self._nodes()

    def _nodes(self) -> list[Any]:
        """The nodes that answer; an error where they are too few, or where the one of this program is gone."""
        nodes = [node for node in self._ray.nodes() if node["Alive"] and _answers(node)]
        if self._ray.get_runtime_context().get_node_id() not in [node["NodeID"] for node in nodes]:
            raise InputError("The Ray node of this program is gone, and its work with it; start Ray and the run again.")
        cpus, devices = (sum(node["Resources"].get(kind, 0) for node in nodes) for kind in ("CPU", "GPU"))
        if cpus < self.workers:
            why = f"{self.workers} workers were asked for, but the cluster has {cpus:g} CPUs"
            raise InputError(f"{why}; ask for fewer, or add nodes.")
        if devices < self.gpus * self.workers:
            why = f"{self.workers} workers with {self.gpus:g} GPUs each were asked for"
            have = f"but the cluster's nodes have {devices:g} in all"
            raise InputError(f"{why}, {have}; add nodes with a GPU, or train on CPUs.")
        return nodes

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Send items to tasks, a few ahead; results come in the order of the items."""
        task = self._ray.remote(num_cpus=1, max_retries=-1)(_alone_on_a_core)
        shared = self._ray.put(work)
        running: dict[Any, int] = {}
        done: dict[int, Any] = {}
        sent = 0
        for number in range(len(items)):
            while number not in done:
                # Results that wait for their turn are few: a slow item holds the others back.
                while sent < len(items) and len(running) < self.workers and len(done) < _WAITING * self.workers:
                    running[task.remote(shared, items[sent])] = sent
                    sent += 1
                (ready,), _ = self._ray.wait(list(running))
                done[running.pop(ready)] = self._fetched(ready)
            yield done.pop(number)

    def train(self, task: Callable[..., Result]) -> Result:
        """Run a task in as many actors as there are workers; when one is lost, all begin anew."""
        shared = self._ray.put(task)
        for _ in range(_MOST_RESTARTS):
            # Ray ends a program that asks for actors where no node is left.
            host = None if len(self._nodes()) > 1 else "127.0.0.1"
            # Two calls at a time: it is asked what it has said while it trains.
            actor = self._ray.remote(num_cpus=1, num_gpus=self.gpus, max_concurrency=2)(_Trainer)
            actors = [actor.remote() for _ in range(self.workers)]
            try:
                where = self._fetched(actors[0].open.remote(*(self.meet or (host, 0))))
                running = [
                    actor.run.remote(shared, rank, self.workers, where, self.gpus > 0)
                    for rank, actor in enumerate(actors)
                ]
                return self._first_of(running, actors[0])
            except (self._ray.exceptions.RayActorError, _OthersLost):
                continue
            finally:
                for actor in actors:
                    self._ray.kill(actor)
        raise InputError(f"The training lost a worker {_MOST_RESTARTS} times; look at the memory of the nodes first.")

    def _first_of(self, running: list[Any], first: Any) -> Any:
        """The first worker's result, after all have ended; a loss is noticed at once, whoever it is.

        What the first worker says on the way, its progress, is said here.
        """
        left = list(running)
        while left:
            done, left = self._ray.wait(left, timeout=_LISTENING)
            sys.stderr.write(self._fetched(first.said.remote()))
            sys.stderr.flush()
            for reference in done:
                self._fetched(reference)
        return self._fetched(running[0])

    def _fetched(self, reference: Any) -> Any:
        """The result; an error of ours as it was raised."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, CiplearnError):
                raise cause from None
            # torch.distributed says that another process is gone.
            signs = ("connection closed", "connection reset", "connection refused", "gloo", "nccl", "peer")
            if isinstance(cause, RuntimeError) and any(sign in str(cause).lower() for sign in signs):
                raise _OthersLost from error
            raise
        except self._ray.exceptions.RayActorError:
            raise
        except self._ray.exceptions.RayError as error:
            self._nodes()
            reason = str(error).strip().partition("\n")[0]
            raise InputError(f"Ray has lost a piece of work: {reason} Look at its nodes, then run it again.") from error


class _OthersLost(Exception):  # noqa: N818 - a state of the cluster, told to the engine
    """A worker cannot reach another one."""


class _Trainer:
    def __init__(self) -> None:
        self._said, self._heard = io.StringIO(), 0

    def said(self) -> str:
        """What it has written to standard error since it was asked last."""
        whole = self._said.getvalue()
        new, self._heard = whole[self._heard :], len(whole)
        return new

    def open(self, host: str | None, port: int) -> tuple[str, int]:
        """Listen where the first worker is met, and return where that is."""
        import ray

        host = host or ray.util.get_node_ip_address()
        try:
            # Kept open until the others have come: a port that is let go may be taken by somebody else.
            self._door = socket.create_server((host, port))
        except OSError as error:
            raise InputError(f"Workers cannot meet at {host}:{port}: {error.strerror}; pass another one.") from error
        return host, self._door.getsockname()[1]

    def run(self, task: Callable[..., Any], rank: int, size: int, where: tuple[str, int], on_device: bool) -> Any:
        """Meet the others and train; only the first one answers."""
        import torch
        import torch.distributed as distributed

        torch.set_num_threads(1)
        if where[0] == "127.0.0.1" and sys.platform == "linux":
            # What workers send each other stays on the machine too.
            os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = "lo"
        door = self._door.detach() if rank == 0 else None
        store = distributed.TCPStore(*where, size, rank == 0, _PATIENCE, master_listen_fd=door)
        backend = "nccl" if on_device else "gloo"
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)
        try:
            with redirect_stderr(self._said):
                result = task(workers=ProcessGroup())
            distributed.barrier()
        finally:
            distributed.destroy_process_group()
        return result if rank == 0 else None


def _answers(node: dict[str, Any]) -> bool:
    """Whether a node can be reached: Ray itself takes half a minute to notice that one is gone."""
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), timeout=10).close()
    except OSError:
        return False
    return True


def _alone_on_a_core(work: Callable[[Item], Result], item: Item) -> Result:
    import torch

    # Ray gives a task one core; more threads would fight for it.
    torch.set_num_threads(1)
    return work(item)


def _started(workers: int, address: str | None) -> Any:
    # Reports of use are never sent. Only this program may give work to a cluster that it starts, since Ray listens at
    # all addresses of the machine; Ray reads this when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None and "ray" not in sys.modules and os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError("Ray is not installed; pip install 'ciplearn[ray]'.") from error
    if ray.is_initialized():
        return ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"No Ray cluster answers at {address!r}; start Ray on its head node first.") from error
        return ray
    ray.init(num_cpus=max(workers, os.cpu_count() or 1), include_dashboard=False, **quiet)
    return ray


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
