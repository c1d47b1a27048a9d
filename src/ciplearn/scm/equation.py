"""A user's structural equation as a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.scm.affine import find_line
from ciplearn.scm.kinds import Array, Categories, Kind, Vector
from ciplearn.scm.laws import Law
from ciplearn.scm.matching import by_atoms, by_rejection, refuse_impossible, same
from ciplearn.scm.mechanism import Mechanism, Parents

# An inverse must give the value back to this relative accuracy.
_ROUND_TRIP = 1e-6


@dataclass(frozen=True)
class Additive:
    """The equation V = m(pa) + U, whose inverse is known: U = V − m(pa).

    Parameters
    ----------
    mean : callable, optional
        m, a function of the parents by name; without it V = U.
    """

    mean: Callable[[Parents], Any] | None = None

    def __call__(self, parents: Parents, noise: Array) -> Array:
        """m(pa) + u."""
        return noise if self.mean is None else np.asarray(self.mean(parents) + noise)

    def inverse(self, parents: Parents, value: Array) -> Array:
        """V − m(pa)."""
        return value if self.mean is None else np.asarray(value - self.mean(parents))


@dataclass(frozen=True)
class Equation(Mechanism):
    """V = f(pa, U) as a user wrote it.

    Noise is read back from a value by the inverse if there is one; by solving for it where the equation turns out to be
    linear in the noise; by listing the atoms of a noise with finitely many; by rejection where the value is discrete.

    Attributes
    ----------
    node : str
    function : callable (pa, u) -> value
    law : Law
    inverse : callable (pa, value) -> u, optional
    kind : Kind
    """

    node: str
    function: Callable[[Parents, Array], Any]
    law: Law
    inverse: Callable[[Parents, Array], Any] | None
    kind: Kind

    def draw(self, n: int, generator: Generator) -> Array:
        """Draw from the law."""
        return self.law.draw(n, generator)

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        """f(pa, u), checked."""
        value = self._shaped(parents, noise)
        if value.dtype != object and not np.isfinite(value).all():
            bad = int((~np.isfinite(value.reshape(len(value), -1))).any(axis=1).sum())
            raise InputError(
                f"The equation of {self.node} returned NaN or infinity in {bad} of {len(value)} rows; make it finite "
                "for every value of its parents and its noise."
            )
        return value

    def _shaped(self, parents: Parents, noise: Array) -> Array:
        n = noise.shape[0]
        try:
            value = self.function(parents, noise)
        except KeyError as error:
            raise InputError(
                f"The equation of {self.node} asks for {error.args[0]!r}, which is not among its parents "
                f"({', '.join(parents) or 'none'}); draw the edge in the graph, or correct the name."
            ) from error
        return self._checked(value, n)

    def recover(self, parents: Parents, value: Array) -> Array | None:
        """The inverse, or the solution of a linear equation; None for anything else."""
        if self.inverse is not None:
            noise = np.asarray(self.inverse(parents, value))
            if noise.ndim == 0 or noise.shape[0] != value.shape[0]:
                raise InputError(
                    f"The inverse of {self.node} must give {value.shape[0]} rows, but an array of shape {noise.shape} "
                    "was received; return one noise a row."
                )
            lost = noise.reshape(len(noise), -1)
            if np.issubdtype(lost.dtype, np.number) and not np.isfinite(lost).all():
                raise InputError(
                    f"The inverse of {self.node} is not finite in {int((~np.isfinite(lost)).any(axis=1).sum())} of "
                    f"{len(noise)} rows; drop those rows, or sample with sample_units, which keeps the noise."
                )
            if not self._gives_back(parents, noise, value):
                raise InputError(
                    f"The inverse of {self.node} does not fit its equation: the noise it returns does not give the "
                    "observed values back; check both, and that these rows come from this model."
                )
            return noise
        atoms = self.law.atoms()
        if atoms is not None and len(atoms[0]) == 1:
            noise = np.full(value.shape[0], atoms[0][0])
            refuse_impossible(self.node, same(self.evaluate(parents, noise), value))
            return noise
        line = find_line(self._shaped, self.law.draw, parents, value)
        return None if line is None else line.noise(value)

    def posterior(self, parents: Parents, value: Array, generator: Generator) -> Array:
        """Exact where the noise is determined, else enumeration or rejection."""
        noise = self.recover(parents, value)
        if noise is not None:
            return noise
        atoms = self.law.atoms()
        if atoms is not None:
            return by_atoms(self, self.node, atoms, parents, value, generator)
        return by_rejection(self, self.node, parents, value, generator)

    def log_density(self, parents: Parents, value: Array) -> Array | None:
        """Change of variables, log p_U(u) + log |du/dv|; the sum over matching atoms for a discrete noise."""
        atoms = self.law.atoms()
        if atoms is not None:
            total = np.zeros(value.shape[0])
            for atom, weight in zip(*atoms, strict=True):
                total += weight * same(self.evaluate(parents, np.full(value.shape[0], atom)), value)
            with np.errstate(divide="ignore"):
                return np.log(total)
        if self.inverse is None:
            line = find_line(self._shaped, self.law.draw, parents, value)
            if line is None:
                return None
            density = self.law.log_density(line.noise(value))
            return None if density is None else density + line.log_jacobian()
        jacobian = self._log_jacobian(parents, value)
        density = self.law.log_density(np.asarray(self.inverse(parents, value)))
        return None if density is None or jacobian is None else density + jacobian

    def _log_jacobian(self, parents: Parents, value: Array) -> Array | float | None:
        if isinstance(self.function, Additive):
            return 0.0
        if isinstance(self.kind, Vector | Categories) or self.inverse is None:
            return None
        step = 1e-6 * np.maximum(1.0, np.abs(value))
        rise = np.asarray(self.inverse(parents, value + step)) - np.asarray(self.inverse(parents, value - step))
        if rise.shape != value.shape:
            return None
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.abs(rise) / (2 * step)))

    def _gives_back(self, parents: Parents, noise: Array, value: Array) -> bool:
        again = self.evaluate(parents, noise)
        if isinstance(self.kind, Categories):
            return bool((again == value).all())
        return bool(np.allclose(again, value, rtol=_ROUND_TRIP, atol=_ROUND_TRIP))

    def _checked(self, value: Any, n: int) -> Array:
        if isinstance(self.kind, Categories):
            return self.kind.rows_of(value, n, self.node)
        array = np.asarray(value)
        if not np.issubdtype(array.dtype, np.number) and array.dtype != bool:
            raise InputError(
                f"The equation of {self.node} returned {array.dtype} values; return numbers, or declare the node's "
                f"levels with kinds={{{self.node!r}: Categories([...])}}."
            )
        shape = (n, self.kind.size) if isinstance(self.kind, Vector) else (n,)
        if array.ndim == 0:
            array = np.full(shape, array)
        if array.shape != shape:
            raise InputError(
                f"The equation of {self.node} must return shape {shape} for {n} rows, but returned {array.shape}; "
                "write it for whole columns, or declare the node's size with Vector(size)."
            )
        return np.asarray(array, dtype=np.float64)
