"""What the values of a node look like, as an array inside and as columns of a frame outside.

A number is one column named like its node. A vector of size d is d columns, ``A[0]`` to ``A[d-1]``, and an array of
shape (n, d) in equations. A category is one column; equations see its labels as they stand in the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import whole
from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import nearest
from ciplearn.scm.saving import Array as Array
from ciplearn.scm.saving import kept

# Each of its numbers is a column with a name.
_LONGEST_VECTOR = 10**6


class Kind:
    """The shape and the domain of a node's values; without more, of numbers."""

    width: int = 1  # how many columns of numbers stand for the node in a regression
    shape: tuple[int, ...] = ()  # of one row's value

    def columns(self, node: str) -> tuple[str, ...]:
        """Names of the node's columns in a frame."""
        return (node,)

    def read(self, frame: pd.DataFrame, node: str) -> Array:  # (n,) or (n, d)
        """Return the node's values from a frame that has its columns, or raise."""
        columns = [_finite_column(frame[column], column) for column in self.columns(node)]
        return np.stack(columns, axis=1).reshape(len(frame), *self.shape)

    def write(self, values: Array, node: str) -> dict[str, Any]:
        """Return the node's columns, the reverse of `read`."""
        return dict(zip(self.columns(node), values.reshape(len(values), self.width).T, strict=True))

    def rows_of(self, value: Any, n: int, node: str) -> Array:  # (n,) or (n, d)
        """Return a constant or one value per row as an array of n rows, or raise; ``value`` comes from a user."""
        array, shape = _numbers(value, node), (n, *self.shape)
        if array.shape == (n, 1) and not self.shape:
            array = array[:, 0]
        if array.shape not in ((), self.shape, shape):
            raise InputError(
                f"{node} takes one value or values of shape {shape}, but shape {array.shape} was received; pass one of "
                f"these, or declare kinds={{{node!r}: Vector(size)}}."
            )
        return array if array.shape == shape else np.broadcast_to(array, shape).copy()


@kept
@dataclass(frozen=True)
class Scalar(Kind):
    """A number; the kind of every node that is not declared.

    Examples
    --------
    >>> from ciplearn.scm import Scalar
    >>> Scalar().columns("age")
    ('age',)
    """


@kept
@dataclass(frozen=True)
class Vector(Kind):
    """Several numbers that belong together, in columns ``node[0]`` to ``node[size-1]``.

    Parameters
    ----------
    size : int
        How many numbers.

    Examples
    --------
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
    """One of a few labels.

    Parameters
    ----------
    levels : iterable of labels
        Every label that the node can take: strings, or other values that can be compared with ``==``.

    Examples
    --------
    >>> from ciplearn.scm import Categories
    >>> Categories(["nurse", "cook"]).levels
    ('nurse', 'cook')
    """

    levels: tuple[Any, ...]

    def __init__(self, levels: Iterable[Any]) -> None:
        if isinstance(levels, str):
            raise InputTypeError(
                f"levels must be a list of labels, got the one string {levels!r}; pass for example ['no', 'yes']."
            )
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
        """Return the place of each label among the levels; a label that is none of them is an error."""
        # Text stays objects: pandas would copy it into a kind of its own, only to take it out again to compare.
        kind = object if all(isinstance(level, str) for level in self.levels) else None
        labels = pd.Index(np.asarray(values, dtype=object), dtype=kind, copy=False)
        try:
            codes = pd.Index(self.levels, dtype=object).get_indexer(labels)
        except TypeError:
            raise InputTypeError(f"{node} must be a label per row, got {values!r}; pass one of its levels.") from None
        if (codes < 0).any():
            bad = np.asarray(values, dtype=object)[codes < 0][0]
            shown = ", ".join(map(repr, self.levels[:8])) + (", ..." if len(self.levels) > 8 else "")
            raise InputError(f"{node} cannot be {bad!r}, which is none of its levels; use one of {shown}.")
        return codes

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


def _finite_column(column: pd.Series, name: str) -> Array:
    if not holds_numbers(column):
        raise InputTypeError(
            f"Column {name!r} must hold numbers, but its dtype is {column.dtype}; convert it, or declare the node's "
            "levels with Categories([...])."
        )
    values = as_numbers(column).to_numpy()
    _refuse_missing(~np.isfinite(values), name)
    return values


def _refuse_missing(missing: Array, column: str) -> None:  # (n,), boolean
    if missing.any():
        raise InputError(
            f"Column {column!r} holds NaN or infinity in {int(missing.sum())} of {len(missing)} rows; drop or impute "
            "those rows first."
        )


def _numbers(value: Any, node: str) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{node} takes numbers, but {value!r} was received; pass numbers, or declare the node's levels with "
            "Categories([...])."
        ) from error
    if not np.isfinite(array).all():
        raise InputError(f"{node} was set to NaN or infinity; pass finite numbers.")
    return array


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
        raise InputTypeError(
            f"{role} must be a pandas DataFrame, got {type(frame).__name__}; wrap it with pd.DataFrame(..., "
            "columns=[...])."
        )
    owned = {column for node in graph.observed for column in kinds[node].columns(node)}
    twice = [column for column in frame.columns[frame.columns.duplicated()] if column in owned]
    if twice:
        raise InputError(f"{role} has two columns named {twice[0]!r}; drop or rename one of them.")
    present = []
    for node in graph.observed:
        columns = kinds[node].columns(node)
        missing = [column for column in columns if column not in frame.columns]
        if not missing:
            present.append(node)
        elif len(missing) < len(columns):
            raise InputError(
                f"{role} lacks the column {missing[0]!r} of the vector {node}; pass all {len(columns)} of them."
            )
    for node in graph.observed:
        if node not in present and (below := sorted(graph.descendants(node) & set(present))):
            raise InputError(
                f"{role} lacks the column {kinds[node].columns(node)[0]!r}, on which {below[0]} depends; add it, or "
                f"declare {node} latent."
            )
    return tuple(present)


def refuse_strangers(frame: pd.DataFrame, graph: CausalGraph, kinds: Mapping[str, Kind], role: str) -> None:
    """Refuse columns that belong to no observed node, for where a misspelt node would just be gone from the answer."""
    owned = tuple(column for node in graph.observed for column in kinds[node].columns(node))
    for column in frame.columns:
        if column not in owned:
            hint = "it is latent, so drop it" if column in graph.latent else nearest(str(column), owned, "columns")
            raise InputError(
                f"{role} has the column {column!r}, which belongs to no observed node of the model; drop it, or add it "
                f"to the graph ({hint.rstrip('.')})."
            )


def write_nodes(
    values: Mapping[str, Array], kinds: Mapping[str, Kind], nodes: Iterable[str], index: pd.Index
) -> pd.DataFrame:
    """Return a frame with the columns of ``nodes``."""
    columns = {name: column for node in nodes for name, column in kinds[node].write(values[node], node).items()}
    return pd.DataFrame(columns, index=index)
