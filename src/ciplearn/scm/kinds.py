"""What the values of a node look like: an array inside, columns of a frame outside; and units, rows with their noise.

A number is one column named like its node. A vector of size d is d columns, ``A[0]`` to ``A[d-1]``, and an array of
shape (n, d) in equations. A category is one column; equations see its labels as they stand in the frame.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from ciplearn._core.arguments import whole
from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import nearest

Array = np.ndarray[Any, Any]
_Part = TypeVar("_Part", bound=type)

# The classes that a saved model may be made of, by name; nothing else is ever made from a file.
KEPT: dict[str, type] = {}

# Each of a vector's numbers is a column with a name.
_LONGEST_VECTOR = 10**6


@lru_cache(maxsize=256)
def _index_of(levels: tuple[Any, ...]) -> pd.Index:
    """What finds a label among levels: made once, and asked in every world."""
    return pd.Index(levels, dtype=object)


def kept(part: _Part) -> _Part:
    """Register a dataclass whose fields are data, networks, or registered themselves: models made of it can be saved.

    A class that cannot be made from its fields alone has a ``restored(fields)`` that makes one.
    """
    KEPT[part.__name__] = part
    return part


class Kind:
    """The shape and the domain of a node's values; without more, of numbers."""

    width: int = 1  # how many columns of numbers stand for the node in a regression
    shape: tuple[int, ...] = ()  # of one row's value

    def columns(self, node: str) -> tuple[str, ...]:
        """Names of the node's columns in a frame."""
        return (node,)

    def read(self, frame: pd.DataFrame, node: str) -> Array:  # (n,) or (n, d)
        """Return the node's values from a frame that has its columns, or raise."""
        columns = []
        for name in self.columns(node):
            if not holds_numbers(frame[name]):
                why = f"Column {name!r} must hold numbers, but its dtype is {frame[name].dtype}"
                raise InputTypeError(f"{why}; convert it, or declare the node's levels with Categories([...]).")
            columns.append(as_numbers(frame[name]).to_numpy())
            _refuse_missing(~np.isfinite(columns[-1]), name)
        return np.stack(columns, axis=1).reshape(len(frame), *self.shape)

    def codes(self, values: Any, node: str) -> Array:  # (n, width)
        """Return the numbers that stand for some values in regressions."""
        return values.reshape(len(values), self.width).astype(np.float64)

    def write(self, values: Array, node: str) -> dict[str, Any]:
        """Return the node's columns, the reverse of `read`."""
        return dict(zip(self.columns(node), values.reshape(len(values), self.width).T, strict=True))

    def rows_of(self, value: Any, n: int, node: str) -> Array:  # (n,) or (n, d)
        """Return a constant or one value per row as an array of n rows, or raise; ``value`` comes from a user."""
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputTypeError(
                f"{node} takes numbers, but {value!r} was received; pass numbers, or declare the node's levels with "
                "Categories([...])."
            ) from error
        if not np.isfinite(array).all():
            raise InputError(f"{node} was set to NaN or infinity; pass finite numbers.")
        shape = (n, *self.shape)
        if array.shape == (n, 1) and not self.shape:
            array = array[:, 0]
        if array.shape not in ((), self.shape, shape):
            why = f"{node} takes one value or values of shape {shape}, but shape {array.shape} was received"
            raise InputError(f"{why}; pass one of these, or declare kinds={{{node!r}: Vector(size)}}.")
        return array if array.shape == shape else np.broadcast_to(array, shape).copy()


@kept
@dataclass(frozen=True)
class Scalar(Kind):
    """A number; the kind of every node that is not declared.

    >>> from ciplearn.scm import Scalar
    >>> Scalar().columns("age")
    ('age',)
    """


@kept
@dataclass(frozen=True)
class Vector(Kind):
    """Several numbers that belong together, in columns ``node[0]`` to ``node[size-1]``.

    >>> from ciplearn.scm import Vector
    >>> Vector(3).columns("A")
    ('A[0]', 'A[1]', 'A[2]')
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", whole(self.size, "size", minimum=1, maximum=_LONGEST_VECTOR))
        object.__setattr__(self, "shape", (self.width,))

    def columns(self, node: str) -> tuple[str, ...]:
        """The node's name with a number in brackets."""
        return tuple(f"{node}[{i}]" for i in range(self.size))


