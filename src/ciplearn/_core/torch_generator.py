"""Torch's own generator, which all threads of a process share: who draws from it, and how to seed it and put it back.

The library draws from generators of its own. Layers that draw numbers while they run, dropout for example, and layers
that are made without a generator know only torch's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

# Families of torch's layers that draw nothing while they run, by the module that holds them.
_QUIET = {"activation", "batchnorm", "container", "conv", "flatten", "instancenorm", "linear", "normalization"}
_QUIET |= {"padding", "pooling", "sparse", "upsampling"}
_LOUD = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)

_one_at_a_time = threading.RLock()


@contextmanager
def torch_seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's own generator, and that of a CUDA device, and put them back afterwards.

    One thread at a time: two that seed it in turns would draw each other's numbers. Code of other people that draws
    from it at the same time in another thread is still disturbed, and disturbs.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with _one_at_a_time, torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def may_draw(module: nn.Module) -> bool:
    """Whether a network may draw from torch's own generator while it runs: not, if all its parts are known not to.

    A class of one's own says so by ``draws_from_torch = False``; its parts are asked as well.
    """
    return not all(_is_quiet(part) for part in module.modules())


def _is_quiet(part: nn.Module) -> bool:
    kind = type(part)
    if hasattr(kind, "draws_from_torch"):
        return not kind.draws_from_torch
    package, _, family = kind.__module__.rpartition(".")
    quiet = package == "torch.nn.modules" and family in _QUIET and not isinstance(part, _LOUD)
    return quiet and not getattr(part, "dropout", 0.0)  # attention has a share of its own
