"""What the probability of the right class costs."""

from __future__ import annotations

import numpy as np

# A class that was held impossible costs this much: −log of it is 27.6.
_SMALLEST = 1e-12


def log_losses(probabilities: np.ndarray, places: np.ndarray) -> np.ndarray:  # (n, classes), (n,) -> (n,)
    """−log of the right class's probability; a place of −1 is a class that training has not seen."""
    right = np.where(places >= 0, probabilities[np.arange(len(places)), places], 0.0)
    return -np.log(np.maximum(right, _SMALLEST))