@kept
@dataclass(frozen=True, init=False)
class Categories(Kind):
    """One of a few labels: ``levels`` are all that the node can take, strings or values to compare with ``==``.

    >>> from ciplearn.scm import Categories
    >>> Categories(["nurse", "cook"]).levels
    ('nurse', 'cook')
    """

    levels: tuple[Any, ...]

    def __init__(self, levels: Iterable[Any]) -> None:
        if isinstance(levels, str):
            why = f"levels must be a list of labels, got the one string {levels!r}"
            raise InputTypeError(f"{why}; pass for example ['no', 'yes'].")
        labels = tuple(dict.fromkeys(levels))
        if len(labels) < 2:
            raise InputError(f"A category needs at least 2 levels, got {labels!r}; name every label it can take.")
        object.__setattr__(self, "levels", labels)
        # One indicator per level but the first.
        object.__setattr__(self, "width", len(labels) - 1)

    @property
    def labels(self) -> Array:
        """The levels as an array that codes can index."""
        array = np.empty(len(self.levels), dtype=object)
        array[:] = self.levels
        return array

    def codes(self, values: Any, node: str) -> Array:  # (n,) labels -> (n,) whole numbers
        """Return the number of each label among the levels; a label that is none of them is an error."""
        # Text stays objects: pandas would copy it into a kind of its own, only to take it out again to compare.
        kind = object if all(isinstance(level, str) for level in self.levels) else None
        labels = pd.Index(np.asarray(values, dtype=object), dtype=kind, copy=False)
        try:
            codes = _index_of(self.levels).get_indexer(labels)
        except TypeError:
            raise InputTypeError(
                f"{node} must be a label per row, got {values!r:.200}; pass one of its levels."
            ) from None
        if (codes < 0).any():
            bad = np.asarray(values, dtype=object)[codes < 0][0]
            shown = ", ".join(map(repr, self.levels[:8])) + (", ..." if len(self.levels) > 8 else "")
            raise InputError(f"{node} cannot be {bad!r}, which is none of its levels; use one of {shown}.")
        return codes

    def frequencies(self, values: Array, node: str) -> Array:  # (K,)
        """Return smoothed frequencies of the levels: half a count is added to each."""
        counts = np.bincount(self.codes(values, node), minlength=len(self.levels)) + 0.5
        return np.asarray(counts / counts.sum())

    def read(self, frame: pd.DataFrame, node: str) -> Array:
        """Return the labels."""
        _refuse_missing(frame[node].isna().to_numpy(), node)
        return self.labels[self.codes(frame[node], node)]

    def write(self, values: Array, node: str) -> dict[str, Any]:
        """One column of category dtype."""
        return {node: pd.Categorical.from_codes(self.codes(values, node), dtype=pd.CategoricalDtype(list(self.levels)))}

    def rows_of(self, value: Any, n: int, node: str) -> Array:
        """Repeat a label, or take n of them."""
        if isinstance(value, str) or np.ndim(value) == 0:
            return np.repeat(self.labels[self.codes([value], node)], n)
        if len(value) != n:
            raise InputError(f"{node} got {len(value)} labels for {n} rows; pass one label or {n} of them.")
        return self.labels[self.codes(value, node)]


def _refuse_missing(missing: Array, column: str) -> None:  # (n,), boolean
    if missing.any():
        why = f"Column {column!r} holds NaN or infinity in {int(missing.sum())} of {len(missing)} rows"
        raise InputError(f"{why}; drop or impute those rows first.")


def plain(value: Any, kind: Kind) -> Any:
    """Take a value out of its pandas wrapping."""
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.to_numpy(dtype=object) if isinstance(kind, Categories) else value.to_numpy()
    return np.asarray(value, dtype=object) if isinstance(value, pd.Categorical) else value


def read_nodes(frame: Any, kinds: Mapping[str, Kind], nodes: Iterable[str]) -> dict[str, Array]:
    """Return the values of ``nodes`` in a frame that was checked by `present_nodes`."""
    return {node: kinds[node].read(frame, node) for node in nodes}


