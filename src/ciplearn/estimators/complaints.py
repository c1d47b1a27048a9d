"""What scikit-learn and torch refuse in several lines, in one sentence of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ciplearn._core.errors import CiplearnError, InputError, InputTypeError


@contextmanager
def one_sentence(what: str, advice: str) -> Iterator[None]:
    """Turn the errors of a check into ours: what is wrong, what the check said, what to do."""
    try:
        yield
    except CiplearnError:
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"{what}: {_without_numbers(str(error))}; {advice}.") from error


def _without_numbers(message: str) -> str:
    """A message in one line, without the array that some quote."""
    lines = (line for line in message.splitlines() if not line.startswith(("array=", "[", " ")))
    return " ".join(lines).strip().rstrip(".")
