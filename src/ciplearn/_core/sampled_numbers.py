"""Row numbers drawn at random, the same however the rows are cut: those with the smallest keys."""

from __future__ import annotations

import numpy as np

# Numbers whose keys are looked at together.
_BLOCK = 1 << 18


def keys(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Scramble whole numbers of 64 bits, no two into the same one: the finaliser of SplitMix64 [steele2014]."""
    scrambled = numbers + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    scrambled = (scrambled ^ (scrambled >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    scrambled = (scrambled ^ (scrambled >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return scrambled ^ (scrambled >> np.uint64(31))


def sampled_numbers(n: int, size: int, seed: int = 0) -> np.ndarray:
    """Return some of the numbers 0, ..., n − 1, in the order in which they are drawn."""
    best = np.empty(0, dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        numbers = np.concatenate([best, np.arange(start, min(start + _BLOCK, n), dtype=np.uint64)])
        own = keys(numbers, seed)
        if len(numbers) > size:
            numbers = numbers[np.argpartition(own, size)[:size]] if size else numbers[:0]
        best = numbers
    return best[np.argsort(keys(best, seed))].astype(np.int64)