def present_nodes(frame: Any, graph: CausalGraph, kinds: Mapping[str, Kind], role: str) -> tuple[str, ...]:
    """Return the observed nodes whose columns the frame has; other columns are ignored.

    A node may be left out if nothing that is present descends from it, such as the outcome of new rows.
    """
    if not isinstance(frame, pd.DataFrame):
        why = f"{role} must be a pandas DataFrame, got {type(frame).__name__}"
        raise InputTypeError(f"{why}; wrap it with pd.DataFrame(...).")
    columns_of = {node: kinds[node].columns(node) for node in graph.observed}
    for name in frame.columns[frame.columns.duplicated()]:
        if any(name in columns for columns in columns_of.values()):
            raise InputError(f"{role} has two columns named {name!r}; drop or rename one of them.")
    missing = {node: [name for name in columns if name not in frame.columns] for node, columns in columns_of.items()}
    present = tuple(node for node in graph.observed if not missing[node])
    for node, columns in columns_of.items():
        if 0 < len(missing[node]) < len(columns):
            why = f"{role} lacks the column {missing[node][0]!r} of the vector {node}"
            raise InputError(f"{why}; pass all {len(columns)} of them.")
        if missing[node] and (below := sorted(graph.descendants(node) & set(present))):
            why = f"{role} lacks the column {columns[0]!r}, on which {below[0]} depends"
            raise InputError(f"{why}; add it, or make {node} latent.")
    return present


def refuse_strangers(frame: pd.DataFrame, graph: CausalGraph, kinds: Mapping[str, Kind], role: str) -> None:
    """Refuse columns that belong to no observed node, for where a misspelt node would just be gone from the answer."""
    columns = tuple(name for node in graph.observed for name in kinds[node].columns(node))
    if strangers := [name for name in frame.columns if name not in columns]:
        name = strangers[0]
        hint = "it is latent, so drop it" if name in graph.latent else nearest(str(name), columns, "columns")
        why = f"{role} has the column {name!r}, which belongs to no observed node of the model"
        raise InputError(f"{why}; drop it, or add it to the graph ({hint.rstrip('.')}).")


@dataclass(frozen=True, eq=False)
class Units:
    """What abduction knows about some rows; sampling with the noise kept gives the same.

    Attributes
    ----------
    values, noise : mapping from node to array
        What each node was, latent nodes included where that is clear, and the noise behind those that were asked for.
    index : pandas Index of the rows
    draws : int
        How many times each row stands here, each with noise of its own; the draws of one row stand together.
    exact : bool
        Whether the noise is the one noise that fits, rather than a draw from those that do.
    effective_draws : array of shape (rows,) or None
        Where latent parents were inferred by weighted draws, how many independent draws those are worth per row.

    Examples
    --------
    >>> from ciplearn import datasets
    >>> scm = datasets.first_synthetic()
    >>> units = scm.abduct(scm.sample(5, random_state=0))
    >>> units.n, units.exact
    (5, True)
    """

    values: Mapping[str, Array]
    noise: Mapping[str, Array]
    index: pd.Index
    draws: int = 1
    exact: bool = True
    effective_draws: Array | None = None

    @property
    def n(self) -> int:
        """How many units there are: rows times draws."""
        return len(self.index) * self.draws

    def take(self, rows: Any, draw: Any = None) -> Self:
        """Return the units of some rows, by number; a row may be named several times.

        ``draw`` : the number of one draw for each, which then stands alone.
        """
        rows = np.asarray(rows, dtype=np.int64)
        wanted = np.arange(self.draws) if draw is None else np.asarray(draw)[:, None]
        units = (rows[:, None] * self.draws + wanted).ravel()
        values, noise = (
            {node: array.take(units, axis=0) for node, array in arrays.items()} for arrays in (self.values, self.noise)
        )
        effective = None if self.effective_draws is None else self.effective_draws[rows]
        left: dict[str, Any] = {"draws": self.draws if draw is None else 1, "effective_draws": effective}
        return replace(self, values=values, noise=noise, index=self.index.take(rows), **left)

    def only(self, nodes: Collection[str]) -> Self:
        """Return the same units with the values and the noise of some nodes alone."""
        values, noise = (
            {node: array for node, array in arrays.items() if node in nodes} for arrays in (self.values, self.noise)
        )
        return replace(self, values=values, noise=noise)

    def row_index(self) -> pd.Index:
        """The index of a frame of these units: the rows' own, with the number of the draw where there are several."""
        if self.draws == 1:
            return self.index
        rows, draws = np.repeat(np.arange(len(self.index)), self.draws), np.tile(np.arange(self.draws), len(self.index))
        return pd.MultiIndex.from_arrays([self.index.take(rows), draws], names=[self.index.name or "row", "draw"])
