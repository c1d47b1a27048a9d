"""Links: increasing maps h of a column to the whole line, on which a mechanism then works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from ciplearn._core.errors import InputError
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array


class Link:
    """An increasing h with its inverse; without more, h(v) = v."""

    prefix: ClassVar[str] = ""  # what the report says before the mechanism's name

    def allows(self, values: Array) -> bool:
        """Whether h is finite at all values."""
        return True

    def forward(self, values: Array) -> Array:
        """h(v)."""
        return values

    def back(self, line: Array) -> Array:
        """h⁻¹(z)."""
        return line

    def check(self, values: Array, node: str) -> None:
        """Refuse values outside the domain."""
        if not self.allows(values):
            raise InputError(
                f"{node} holds {float(np.min(values)):g} to {float(np.max(values)):g}, beyond what {self!r} can take; "
                "use another link or mechanism for this node."
            )


@kept
@dataclass(frozen=True)
class Identity(Link):
    """h(v) = v."""


@kept
@dataclass(frozen=True)
class Log(Link):
    """h(v) = log(v − low): for numbers above a bound, on which noise acts as a factor.

    Parameters
    ----------
    low : float

    Examples
    --------
    >>> import numpy as np
    >>> from ciplearn.scm import AdditiveNoise, Log
    >>> AdditiveNoise(link=Log()).label
    'log scale, additive noise'
    >>> Log().back(np.array([0.0]))
    array([1.])
    """

    low: float = 0.0
    prefix: ClassVar[str] = "log scale, "

    def allows(self, values: Array) -> bool:
        """Numbers above the bound."""
        return bool((values > self.low).all())

    def forward(self, values: Array) -> Array:
        """log(v − low)."""
        return np.asarray(np.log(values - self.low))

    def back(self, line: Array) -> Array:
        """Low + exp z; beyond exp(700) a double overflows."""
        return np.asarray(self.low + np.exp(np.minimum(line, 700.0)))


@kept
@dataclass(frozen=True)
class Logit(Link):
    """h(v) = log((v − low) / (high − v)): for numbers between two bounds.

    Parameters
    ----------
    low, high : float

    Examples
    --------
    >>> import numpy as np
    >>> from ciplearn.scm import Logit
    >>> Logit(0, 10).back(np.array([0.0]))
    array([5.])
    """

    low: float = 0.0
    high: float = 1.0
    prefix: ClassVar[str] = "logit scale, "

    def allows(self, values: Array) -> bool:
        """Numbers strictly between the bounds."""
        return bool(((values > self.low) & (values < self.high)).all())

    def forward(self, values: Array) -> Array:
        """log((v − low) / (high − v))."""
        return np.asarray(np.log(values - self.low) - np.log(self.high - values))

    def back(self, line: Array) -> Array:
        """Low + (high − low) / (1 + exp(−z))."""
        return np.asarray(self.low + (self.high - self.low) * expit(line))
