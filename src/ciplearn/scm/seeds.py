"""Seeds at the doorway: a number or a generator in, a generator out."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputTypeError

RandomState = int | Generator | None


def as_generator(random_state: Any) -> Generator:
    """Return a generator: the one given, one seeded by a whole number, or a fresh one for None.

    Numpy's global state is neither read nor changed.
    """
    if isinstance(random_state, Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise InputTypeError(
        f"random_state must be a whole number of at least zero or a numpy Generator, got {random_state!r}; "
        "pass for example random_state=0."
    )
