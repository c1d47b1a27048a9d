"""The frontier: what each gamma costs and buys, over seeds; and the largest gamma that a tolerance allows."""

from __future__ import annotations

import csv
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from ciplearn._core.arguments import positive, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.files import held_alone, write_file

# The last column of a sweep's file: what a point belongs to, in so many digits. A line with fewer was cut short.
_DIGEST, _DIGITS = "digest", 16


@dataclass(frozen=True)
class Point:
    """One training: a gamma, a seed, and what was measured on held-out rows."""

    gamma: float
    seed: int
    measures: Mapping[str, float]


@dataclass(frozen=True)
class Frontier:
    """Measures over gammas and seeds; two with the same points are equal, in whatever order these came.

    Always ``loss`` and ``score``, where an independence is to be kept ``penalty``, and whatever else was asked for.

    >>> from ciplearn.learning.frontier import Frontier, Point
    >>> curve = Frontier((Point(0.0, 0, {"loss": 0.2, "penalty": 0.03}), Point(1.0, 0, {"loss": 0.3, "penalty": 0.01})))
    >>> curve.pareto()["gamma"].tolist()
    [0.0, 1.0]
    """

    points: tuple[Point, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frontier) and self._in_order() == other._in_order()

    def _in_order(self) -> list[Point]:
        return sorted(self.points, key=lambda point: (point.gamma, point.seed))

    @property
    def table(self) -> pd.DataFrame:
        """One row per training: gamma, seed and the measures."""
        rows = [{"gamma": point.gamma, "seed": point.seed, **point.measures} for point in self.points]
        table = pd.DataFrame(rows, columns=["gamma", "seed", *self.measures])
        return table.sort_values(["gamma", "seed"], ignore_index=True)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what was measured."""
        return tuple(self.points[0].measures) if self.points else ()

    def summary(self) -> pd.DataFrame:
        """One row per gamma: mean and standard error over seeds of each measure."""
        grouped = self.table.drop(columns="seed").groupby("gamma")
        errors = (grouped.std(ddof=1) / np.sqrt(grouped.count())).add_suffix("_error")
        order = [column for name in self.measures for column in (name, f"{name}_error")]
        return grouped.mean().join(errors)[order].reset_index()

    def pareto(self, cost: str = "loss", violation: str = "penalty") -> pd.DataFrame:
        """The gammas that no other beats in both means, lowest cost first."""
        for name in (cost, violation):
            if name not in self.measures:
                raise InputError(f"{name!r} was not measured, there are {list(self.measures)}; name one of these.")
        means = self.summary().sort_values([cost, violation], ignore_index=True)
        kept = means[violation] < means[violation].cummin().shift(fill_value=np.inf)
        return means[kept].reset_index(drop=True)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table."""
        write_file(Path(path), self.table.to_csv(index=False))

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table that `to_csv` or an interrupted sweep has written."""
        frontier = cls(tuple(read_sweep(path).points))
        if not frontier.points:
            raise InputError(f"{path} holds no points of a frontier; pass a file that to_csv has written.")
        return frontier


@dataclass(frozen=True)
class SweepFile:
    """What the file of a sweep holds."""

    points: list[Point]
    measures: list[str] | None  # names of what was measured; None if nothing was written yet
    digests: set[str] | None  # what the points say that they belong to; None in a file that does not say it


def read_sweep(path: str | os.PathLike[str]) -> SweepFile:
    """Read the file of a sweep; a last line that was cut short is left out."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"The file of a frontier must be a path, got {path!r}; pass for example 'frontier.csv'.")
    file = Path(path)
    try:
        # One look: another run may make or remove the file between two.
        state = file.stat() if file.parent.is_dir() else None
    except FileNotFoundError:
        return SweepFile([], None, None)
    except (OSError, ValueError):  # a name that no file can have
        state = None
    # A pipe would be waited for without end.
    if state is None or not stat.S_ISREG(state.st_mode):
        raise InputError(f"{file} cannot be the file of a frontier; pass a name in a folder that exists.")
    if not state.st_size:
        return SweepFile([], None, None)
    with file.open(newline="", errors="replace") as lines:
        reader = csv.reader(lines)
        header = next(reader, [])
        if header[:2] != ["gamma", "seed"]:
            raise InputError(f"{file} is no table of a frontier, its header is {header!s:.80}; pass another path.")
        rows = [row for row in reader if len(row) == len(header)]
    digests = None
    if header[-1] == _DIGEST:
        rows = [row for row in rows if len(row[-1]) == _DIGITS]
        header, digests = header[:-1], {row.pop() for row in rows}
    points = []
    for row in rows:
        try:
            gamma, seed, *numbers = map(float, row)
        except ValueError:
            continue
        points.append(Point(gamma, int(seed), dict(zip(header[2:], numbers, strict=True))))
    return SweepFile(points, header[2:], digests)


@contextmanager
def held_sweep(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other runs from adding to the file of a sweep: they would train the same once more."""
    read_sweep(path)
    with held_alone(Path(path)):
        yield


def append_points(
    path: str | os.PathLike[str], points: Iterable[Point], measures: Sequence[str], digest: str | None = None
) -> None:
    """Add finished trainings to the file of a sweep, measures in its order; digests for all points or none."""
    file = Path(path)
    fresh = not file.exists() or not file.stat().st_size
    broken = not fresh and not file.read_bytes().endswith(b"\n")
    last = [] if digest is None else [digest]
    with file.open("a", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if broken:
            lines.write("\n")
        if fresh:
            writer.writerow(["gamma", "seed", *measures, *([_DIGEST] if last else [])])
        for point in points:
            numbers = (repr(point.measures[name]) for name in measures)
            writer.writerow([repr(point.gamma), point.seed, *numbers, *last])


@dataclass(frozen=True)
class ChosenGamma:
    """The outcome of a search."""

    # the largest tried gamma that was allowed, 0 if none was; for a bound on the penalty the smallest that meets it
    gamma: float
    remark: str  # what to know about the ends of the interval or about noise; empty if nothing


def checked_interval(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an interval of gamma, if they are some."""
    low, high = positive(low, "low"), positive(high, "high")
    if low >= high:
        raise InputError(f"low must be below high, got low={low:g} and high={high:g}; pass for example 1e-4 and 1e4.")
    return low, high


def largest_allowed_gamma(
    value_of: Callable[[float], float], allowed: Callable[[float], bool], low: float, high: float, max_trials: int
) -> ChosenGamma:
    """Bisect log gamma between ``low`` and ``high``, with at most ``max_trials`` trainings, those at the ends included.

    The rule, also where noise makes the value rise and fall: each step keeps the half whose lower end is allowed and
    whose upper end is not, and the answer is the largest gamma that was tried and allowed.
    """
    low, high = checked_interval(low, high)
    whole(max_trials, "max_trials", minimum=2)
    tried = {high: allowed(value_of(high))}
    if tried[high]:
        return ChosenGamma(high, f"Even the largest gamma, {high:g}, is within the tolerance; raise high.")
    tried[low] = allowed(value_of(low))
    if not tried[low]:
        return ChosenGamma(0.0, f"Even the smallest gamma, {low:g}, is beyond the tolerance; gamma is 0.")
    inside, outside = low, high
    for _ in range(max_trials - len(tried)):
        middle = math.sqrt(inside * outside)
        if middle in tried:  # no number lies between them
            break
        tried[middle] = allowed(value_of(middle))
        inside, outside = (middle, outside) if tried[middle] else (inside, middle)
    return ChosenGamma(max(gamma for gamma, is_allowed in tried.items() if is_allowed), "")
