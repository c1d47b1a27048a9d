"""Links: increasing maps of a column to the whole line, on which a mechanism then works."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ciplearn._core.errors import InputError
from ciplearn.scm.kept import kept
from ciplearn.scm.kinds import Array


class Link(ABC):
    """An increasing h with its inverse."""

    @property
    @abstractmethod
    def prefix(self) -> str:
        """What the report says before the mechanism's name."""

    @abstractmethod
    def allows(self, values: Array) -> bool:
        """Whether h is finite at all values."""

    @abstractmethod
    def forward(self, values: Array) -> Array:
        """h(v)."""

    @abstractmethod
    def back(self, line: Array) -> Array:
        """h⁻¹(z)."""

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

    @property
    def prefix(self) -> str:
        """Nothing to say."""
        return ""

    def allows(self, values: Array) -> bool:
        """Every number will do."""
        return True

    def forward(self, values: Array) -> Array:
        """V."""
        return values

    def back(self, line: Array) -> Array:
        """Z."""
        return line


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

    @property
    def prefix(self) -> str:
        """Name the scale."""
        return "log scale, "

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

    @property
    def prefix(self) -> str:
        """Name the scale."""
        return "logit scale, "

    def allows(self, values: Array) -> bool:
        """Numbers strictly between the bounds."""
        return bool(((values > self.low) & (values < self.high)).all())

    def forward(self, values: Array) -> Array:
        """log((v − low) / (high − v))."""
        return np.asarray(np.log(values - self.low) - np.log(self.high - values))

    def back(self, line: Array) -> Array:
        """Low + (high − low) / (1 + exp(−z))."""
        return np.asarray(self.low + (self.high - self.low) * expit(line))
