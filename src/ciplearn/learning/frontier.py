"""The frontier: what each gamma costs and buys, over seeds."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

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

    Attributes
    ----------
    points : tuple of Point

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets, frontier
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=2)
    >>> curve = frontier(model, table.drop(columns="Y"), table["Y"], gammas=[0, 1], seeds=[0, 1])
    >>> curve.measures
    ('loss', 'score', 'penalty')
    >>> curve.summary().shape
    (2, 7)
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
        error = grouped.std(ddof=1) / np.sqrt(grouped.count())
        means = grouped.mean()
        columns = {}
        for name in means.columns:
            columns[name] = means[name]
            columns[f"{name}_error"] = error[name]
        return pd.DataFrame(columns).reset_index()

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
        found = cls(tuple(read_points(path)))
        if not found.points:
            raise InputError(f"{path} holds no points of a frontier; pass a file that to_csv has written.")
        return found


def read_points(path: str | os.PathLike[str]) -> list[Point]:
    """Read the finished trainings of a sweep; a last line that was cut short is left out."""
    return read_sweep(path).points


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
        # A pipe would be waited for without end.
        usable = file.parent.is_dir() and (file.is_file() or not file.exists())
    except (OSError, ValueError):  # a name that no file can have
        usable = False
    if not usable:
        raise InputError(f"{file} cannot be the file of a frontier; pass a name in a folder that exists.")
    if not file.exists() or not file.stat().st_size:
        return SweepFile([], None, None)
    with file.open(newline="", errors="replace") as lines:
        reader = csv.reader(lines)
        header = next(reader, [])
        if header[:2] != ["gamma", "seed"]:
            raise InputError(f"{file} is no table of a frontier, its header is {header}; pass another path.")
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
    """Add finished trainings to the file of a sweep.

    ``measures``: names and order of what is written; those of the file, where there is one. ``digest``: what the points
    belong to, 16 digits; for all points of a file or for none.
    """
    file = Path(path)
    fresh = not file.exists() or not file.stat().st_size
    broken = not fresh and not file.read_bytes().endswith(b"\n")
    said = [] if digest is None else [digest]
    with file.open("a", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if broken:
            lines.write("\n")
        if fresh:
            writer.writerow(["gamma", "seed", *measures, *([_DIGEST] if said else [])])
        for point in points:
            numbers = (repr(point.measures[name]) for name in measures)
            writer.writerow([repr(point.gamma), point.seed, *numbers, *said])
