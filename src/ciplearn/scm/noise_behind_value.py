"""Drawing noise that reproduces a value where several noises do."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Mechanism, Parents

# Draws in all before rows that are still unexplained are given up: a few rare rows get millions each.
_BUDGET = 100_000_000

# Draws per round, which bounds memory.
_ROUND = 1_000_000

# Noises whose images decide whether a value can be met by chance at all.
_ATOM_PROBES = 256


def by_atoms(
    mechanism: Mechanism,
    node: str,
    atoms: tuple[Array, Array],
    parents: Parents,
    value: Array,
    generator: Generator,
) -> Array:  # (n,)
    """Draw from P(u | f(pa, u) = v) ∝ P(u) 1[f(pa, u) = v] by listing every u: exact."""
    n = value.shape[0]
    levels, weights = atoms
    # One uniform number per row walks down the weights of the matching atoms, so memory stays at a few columns.
    matches = np.zeros((len(levels), n), dtype=bool)
    for i, level in enumerate(levels):
        matches[i] = same(mechanism.evaluate(parents, np.full(n, level)), value)
    mass = np.cumsum(matches * weights[:, None], axis=0)
    refuse_impossible(node, mass[-1] > 0)
    chosen = (mass <= generator.uniform(size=n) * mass[-1]).sum(axis=0)
    return np.asarray(levels[chosen])


def by_rejection(
    mechanism: Mechanism, node: str, parents: Parents, value: Array, generator: Generator
) -> Array:  # (n, ...)
    """Draw u from its law until f(pa, u) = v: exact draws, for values that have positive probability."""
    n = value.shape[0]
    _refuse_continuous(mechanism, node, parents, value, generator)
    noise = mechanism.draw(n, generator)
    open_rows = np.flatnonzero(~same(mechanism.evaluate(parents, noise), value))
    spent, width = n, 1
    while open_rows.size and spent < _BUDGET:
        # Most rows need a few draws; those that stay open get twice as many each round.
        width = max(1, min(2 * width, _ROUND // open_rows.size))
        rows = np.repeat(open_rows, width)
        trial = mechanism.draw(rows.size, generator)
        hit = same(mechanism.evaluate({name: values[rows] for name, values in parents.items()}, trial), value[rows])
        hit = hit.reshape(open_rows.size, width)
        met = hit.any(axis=1)
        first = np.arange(open_rows.size) * width + hit.argmax(axis=1)
        noise[open_rows[met]] = trial[first[met]]
        open_rows = open_rows[~met]
        spent += rows.size
    met = np.ones(n, dtype=bool)
    met[open_rows] = False
    refuse_impossible(node, met)
    return noise


def same(one: Array, other: Array) -> Array:  # (n,), boolean
    """Which rows hold the same value, up to rounding for numbers."""
    if one.dtype == object or other.dtype == object:
        return np.asarray(one == other, dtype=bool)
    close = np.asarray(np.isclose(one, other, rtol=1e-9, atol=1e-12))
    return np.asarray(close.all(axis=1)) if close.ndim == 2 else close


def is_discrete(mechanism: Mechanism, parents: Parents, n: int, generator: Generator) -> bool:
    """Whether two noises often give the same value at the first of n rows of parents."""
    if n == 0:
        return True
    first = {name: np.repeat(values[:1], _ATOM_PROBES, axis=0) for name, values in parents.items()}
    images = mechanism.evaluate(first, mechanism.draw(_ATOM_PROBES, generator))
    if images.dtype == object:
        return True
    return len(np.unique(images, axis=0)) < _ATOM_PROBES


def _refuse_continuous(mechanism: Mechanism, node: str, parents: Parents, value: Array, generator: Generator) -> None:
    if not is_discrete(mechanism, parents, value.shape[0], generator):
        raise InputError(
            f"The noise of {node} cannot be read back from its value: its equation has no inverse, is not linear in "
            f"the noise, and its values are continuous; pass inverses={{{node!r}: ...}}, or sample with sample_units, "
            "which keeps the noise."
        )


def refuse_impossible(node: str, met: Array) -> None:
    """Raise where some rows have no noise that explains them."""
    missing = int((~met).sum())
    if missing:
        raise InputError(
            f"No noise of {node} reproduces its observed value in {missing} of {met.size} rows (first: row "
            f"{int(np.flatnonzero(~met)[0])}); these rows are impossible, or too rare to be met by chance, "
            "under this model: check the equation and the rows."
        )
