"""A user's structural equations as mechanisms.

Noise that enters an equation linearly is found by trying: if f(pa, u) = m(pa) + s(pa) · u with s ≠ 0, then u = (v −
m(pa)) / s(pa), and nobody has to write the inverse down. Two draws of the noise give m and s of a row; a further draw
checks that a third point lies on the same line. A function that is not linear in u fails that check with probability
one on each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.scm.kinds import Array, Categories, Kind, Vector
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.noise import Law, by_rejection, refuse_impossible, same

# An inverse must give the value back to this relative accuracy.
_ROUND_TRIP = 1e-6

# A third point lies on the line through two others to this accuracy, for so many probes of so many rows.
_TOLERANCE, _PROBES, _PROBE_ROWS = 1e-8, 8, 512


@dataclass(frozen=True)
class Additive:
    """The equation V = m(pa) + s U with its inverse U = (V − m(pa)) / s.

    ``mean``: m, a function of the parents by name; without it V = s U. ``scale``: s, not zero.

    >>> import numpy as np
    >>> from ciplearn.scm import Additive
    >>> equation = Additive(lambda parents: 2 * parents["A"])
    >>> equation.inverse({"A": np.array([1.0])}, np.array([5.0]))
    array([3.])
    """

    mean: Callable[[Parents], Any] | None = None
    scale: float = 1.0

    def __call__(self, parents: Parents, noise: Array) -> Array:
        """m(pa) + s u."""
        moved = self.scale * noise
        return moved if self.mean is None else np.asarray(self.mean(parents) + moved)

    def inverse(self, parents: Parents, value: Array) -> Array:
        """(V − m(pa)) / s."""
        return np.asarray((value if self.mean is None else value - self.mean(parents)) / self.scale)


@dataclass(frozen=True)
class EquationMechanism(Mechanism):
    """V = f(pa, U) as a user wrote it.

    Noise is read back from a value by the inverse if there is one; by solving for it where the equation turns out to be
    linear in the noise; by listing the atoms of a noise with finitely many; by rejection where the value is discrete.
    """

    node: str
    function: Callable[[Parents, Array], Any]  # (pa, u) -> value
    law: Law
    inverse: Callable[[Parents, Array], Any] | None  # (pa, value) -> u
    kind: Kind

    def draw(self, n: int, generator: Generator) -> Array:
        """Draw from the law."""
        return self.law.draw(n, generator)

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """f(pa, u), checked."""
        value = self._shaped(parents, noise)
        if lost := _not_finite(value):
            why = f"The equation of {self.node} returned NaN or infinity in {lost} of {len(value)} rows"
            raise InputError(f"{why}; make it finite for every value of its parents and its noise.")
        return value

    def _shaped(self, parents: Parents, noise: Array) -> Array:
        try:
            value = self.function(parents, noise)
        except KeyError as error:
            raise InputError(
                f"The equation of {self.node} asks for {error.args[0]!r}, which is not among its parents "
                f"({', '.join(parents) or 'none'}); draw the edge in the graph, or correct the name."
            ) from error
        n = noise.shape[0]
        if isinstance(self.kind, Categories):
            return self.kind.rows_of(value, n, self.node)
        array, shape = np.asarray(value), (n, *self.kind.shape)
        if not np.issubdtype(array.dtype, np.number) and array.dtype != bool:
            raise InputError(
                f"The equation of {self.node} returned {array.dtype} values; return numbers, or declare the node's "
                f"levels with kinds={{{self.node!r}: Categories([...])}}."
            )
        if array.ndim and array.shape != shape:
            why = f"The equation of {self.node} must return shape {shape} for {n} rows, but returned {array.shape}"
            raise InputError(f"{why}; write it for whole columns, or declare the node's size with Vector(size).")
        return np.asarray(array if array.ndim else np.full(shape, array), dtype=np.float64)

    def recover(self, parents: Parents, value: Array) -> Array | None:
        """The inverse, or the solution of a linear equation; None for anything else."""
        if self.inverse is None:
            if self.law.atoms is not None and len(self.law.atoms[0]) == 1:
                noise = np.repeat(self.law.atoms[0], value.shape[0])
                refuse_impossible(self.node, same(self.evaluate(parents, noise), value))
                return noise
            solved = linear_noise(self._shaped, self.law.draw, parents, value)
            return None if solved is None else solved[0]
        noise = np.asarray(self.inverse(parents, value))
        if noise.ndim == 0 or noise.shape[0] != value.shape[0]:
            raise InputError(
                f"The inverse of {self.node} must give {value.shape[0]} rows, but an array of shape {noise.shape} "
                "was received; return one noise per row."
            )
        if lost := _not_finite(noise):
            why = f"The inverse of {self.node} is not finite in {lost} of {len(noise)} rows"
            raise InputError(f"{why}; drop those rows, or sample with sample_units, which keeps the noise.")
        again = self.evaluate(parents, noise)
        labels = isinstance(self.kind, Categories)
        if not ((again == value).all() if labels else _close(again, value, _ROUND_TRIP)):
            raise InputError(
                f"The inverse of {self.node} does not fit its equation: the noise it returns does not give the "
                "observed values back; check both, and that these rows come from this model."
            )
        return noise

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Exact where the noise is determined, else a draw from all atoms that fit, or rejection."""
        noise = self.recover(parents, value)
        if noise is not None:
            return noise
        if self.law.atoms is None:
            return by_rejection(self, self.node, parents, value, generator)
        # P(u | f(pa, u) = v) ∝ P(u) 1[f(pa, u) = v]: one uniform number per row walks down the weights that fit.
        mass = np.cumsum(self._fitting(parents, value) * self.law.atoms[1][:, None], axis=0)
        refuse_impossible(self.node, mass[-1] > 0)
        chosen = (mass <= generator.uniform(size=value.shape[0]) * mass[-1]).sum(axis=0)
        return np.asarray(self.law.atoms[0][chosen])

    def log_density(self, parents: Parents, value: Array) -> Array | None:
        """Change of variables, log p_U(u) + log |du/dv|; the sum over the atoms that fit for a discrete noise."""
        if self.law.atoms is not None:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.law.atoms[1] @ self._fitting(parents, value)))
        log_jacobian: Array | float | None = None
        if self.inverse is not None:
            noise, log_jacobian = np.asarray(self.inverse(parents, value)), self._log_jacobian(parents, value)
        elif (solved := linear_noise(self._shaped, self.law.draw, parents, value)) is not None:
            noise, logs = solved[0], -np.log(np.abs(solved[1]))
            log_jacobian = logs.sum(axis=1) if logs.ndim == 2 else logs
        if log_jacobian is None or self.law.log_density is None:
            return None
        return self.law.log_density(noise) + log_jacobian

    def _fitting(self, parents: Parents, value: Array) -> Array:  # (atoms, n), boolean
        """Which atoms of the noise give the value."""
        assert self.law.atoms is not None
        n = value.shape[0]
        return np.stack([same(self.evaluate(parents, np.full(n, atom)), value) for atom in self.law.atoms[0]])

    def _log_jacobian(self, parents: Parents, value: Array) -> Array | float | None:
        """Return log |du/dv| of the inverse, by central differences."""
        if isinstance(self.function, Additive):
            return -self.kind.width * math.log(abs(self.function.scale))
        if isinstance(self.kind, Vector | Categories) or self.inverse is None:
            return None
        step = 1e-6 * np.maximum(1.0, np.abs(value))
        rise = np.asarray(self.inverse(parents, value + step)) - np.asarray(self.inverse(parents, value - step))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.abs(rise) / (2 * step))) if rise.shape == value.shape else None


