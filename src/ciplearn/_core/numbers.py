"""Checks of plain numbers at the doorway."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from numbers import Integral, Real
from typing import Any, TypeVar

from ciplearn._core.errors import InputError, InputTypeError

T = TypeVar("T")

# More processes than any machine runs at once; each is started before the first task.
_MOST_PROCESSES = 1024


def positive(value: Any, name: str, maximum: float = math.inf) -> float:
    """Return ``value`` as a float if it is a finite number above zero and at most ``maximum``."""
    number = finite(value, name)
    if not number > 0:
        raise InputError(f"{name} must be above zero, got {value!r}; pass a positive number.")
    return _at_most(number, name, maximum)


def non_negative(value: Any, name: str, maximum: float = math.inf) -> float:
    """Return ``value`` as a float if it is a finite number of at least zero and at most ``maximum``."""
    number = finite(value, name)
    if number < 0:
        raise InputError(f"{name} must not be negative, got {value!r}; pass zero or a positive number.")
    return _at_most(number, name, maximum)


def share(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a number between zero and one."""
    number = finite(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must lie between 0 and 1, got {value!r}; pass a share, such as 0.3.")
    return number


def whole(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``minimum`` and at most ``maximum``."""
    if _is_no_number(value) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be a whole number, got {value!r}; pass an int of at least {minimum}.")
    if value < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {value!r}; pass a larger number.")
    if maximum is not None and int(value) > maximum:
        raise InputError(f"{name} must be at most {maximum}, got {value!r}; pass a smaller number.")
    return int(value)


def first(found: Iterable[T], limit: int | None) -> Iterator[T]:
    """Return the first ``limit`` of what is found, lazily; all of it for None."""
    return islice(found, None if limit is None else whole(limit, "limit", minimum=0, maximum=sys.maxsize))


def processes(n_jobs: int | None) -> int:
    """Return how many processes joblib makes of ``n_jobs``: one of None, one per core of -1."""
    from joblib import effective_n_jobs

    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise InputError(f"n_jobs must be a whole number other than 0, got {n_jobs!r}; pass -1 for all cores.")
    if n_jobs is not None and n_jobs > _MOST_PROCESSES:
        raise InputError(f"n_jobs must be at most {_MOST_PROCESSES}, got {n_jobs!r}; pass -1 for all cores.")
    return int(effective_n_jobs(n_jobs))


def finite(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a finite number."""
    if _is_no_number(value) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}; pass a float.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, got {value!r}; pass an ordinary number.")
    return number


def _is_no_number(value: Any) -> bool:
    # Both are whole numbers by their type alone; a length of time is told by its name, so that numpy need not load.
    return isinstance(value, bool) or type(value).__name__ == "timedelta64"


def _at_most(number: float, name: str, maximum: float) -> float:
    if number > maximum:
        raise InputError(f"{name} must be at most {maximum:g}, got {number:g}; pass a smaller number.")
    return number
