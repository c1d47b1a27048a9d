"""Noise that enters an equation linearly, found by trying.

If f(pa, u) = m(pa) + s(pa) · u with s ≠ 0, then u = (v − m(pa)) / s(pa), and nobody has to write the inverse down. Two
draws of the noise give m and s of a row; a further draw checks that a third point lies on the same line. A function
that is not linear in u fails that check with probability one on each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ciplearn.scm.kinds import Array
from ciplearn.scm.mechanism import Parents

_TOLERANCE = 1e-8
_PROBES = 8
_PROBE_ROWS = 512


@dataclass(frozen=True)
class Line:
    """m(pa) and s(pa), row by row."""

    level: Array
    slope: Array

    def noise(self, value: Array) -> Array:
        """(v − m) / s."""
        return np.asarray((value - self.level) / self.slope)

    def log_jacobian(self) -> Array:  # (n,)
        """Return log |du/dv| = −log |s|, summed over the entries of a vector."""
        total = -np.log(np.abs(self.slope))
        return total.sum(axis=1) if total.ndim == 2 else total


def find_line(
    function: Callable[[Parents, Array], Array],
    draw: Callable[[int, Generator], Array],
    parents: Parents,
    value: Array,
) -> Line | None:
    """Return m and s of each row if the equation is linear in its noise there, else None."""
    n = value.shape[0]
    # The probes decide nothing random about the answer, so their seed is fixed.
    generator = np.random.default_rng(0)
    first, second = draw(n, generator), draw(n, generator)
    if first.shape != value.shape or not np.issubdtype(first.dtype, np.number) or value.dtype == object:
        return None
    step = second - first
    if n == 0 or (step == 0).any():
        return None
    with np.errstate(all="ignore"):
        one, two = function(parents, first), function(parents, second)
        slope = (two - one) / step
        level = one - slope * first
        if not (np.isfinite(slope).all() and np.isfinite(level).all() and (slope != 0).all()):
            return None
        line = Line(level, slope)
        m = min(n, _PROBE_ROWS)
        few = {name: values[:m] for name, values in parents.items()}
        for _ in range(_PROBES):
            probe = draw(m, generator)
            if not _close(function(few, probe), level[:m] + slope[:m] * probe):
                return None
        # A bend that no probe met would show here: the noise found must give the value back.
        again = function(parents, line.noise(value))
        if not _close(again, value):
            return None
        # Two draws that lie close together give the slope with a large rounding error; one step corrects the noise.
        return Line(level - (value - again), slope)


def _close(one: Array, other: Array) -> bool:
    return one.shape == other.shape and np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE)