def _not_finite(rows: Array) -> int:
    """How many rows hold NaN or infinity; labels hold neither."""
    is_numeric = np.issubdtype(rows.dtype, np.number)
    return int((~np.isfinite(rows)).any(axis=tuple(range(1, rows.ndim))).sum()) if is_numeric else 0


def linear_noise(
    function: Callable[[Parents, Array], Array], draw: Callable[[int, Generator], Array], parents: Parents, value: Array
) -> tuple[Array, Array] | None:
    """Return the noise u = (v − m) / s behind each value, and s, if the equation is linear in its noise; else None."""
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
        m = min(n, _PROBE_ROWS)
        few = {name: values[:m] for name, values in parents.items()}
        for _ in range(_PROBES):
            probe = draw(m, generator)
            if not _close(function(few, probe), level[:m] + slope[:m] * probe, _TOLERANCE):
                return None
        # A bend that no probe met would show here: the noise found must give the value back.
        again = function(parents, np.asarray((value - level) / slope))
        if not _close(again, value, _TOLERANCE):
            return None
        # Two draws that lie close together give the slope with a large rounding error; one step corrects the noise.
        return np.asarray((value - (level - (value - again))) / slope), slope


def _close(one: Array, other: Array, tolerance: float) -> bool:
    return one.shape == other.shape and np.allclose(one, other, rtol=tolerance, atol=tolerance)
