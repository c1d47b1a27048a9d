"""Checks of plain numbers at the doorway."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from ciplearn._core.errors import InputError, InputTypeError


def positive(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a finite number above zero."""
    number = _real(value, name)
    if not number > 0:
        raise InputError(f"{name} must be above zero, got {value!r}; pass a positive number.")
    return number


def non_negative(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a finite number of at least zero."""
    number = _real(value, name)
    if number < 0:
        raise InputError(f"{name} must not be negative, got {value!r}; pass zero or a positive number.")
    return number


def finite(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a finite number."""
    return _real(value, name)


def share(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a number between zero and one."""
    number = _real(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must lie between 0 and 1, got {value!r}; pass a share, such as 0.3.")
    return number


def whole(value: Any, name: str, minimum: int) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be a whole number, got {value!r}; pass an int of at least {minimum}.")
    if value < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {value!r}; pass a larger number.")
    return int(value)


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}; pass a float.")
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, got {value!r}; pass an ordinary number.")
    return number
