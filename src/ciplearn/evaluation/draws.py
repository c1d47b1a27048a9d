"""Where counterfactual values of the protected variables come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError


class InterventionLaw(ABC):
    """A joint law of all protected variables.

    Attributes
    ----------
    ddof : int
        What the variance over the drawn values divides by: their number minus this.
    """

    ddof: int = 1

    @abstractmethod
    def draw(self, points: int, k: int, generator: Generator) -> pd.DataFrame:
        """Return points × k joint values, the k values of a point together; one column a protected column."""

    def size(self, k: int) -> int:
        """How many values a point gets when k are asked for."""
        return k


@dataclass(frozen=True)
class Empirical(InterventionLaw):
    """The values seen, drawn as whole rows: several protected variables keep their dependence.

    Each point gets k values of its own, so that points are independent draws and a bootstrap over them is honest.
    """

    values: pd.DataFrame

    def draw(self, points: int, k: int, generator: Generator) -> pd.DataFrame:
        """Draw rows with replacement."""
        return self.values.iloc[generator.integers(len(self.values), size=points * k)].reset_index(drop=True)


@dataclass(frozen=True)
class Grid(InterventionLaw):
    """The same listed values for every point, each with the same weight."""

    values: pd.DataFrame
    ddof: int = 0

    def draw(self, points: int, k: int, generator: Generator) -> pd.DataFrame:
        """Repeat the grid."""
        return self.values.iloc[np.tile(np.arange(len(self.values)), points)].reset_index(drop=True)

    def size(self, k: int) -> int:
        """As many as are listed."""
        return len(self.values)


@dataclass(frozen=True)
class OwnLaw(InterventionLaw):
    """A user's function (n, generator) -> frame of joint values."""

    function: Callable[[int, Generator], Any]
    columns: tuple[str, ...]

    def draw(self, points: int, k: int, generator: Generator) -> pd.DataFrame:
        """Call the function once for all values."""
        drawn = as_values(self.function(points * k, generator), self.columns, "interventions")
        if len(drawn) != points * k:
            raise InputError(
                f"interventions must return {points * k} rows when asked for them, got {len(drawn)}; use the first "
                "argument as the number of rows."
            )
        return drawn


def as_law(interventions: Any, rows: pd.DataFrame, columns: Sequence[str]) -> InterventionLaw:
    """Read what a user gave: None for the values seen, a function for a law, values for a grid."""
    if interventions is None:
        return Empirical(rows[list(columns)].reset_index(drop=True))
    if isinstance(interventions, InterventionLaw):
        return interventions
    if callable(interventions):
        return OwnLaw(interventions, tuple(columns))
    grid = as_values(interventions, tuple(columns), "interventions")
    if len(grid) < 2:
        raise InputError(f"A grid of interventions needs at least 2 values, got {len(grid)}; a variance needs two.")
    return Grid(grid)


def as_values(given: Any, columns: tuple[str, ...], role: str) -> pd.DataFrame:
    """Return joint values as a frame with exactly the protected columns."""
    if isinstance(given, pd.DataFrame):
        missing = [column for column in columns if column not in given.columns]
        if missing:
            raise InputError(
                f"{role} lacks the protected column {missing[0]!r}; pass a frame with columns {', '.join(columns)}."
            )
        return given[list(columns)].reset_index(drop=True)
    if isinstance(given, str) or not np.iterable(given):
        raise InputTypeError(
            f"{role} must be None, a frame or list of values, or a function (n, generator) -> frame, got {given!r}."
        )
    if len(columns) > 1:
        array = np.asarray(given)
        if array.ndim != 2 or array.shape[1] != len(columns):
            raise InputError(
                f"{role} must say a value for each of {', '.join(columns)}; pass a frame with these columns."
            )
        return pd.DataFrame(array, columns=list(columns))
    return pd.DataFrame({columns[0]: list(given)})
