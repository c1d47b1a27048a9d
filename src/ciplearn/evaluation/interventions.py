"""Interventions: which values of the protected variables are imagined, and from which law they come."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.scm.kinds import Array


@dataclass(frozen=True, eq=False)
class Interventions:
    """The joint values that some points get, k per point."""

    values: pd.DataFrame  # points × k rows, the k values of a point together; one column per protected column
    # (points, k): where the law is that of the rows: the place of each value among its distinct values
    seen: Array | None = None


class InterventionLaw(ABC):
    """A joint law of all protected variables."""

    @abstractmethod
    def draw(self, points: int, k: int, generator: Generator) -> Interventions:
        """Return the values of some points, ``size(k)`` per point."""

    def size(self, k: int) -> int:
        """How many values a point gets when k are asked for."""
        return k

    def weights(self, k: int) -> Array:  # (size(k),)
        """The probability that each of a point's values stands for."""
        return np.full(self.size(k), 1 / self.size(k))

    def correction(self, k: int) -> float:
        """What makes the weighted variance over a point's values an unbiased estimate of the law's."""
        return k / (k - 1)

    def lists_every_value(self, k: int) -> bool:
        """Whether each point gets every value with its share, so that none is a draw."""
        return False


@dataclass(frozen=True, eq=False)
class SeenLaw(InterventionLaw):
    """The law of the rows' own values, as whole rows: several protected variables keep their dependence.

    Where the rows hold at most k distinct values, every point gets all of them with their shares as weights, and
    nothing is drawn. Else every point gets k rows' values, and over all points each row is drawn equally often: they
    are taken from one shuffling of the rows after the other, so that a point has a row twice only where one ends.
    Either way the law is an estimate from the same rows, and all points share its error: see
    `ciplearn.evaluation.spread` for what that means for an interval.
    """

    distinct: pd.DataFrame  # distinct joint values
    code: Array  # (n,): the place of each row's value among them

    @classmethod
    def of(cls, values: pd.DataFrame) -> SeenLaw:
        """Find the distinct values."""
        code = values.groupby(list(values.columns), sort=False, dropna=False, observed=True).ngroup().to_numpy()
        _, first = np.unique(code, return_index=True)
        return cls(values.iloc[first].reset_index(drop=True), code)

    @property
    def n(self) -> int:
        """The number of rows that the law is estimated from."""
        return len(self.code)

    @property
    def counts(self) -> Array:  # (distinct,)
        """How many rows have each value."""
        return np.bincount(self.code, minlength=len(self.distinct))

    def lists_every_value(self, k: int) -> bool:
        """Where there are at most k."""
        return len(self.distinct) <= k

    def size(self, k: int) -> int:
        """All distinct values where they are few."""
        return len(self.distinct) if self.lists_every_value(k) else k

    def weights(self, k: int) -> Array:
        """The share of rows with each value; equal where rows are drawn."""
        return self.counts / self.n if self.lists_every_value(k) else super().weights(k)

    def correction(self, k: int) -> float:
        """Of a variance over all rows, or over k of them."""
        used = self.n if self.lists_every_value(k) else k
        return used / (used - 1)

    def draw(self, points: int, k: int, generator: Generator) -> Interventions:
        """Give all values, or rows drawn."""
        if self.lists_every_value(k):
            seen = np.tile(np.arange(len(self.distinct)), (points, 1))
        else:
            rounds = -(-points * k // self.n)
            order = np.concatenate([generator.permutation(self.n) for _ in range(rounds)])
            seen = self.code[order[: points * k]].reshape(points, k)
        return Interventions(self.distinct.iloc[seen.ravel()].reset_index(drop=True), seen)


@dataclass(frozen=True, eq=False)
class Grid(InterventionLaw):
    """The same listed values for every point, each with the same weight."""

    values: pd.DataFrame

    def size(self, k: int) -> int:
        """As many as are listed."""
        return len(self.values)

    def correction(self, k: int) -> float:
        """The grid is the law, not a sample of it."""
        return 1.0

    def lists_every_value(self, k: int) -> bool:
        """Always."""
        return True

    def draw(self, points: int, k: int, generator: Generator) -> Interventions:
        """Repeat the grid."""
        places = np.tile(np.arange(len(self.values)), points)
        return Interventions(self.values.iloc[places].reset_index(drop=True))


@dataclass(frozen=True, eq=False)
class OwnLaw(InterventionLaw):
    """A user's function (n, generator) -> frame of joint values."""

    function: Callable[[int, Generator], Any]
    columns: tuple[str, ...]

    def draw(self, points: int, k: int, generator: Generator) -> Interventions:
        """Call the function once for all values."""
        drawn = as_values(self.function(points * k, generator), self.columns, "interventions")
        if len(drawn) != points * k:
            raise InputError(
                f"interventions must return {points * k} rows when asked for them, got {len(drawn)}; use the first "
                "argument as the number of rows."
            )
        return Interventions(drawn)


def as_law(interventions: Any, rows: pd.DataFrame, columns: Sequence[str]) -> InterventionLaw:
    """Read what a user gave: None for the values seen, a function for a law, values for a grid."""
    if interventions is None:
        return SeenLaw.of(rows[list(columns)])
    if callable(interventions):
        _require_two_arguments(interventions)
        return OwnLaw(interventions, tuple(columns))
    grid = as_values(interventions, tuple(columns), "interventions")
    if len(grid) < 2:
        raise InputError(f"A grid of interventions needs at least 2 values, got {len(grid)}; a variance needs two.")
    return Grid(grid)


def _require_two_arguments(function: Callable[..., Any]) -> None:
    try:
        inspect.signature(function).bind(0, None)
    except TypeError:
        raise InputTypeError(
            f"interventions must be a function (n, generator) -> frame, got {function!r}, which does not "
            "take these two."
        ) from None
    except ValueError:
        # Some functions that are written in C do not say what they take.
        return


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
