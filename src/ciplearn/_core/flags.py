"""Checks of settings that are on or off. Apart from the other checks because graphs are read without numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ciplearn._core.errors import InputTypeError


def flag(value: Any, name: str) -> bool:
    """Return ``value`` if it is on or off; an array says neither."""
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, int) and value in (0, 1)):
        raise InputTypeError(f"{name} must be True or False, got {value!r}; pass one of these.")
    return bool(value)


def check_flags(holder: Any, *names: str) -> None:
    """Refuse settings that are neither on nor off."""
    for name in names:
        flag(getattr(holder, name), name)
