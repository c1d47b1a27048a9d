"""Random states at the doorway: what people pass as ``random_state``, as a generator or as a seed of one's own."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ciplearn._core.errors import InputTypeError

RandomState = int | np.random.Generator | np.random.RandomState | None

_MOST = 2**31 - 1


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator as it is, or a new one seeded by a whole number, a draw from a RandomState, or fresh entropy.

    Numpy's global state is neither read nor changed.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(_seed_or_none(random_state))


def as_seed(random_state: Any) -> int:
    """Return a whole number below 2**31, for generators that numpy does not make: drawn as `as_generator` has it."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MOST))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_MOST))
    seed = _seed_or_none(random_state)
    if seed is None or seed >= 2**32:
        return int(np.random.default_rng(seed).integers(_MOST))
    # What scikit-learn's check_random_state would have drawn.
    return int(np.random.RandomState(seed).randint(_MOST))


def _seed_or_none(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, bool) or not isinstance(random_state, Integral) or random_state < 0:
        raise InputTypeError(
            f"random_state must be None, a whole number of at least zero, a numpy Generator or a RandomState, "
            f"got {random_state!r}; pass for example random_state=0."
        )
    return int(random_state)
