"""Names, numbers and the errors of others as they stand in sentences."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ciplearn._core.errors import CiplearnError, InputError, InputTypeError

_LONG = 1e15  # from here on a number is no longer written out


def as_set(names: Iterable[str]) -> str:
    """Write names as a set: ``{A, L}``, and ``∅`` for none."""
    inside = ", ".join(names)
    return f"{{{inside}}}" if inside else "∅"


def as_list(names: Iterable[str], most: int | None = None) -> str:
    """Write names as a list: ``nothing``, ``A``, ``A and L``, ``A, L and S``; beyond `most`, the others by number."""
    every = list(names)
    if most is not None and len(every) > most + 1:
        every = [*every[:most], f"{len(every) - most} more"]
    *first, last = every or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last


def written(value: Any, digits: int = 4) -> str:
    """Write a value; of a number that is not whole so many digits, and of a large one all before the point."""
    if isinstance(value, numbers.Integral) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        return str(value)
    number = float(value)
    in_full = number == round(number) or abs(number) >= 10**digits
    return f"{number:.0f}" if in_full and abs(number) < _LONG else f"{number:.{digits}g}"


def told_apart(values: Sequence[Any], write: Callable[[Any, int], str] = written) -> list[str]:
    """Write values with as few digits as tell them apart."""
    for digits in range(4, 18):
        words = [write(value, digits) for value in values]
        if len(set(words)) == len(words):
            break
    return words


def shortened(names: Sequence[Any]) -> str:
    """Write the first dozen of some names."""
    return ", ".join(map(str, names[:12])) + (", ..." if len(names) > 12 else "")


@contextmanager
def in_one_sentence(what: str, advice: str) -> Iterator[None]:
    """Turn what scikit-learn and torch refuse in several lines into "what is wrong: their words; what to do"."""
    try:
        yield
    except CiplearnError:
        raise
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        # Some quote the array in lines of their own.
        lines = (line for line in str(error).splitlines() if not line.startswith(("array=", "[", " ")))
        raise kind(f"{what}: {' '.join(lines).strip().rstrip('.')}; {advice}.") from error
