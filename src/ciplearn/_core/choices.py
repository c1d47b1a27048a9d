"""Checks of words, lists and objects at the doorway."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from ciplearn._core.errors import InputError, InputTypeError

T = TypeVar("T")


def one_of(value: Any, name: str, known: Collection[str]) -> str:
    """Return ``value`` if it is one of a few words."""
    # An array is compared with each word by its entries: only text is looked for.
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}; pass one of these.")
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
        raise InputTypeError(f"{name} must be several values, got {value!r}; pass a list.")
    return values


def distinct(values: list[T], name: str) -> list[T]:
    """Return values if none of them occurs twice."""
    twice = [value for place, value in enumerate(values) if value in values[:place]]
    if twice:
        raise InputError(f"{name} must differ from each other, got {twice[0]!r} twice; name each once.")
    return values


def names_of(value: Any, name: str) -> list[str]:
    """Return one name or several as a list of text."""
    named = [value] if isinstance(value, str) else several(value, name)
    for each in named:
        if not isinstance(each, str):
            raise InputTypeError(f"{name} must be names, got {each!r}; pass a name or a list of names.")
    return named


def mapping_of(value: Any, name: str) -> dict[Any, Any]:
    """Return ``value`` as a dict if it maps names to something; None maps nothing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputTypeError(f"{name} must map names to values, got {value!r}; pass a dict.")
    return dict(value)


def of_kind(value: Any, kind: type[T], name: str, advice: str) -> T:
    """Return ``value`` if it is an object of a kind."""
    if not isinstance(value, kind):
        raise InputTypeError(f"{name} must be a {kind.__name__}, got {type(value).__name__}; {advice}.")
    return value


def flag(value: Any, name: str) -> bool:
    """Return ``value`` if it is on or off; an array says neither."""
    # Of numpy's too, which graphs are read without.
    is_bool = type(value).__name__ in ("bool", "bool_")
    if not is_bool and not (isinstance(value, int) and value in (0, 1)):
        raise InputTypeError(f"{name} must be True or False, got {value!r}; pass one of these.")
    return bool(value)


def check_flags(holder: Any, *names: str) -> None:
    """Refuse settings that are neither on nor off."""
    for name in names:
        flag(getattr(holder, name), name)
