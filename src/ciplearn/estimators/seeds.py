"""From a random state to a seed."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from ciplearn.estimators.complaints import one_sentence


def drawn_seed(random_state: Any) -> int:
    """Return the seed that a scikit-learn random state gives."""
    with one_sentence("random_state cannot be used", "pass None, a whole number from 0 to 2**32 - 1 or a RandomState"):
        return int(check_random_state(random_state).randint(2**31 - 1))
