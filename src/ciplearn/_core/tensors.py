"""Checks of tensors at the doorway: shape, kind, finiteness, device.

Everything behind the doorway may assume a finite two-dimensional tensor, rows by columns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ciplearn._core.errors import InputError, InputTypeError


def as_rows(value: Any, name: str, *, integers: bool = False, finite: bool = True) -> Tensor:
    """Return ``value`` as a finite tensor of shape (n, d); one dimension means one column.

    ``integers``: whether codes of categories are welcome. ``finite``: False where the caller takes `extremes` anyway.
    """
    tensor = _as_tensor(value, name)
    if tensor.dim() == 1:
        tensor = tensor.unsqueeze(1)
    if tensor.dim() != 2:
        raise InputError(
            f"{name} must have shape (rows,) or (rows, columns), got {tuple(tensor.shape)}; "
            f"flatten what belongs to one row into columns."
        )
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
        raise InputError(
            f"{name} holds NaN or infinity in {bad} of {tensor.shape[0]} rows; drop or impute those rows first."
        )
    return low, high


def constant(tensor: Tensor, name: str) -> Tensor:
    """Refuse a tensor that waits for a gradient which the operator cannot give."""
    if tensor.requires_grad:
        raise InputError(
            f"{name} requires a gradient, but the penalty is differentiable in the prediction only; "
            f"pass {name}.detach() if it is meant as a constant."
        )
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
        raise InputError(
            f"{first_name} is on {first} but {second_name} is on {second}; move one of them with .to(...)."
        )


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
        raise InputTypeError(
            f"{name} must be a tensor or an array of numbers, got {type(value).__name__}; "
            f"encode text columns as category codes first."
        ) from error
