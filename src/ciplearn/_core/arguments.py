"""Checks of arguments at the doorway: words, lists, objects and plain numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from numbers import Integral, Real
from typing import Any, TypeVar

from ciplearn._core.errors import InputError, InputTypeError

T = TypeVar("T")
_LONGEST = 200  # characters of what was received, in a sentence
_MOST_PROCESSES = 1024  # more processes than any machine runs at once; each is started before the first task


def got(value: Any) -> str:
    """Say what was received; of what is long, such as a number of hundreds of digits, only how it begins."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4300 digits
        text = f"{type(value).__name__} of more digits than can be written"
    return f"got {text}" if len(text) <= _LONGEST else f"got {text[:20]}... ({len(text)} characters)"


def one_of(value: Any, name: str, known: Collection[str]) -> str:
    """Return ``value`` if it is one of a few words."""
    # An array is compared with each word by its entries: only text is looked for.
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, {got(value)}; pass one of these.")
    return str(value)


def entries(value: Any) -> list[Any] | None:
    """Return what ``value`` holds, or None where it holds nothing."""
    # Tried, not asked: an array of a single number says that it can be gone through, and cannot.
    try:
        return list(value)
    except TypeError:
        return None


def several(value: Any, name: str) -> list[Any]:
    """Return ``value`` as a list if it holds several values; text is one."""
    values = None if isinstance(value, str | bytes) else entries(value)
    if values is None:
        raise InputTypeError(f"{name} must be several values, {got(value)}; pass a list.")
    return values


def distinct(values: list[T], name: str) -> list[T]:
    """Return values if none of them occurs twice."""
    twice = [value for number, value in enumerate(values) if value in values[:number]]
    if twice:
        raise InputError(f"{name} must differ from each other, {got(twice[0])} twice; name each once.")
    return values


def names_of(value: Any, name: str) -> list[str]:
    """Return one name or several as a list of text."""
    named = [value] if isinstance(value, str) else several(value, name)
    for each in named:
        if not isinstance(each, str):
            raise InputTypeError(f"{name} must be names, {got(each)}; pass a name or a list of names.")
    return named


def mapping_of(value: Any, name: str) -> dict[Any, Any]:
    """Return ``value`` as a dict if it maps names to something; None maps nothing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputTypeError(f"{name} must map names to values, {got(value)}; pass a dict.")
    return dict(value)


def of_kind(value: Any, kind: type[T], name: str, advice: str) -> T:
    """Return ``value`` if it is an object of a kind."""
    if not isinstance(value, kind):
        raise InputTypeError(f"{name} must be a {kind.__name__}, got {type(value).__name__}; {advice}.")
    return value


def flag(value: Any, name: str) -> bool:
    """Return ``value`` if it is on or off; an array says neither."""
    # Of numpy's too, which graphs are read without.
    if type(value).__name__ not in ("bool", "bool_") and not (isinstance(value, int) and value in (0, 1)):
        raise InputTypeError(f"{name} must be True or False, {got(value)}; pass one of these.")
    return bool(value)


def check_flags(holder: Any, *names: str) -> None:
    """Refuse settings that are neither on nor off."""
    for name in names:
        flag(getattr(holder, name), name)


def positive(value: Any, name: str, maximum: float = math.inf) -> float:
    """Return ``value`` as a float if it is a finite number above zero and at most ``maximum``."""
    number = finite(value, name)
    if not number > 0:
        raise InputError(f"{name} must be above zero, {got(value)}; pass a positive number.")
    return _at_most(number, name, maximum)


def non_negative(value: Any, name: str, maximum: float = math.inf) -> float:
    """Return ``value`` as a float if it is a finite number of at least zero and at most ``maximum``."""
    number = finite(value, name)
    if number < 0:
        raise InputError(f"{name} must not be negative, {got(value)}; pass zero or a positive number.")
    return _at_most(number, name, maximum)


def share(value: Any, name: str) -> float:
    """Return ``value`` as a float if it is a number between zero and one."""
    number = finite(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must lie between 0 and 1, {got(value)}; pass a share, such as 0.3.")
    return number


def whole(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``minimum`` and at most ``maximum``."""
    if _is_no_number(value) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be a whole number, {got(value)}; pass an int of at least {minimum}.")
    if value < minimum:
        raise InputError(f"{name} must be at least {minimum}, {got(value)}; pass a larger number.")
    if maximum is not None and int(value) > maximum:
        raise InputError(f"{name} must be at most {maximum}, {got(value)}; pass a smaller number.")
    return int(value)


def first(items: Iterable[T], limit: int | None) -> Iterator[T]:
    """Return the first ``limit`` items, lazily; all of them for None."""
    return islice(items, None if limit is None else whole(limit, "limit", minimum=0, maximum=sys.maxsize))


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
        raise InputTypeError(f"{name} must be a number, {got(value)} of type {type(value).__name__}; pass a float.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, {got(value)}; pass an ordinary number.")
    return number


def is_number(value: Any) -> bool:
    """Whether a value out of JSON is a number that one can calculate with: no flag, not infinite, not of 400 digits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_no_number(value: Any) -> bool:
    # Both are whole numbers by their type alone; a length of time is told by its name, so that numpy need not load.
    return isinstance(value, bool) or type(value).__name__ == "timedelta64"


def _at_most(number: float, name: str, maximum: float) -> float:
    if number > maximum:
        raise InputError(f"{name} must be at most {maximum:g}, got {number:g}; pass a smaller number.")
    return number
