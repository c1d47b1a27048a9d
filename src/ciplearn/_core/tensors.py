"""Torch at the doorway: checks of tensors, torch's own generator, and Adam without torch's compiler.

Behind the doorway everything may assume a finite two-dimensional tensor, rows by columns. The library draws from
generators of its own; layers that draw numbers while they run, dropout for example, and layers that are made without a
generator know only torch's, which all threads of a process share.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ciplearn._core.errors import InputError, InputTypeError

# Families of torch's layers that draw nothing while they run, by the module that holds them.
_QUIET = {"activation", "batchnorm", "container", "conv", "flatten", "instancenorm", "linear", "normalization"}
_QUIET |= {"padding", "pooling", "sparse", "upsampling"}
_LOUD = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)

_one_at_a_time = threading.RLock()


def as_rows(value: Any, name: str, *, integers: bool = False, finite: bool = True) -> Tensor:
    """Return ``value`` as a finite tensor of shape (n, d); one dimension means one column.

    ``integers``: whether codes of categories are welcome. ``finite``: False where the caller takes `extremes` anyway.
    """
    tensor = _as_tensor(value, name)
    if tensor.dim() == 1:
        tensor = tensor.unsqueeze(1)
    if tensor.dim() != 2:
        why = f"{name} must have shape (rows,) or (rows, columns), got {tuple(tensor.shape)}"
        raise InputError(f"{why}; flatten what belongs to one row into columns.")
    if tensor.shape[1] == 0:
        raise InputError(f"{name} has no columns, got shape {tuple(tensor.shape)}; pass at least one column.")
    if tensor.is_complex():
        raise InputTypeError(f"{name} holds complex numbers, got {tensor.dtype}; pass real numbers.")
    if not tensor.is_floating_point():
        if not integers:
            raise InputTypeError(
                f"{name} must hold floating-point numbers, got {tensor.dtype}; convert it with .float(), "
                f"or use a Categorical kernel if its values are codes of categories."
            )
        return tensor
    if finite and tensor.numel():
        extremes(tensor, name)
    return tensor


def extremes(tensor: Tensor, name: str) -> tuple[float, float]:  # (n, d)
    """Return the smallest and the largest entry, or raise if any is NaN or infinite: the extremes inherit both."""
    low, high = (float(end) for end in torch.aminmax(tensor.detach()))
    if not (math.isfinite(low) and math.isfinite(high)):
        bad = int((~torch.isfinite(tensor.detach())).any(dim=1).sum())
        raise InputError(f"{name} holds NaN or infinity in {bad} of {tensor.shape[0]} rows; drop or impute those rows.")
    return low, high


def constant(tensor: Tensor, name: str) -> Tensor:
    """Refuse a tensor that waits for a gradient which the operator cannot give."""
    if tensor.requires_grad:
        why = f"{name} requires a gradient, but the penalty is differentiable in the prediction only"
        raise InputError(f"{why}; pass {name}.detach() if it is meant as a constant.")
    return tensor


def same_rows(first: Tensor, first_name: str, second: Tensor, second_name: str) -> None:
    """Refuse two tensors with different numbers of rows."""
    if first.shape[0] != second.shape[0]:
        raise InputError(
            f"{first_name} and {second_name} must have the same number of rows, got {first.shape[0]} and "
            f"{second.shape[0]}; pass the same rows, in the same order, to both."
        )


def same_device(first: torch.device, first_name: str, second: torch.device, second_name: str) -> None:
    """Refuse two tensors on different devices."""
    if first != second:
        raise InputError(f"{first_name} is on {first} but {second_name} is on {second}; move one with .to(...).")


def _as_tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_meta:
            kind = "without values" if value.is_meta else "that is sparse"
            raise InputTypeError(f"{name} must be a plain tensor, got one {kind}; pass {name}.to_dense() with values.")
        return value
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    try:
        array = np.asarray(value)
        # torch shares memory with an array, and must not share what it could not write.
        return torch.as_tensor(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError, RuntimeError) as error:
        why = f"{name} must be a tensor or an array of numbers, got {type(value).__name__}"
        raise InputTypeError(f"{why}; encode text columns as category codes first.") from error


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


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method that torch has wrapped, for its compiler's sake."""
    return getattr(method, "__wrapped__", method)


class Adam(torch.optim.Adam):
    """Adam, step by step the numbers of ``torch.optim.Adam``.

    An optimiser of torch's loads torch's compiler to tell it to look away: 70 MB and two seconds, for nothing.
    """

    add_param_group = _plain(torch.optim.Adam.add_param_group)
    zero_grad = _plain(torch.optim.Adam.zero_grad)
    state_dict = _plain(torch.optim.Adam.state_dict)
    load_state_dict = _plain(torch.optim.Adam.load_state_dict)

    def step(self, closure: Any = None) -> Any:
        """Take a step along the gradients."""
        with torch.no_grad():
            return _STEP(self, closure)


_STEP = _plain(torch.optim.Adam.step)  # looked up before torch wraps the class's own once more, for its profiler
