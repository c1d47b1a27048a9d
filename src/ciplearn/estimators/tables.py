"""What `fit` and `predict` are given, read at the doorway: tables, targets, weights, gaps, tensors, a last fit."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, _num_samples, validate_data
from torch import Tensor
from torch.utils.data import Dataset, StackDataset, Subset

from ciplearn._core.arguments import one_of
from ciplearn._core.columns import CATEGORY, as_frame, as_numbers, mixes_kinds, refuse_lazy
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import (
    CiplearnError,
    FarOutsideWarning,
    GraphError,
    InputError,
    InputTypeError,
    NamesWarning,
    UnseenLevelsWarning,
)
from ciplearn._core.wording import as_list, in_one_sentence
from ciplearn.learning.rows import checked_length, read_batches

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

MISSING_POLICIES = ("error", "drop", "impute")
_ROWS_TO_JUDGE_NAMES = 50  # in fewer rows a category may well be seen once
_MOST_LEVELS_NAMED, _MOST_LABELS_NAMED = 3, 5  # unseen labels that are named, of one column and of all
_NAMED = 12  # columns, levels or classes that a refusal names


def read_table(estimator: Any, X: Any, *, reset: bool) -> pd.DataFrame:
    """Return X as a frame: under its own names, or under x0, x1, ... for an array.

    A fit, which resets, leaves the number and names of features in the estimator; a prediction is compared with them.
    """
    frame = as_frame(X)
    if frame is None:
        with in_one_sentence("X cannot be used", "pass a frame, or an array of numbers, rows by columns"):
            if np.ma.isMaskedArray(X):
                X = np.ma.filled(X.astype(float), np.nan)
            least = 2 if reset else 1
            checks: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": "allow-nan"}
            array = validate_data(estimator, X, reset=reset, ensure_min_samples=least, **checks)
        if not reset and not hasattr(estimator, "array_names_"):
            why = "The model was fitted on a table with column names, got an array without"
            raise InputError(f'{why}; pass a frame, and keep names in a pipeline with set_output(transform="pandas").')
        names = [f"x{position}" for position in range(array.shape[1])]
        if reset:
            estimator.array_names_ = names
        table = pd.DataFrame(array, columns=names)
        if estimator.missing == "error":
            # Columns without names are not told apart: none of them may have gaps.
            without_missing(table, tuple(names), "error")
        return table
    if reset:
        if len(frame) < 2:
            raise InputError(f"Found a table with {len(frame)} sample, but training needs at least 2; pass more rows.")
        estimator.__dict__.pop("array_names_", None)
        estimator.n_features_in_ = frame.shape[1]
        estimator.feature_names_in_ = np.asarray(X.columns, dtype=object)
    elif hasattr(estimator, "array_names_"):
        # A frame for a model of an array: columns are matched by position.
        validate_data(estimator, X, reset=False, skip_check_array=True)
        frame = frame.set_axis(estimator.array_names_, axis=1)
    return frame


def read_labels(y: Any) -> np.ndarray:  # (n,)
    """Check one label per row."""
    with in_one_sentence("The target cannot be used", "pass one label per row, or use CIPRegressor for numbers"):
        y = _present(y)
        if not isinstance(y, list | tuple | pd.Series | pd.api.extensions.ExtensionArray):
            y = np.asarray(y)
        if np.ndim(y) == 1:
            labels = y if isinstance(y, pd.Series) else pd.Series(y)
            if gaps := int(labels.isna().sum()):
                raise InputError(f"The target contains NaN, {gaps} of {len(labels)} labels are missing; drop them.")
            # In a type that numpy compares: nullable and object columns of one kind as that kind.
            if labels.dtype == object:
                if mixes_kinds(labels):
                    kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
                    raise InputError(f"The target mixes labels of the kinds {kinds}; convert them to text.")
                y = labels.infer_objects()
            elif pd.api.types.is_extension_array_dtype(labels.dtype) and hasattr(labels.dtype, "numpy_dtype"):
                y = labels.to_numpy(dtype=labels.dtype.numpy_dtype)
        target = column_or_1d(y, warn=True)
        check_classification_targets(target)
    return target


def read_numbers(y: Any) -> np.ndarray:  # (n,) or (n, outputs)
    """Check one finite number per row, or several."""
    with in_one_sentence("The target cannot be used", "pass finite numbers, or use CIPClassifier for labels"):
        if np.asarray(_present(y)).dtype.kind in "mM":
            raise InputError("The target holds dates; convert it to numbers, days since a start for example.")
        numbers = np.asarray(_check_y(y, multi_output=True, y_numeric=True, estimator="CIPRegressor"))
        as_numbers(pd.Series(numbers.ravel(), name="y"))
        return numbers.astype(float)


def same_rows(table: pd.DataFrame, y: Any) -> None:
    """Refuse a target of other rows than the table's."""
    with in_one_sentence("The target cannot be used", "pass one value per row"):
        n_targets = _num_samples(_present(y))
    if len(table) != n_targets:
        why = f"Found input variables with inconsistent numbers of samples: X has {len(table)} rows"
        raise InputError(f"{why} and y has {n_targets}; pass the same rows to both.")


def _present(y: Any) -> Any:
    if y is None:
        raise InputError("requires y to be passed, but the target y is None; pass the outcome.")
    refuse_lazy(y)
    return y


def read_weights(weights: Any, table: pd.DataFrame) -> np.ndarray:  # (n,)
    """Check one weight per row; the largest becomes 1."""
    with in_one_sentence("sample_weight cannot be used", "pass one number per row, none negative, not all zero"):
        checked = _check_sample_weight(weights, table, ensure_non_negative=True)
        if not checked.any():
            raise ValueError("all weights are zero")
        # Only ratios count; what single precision cannot hold would not be one.
        return checked / checked.max()


def without_missing(table: pd.DataFrame, used: tuple[str, ...], policy: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Apply a policy to gaps in the used columns; return the table and which rows are kept.

    ``"error"`` refuses missing values; ``"drop"`` leaves out rows that have any; ``"impute"`` puts the training rows'
    median in place of a missing number and makes "missing" a category of its own.
    """
    one_of(policy, "missing", MISSING_POLICIES)
    if policy == "error":
        _refuse_missing(table, used, 'pass missing="impute", or missing="drop" to leave out such rows in training')
    if policy != "drop":
        return table, np.ones(len(table), dtype=bool)
    kept = ~table[list(used)].isna().any(axis=1).to_numpy()
    if kept.sum() < 2:
        raise InputError(f"Only {kept.sum()} of {len(table)} rows have all values; fill some, or use fewer columns.")
    return table[kept], kept


def rows_to_predict(estimator: Any, X: Any, names: tuple[str, ...]) -> pd.DataFrame:
    """Read rows to predict, and refuse those without a column or a value that the fitted model needs."""
    table = read_table(estimator, X, reset=False)
    if absent := [name for name in names if name not in table.columns]:
        raise InputError(f"Prediction needs the columns {absent}, which are not in X; pass them.")
    if estimator.missing != "impute":
        _refuse_missing(table, names, 'train with missing="impute" to predict such rows')
    return table


def warn_of_names(statements: Iterable[tuple[TableEncoding, TableEncoding]], n: int) -> None:
    """Warn of columns of names among what a penalty is about."""
    columns = {c.name: c for right, _ in statements for c in right.columns}
    names = [name for name, column in columns.items() if column.kind == CATEGORY and column.width > n / 2]
    if names and n >= _ROWS_TO_JUDGE_NAMES:
        why = f"Most values of {as_list(names)} occur once, so that no penalty can tell what follows them"
        warnings.warn(f"{why}; group the values, or leave out a column of names.", NamesWarning, stacklevel=5)


def warn_of_unseen(encoding: TableEncoding, table: pd.DataFrame, *, stacklevel: int) -> None:
    """Name the labels in rows to predict that training never saw, and numbers far outside, each with its rows."""
    for name, (rows, value) in encoding.far(table).items():
        warnings.warn(f"{far_outside(encoding, name, rows, value)}.", FarOutsideWarning, stacklevel=stacklevel)
    for name, counts in encoding.unseen(table).items():
        most = sorted(counts, key=counts.__getitem__, reverse=True)
        shown = as_list([f"{level!r} in {counts[level]} rows" for level in most[:_MOST_LEVELS_NAMED]])
        more = f" and {len(most) - _MOST_LEVELS_NAMED} more" if len(most) > _MOST_LEVELS_NAMED else ""
        seen = f"Column {name!r} holds levels that training never saw: {shown}{more}"
        sentence = f"{seen}; they are predicted as no level in particular."
        warnings.warn(sentence, UnseenLevelsWarning, stacklevel=stacklevel)


@dataclass
class OddRows:
    """Labels and numbers that training never saw the like of, counted over rows that come in pieces."""

    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)  # by column and label
    far: dict[str, tuple[int, float]] = field(default_factory=dict)  # by column, with one of the numbers
    impossible: Counter[str] = field(default_factory=Counter)  # by column: what a repaired model cannot imagine

    @classmethod
    def of(cls, model: Any, rows: pd.DataFrame) -> Self:
        """Count them in complete rows."""
        unseen = model.encoding_.unseen(rows).items()
        beyond = model.worlds.impossible(rows).items() if hasattr(model, "worlds") else ()
        return cls(
            Counter({(name, label): count for name, labels in unseen for label, count in labels.items()}),
            model.encoding_.far(rows),
            Counter({name: int(is_beyond.sum()) for name, is_beyond in beyond}),
        )

    def update(self, other: Self) -> None:
        """Add what was counted in other rows."""
        self.unseen.update(other.unseen)
        self.impossible.update(other.impossible)
        for name, (count, value) in other.far.items():
            before, example = self.far.get(name, (0, value))
            self.far[name] = before + count, example

    def sentences(self, model: Any) -> Iterator[str]:
        """Say them, a sentence each."""
        if self.unseen:
            most = self.unseen.most_common(_MOST_LABELS_NAMED)
            named = ", ".join(f"{label!r} in {column} ({count})" for (column, label), count in most)
            more = f" and {len(self.unseen) - len(most)} more" if len(self.unseen) > len(most) else ""
            yield f"training never saw these labels, of which the model knows nothing: {named}{more}."
        for name, some in self.far.items():
            yield f"{far_outside(model.encoding_, name, *some)}."
        for name, count in self.impossible.items():
            yield f"{taken_for_possible(name, count)}."

    def data(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "unseen_labels": [{"column": name, "label": label, "rows": n} for (name, label), n in self.unseen.items()],
            "far_numbers": [{"column": name, "rows": n, "example": value} for name, (n, value) in self.far.items()],
            "impossible_numbers": [{"column": name, "rows": n} for name, n in self.impossible.items()],
        }


def far_outside(encoding: TableEncoding, name: str, rows: int, value: float) -> str:
    """Say that a column's numbers are of another size than in training."""
    column: Any = encoding.only([name]).columns[0]
    usual = f"the training rows' {column.low:g} to {column.high:g}"
    return f"Column {name!r} lies far outside {usual} in {rows} rows, {value:g} for example; check its unit"


def taken_for_possible(name: str, rows: int) -> str:
    """Say what becomes of a column's numbers that a causal model cannot imagine."""
    what = f"Column {name!r} holds numbers that the causal model deems impossible, in {rows} rows"
    return f"{what}; they are taken for the nearest that it knows"


def _refuse_missing(table: pd.DataFrame, used: tuple[str, ...], otherwise: str) -> None:
    if any(table[name].hasnans for name in used):
        gaps = table[list(used)].isna()
        columns, rows = gaps.columns[gaps.any()].tolist(), f"{gaps.any(axis=1).sum()} of {len(table)} rows"
        raise InputError(f"Input contains NaN: {rows} miss a value in {columns}; drop or fill them, or {otherwise}.")


def statement_rows(
    encodings: tuple[TableEncoding, TableEncoding], table: pd.DataFrame
) -> tuple[Tensor, Tensor | None]:  # (n, d), (n, c)
    """Both sides of a statement as kernels take them."""
    right, given = encodings
    for name in (*right.names, *given.names):
        if name not in table.columns:
            raise InputError(f"The penalty needs column {name!r}, which is not in X; pass the whole table.")
    return torch.from_numpy(right.numbers(table)), torch.from_numpy(given.numbers(table)) if given.columns else None


@dataclass(frozen=True)
class FurtherInputs:
    """What a network takes beside the table: tensors first, then what the dataset holds; one entry per row each."""

    tensors: tuple[Tensor, ...] = ()
    dataset: Dataset[Any] | None = None

    @classmethod
    def of(cls, parts: Sequence[Any], n_rows: int) -> Self:
        """Sort what was passed as ``tensors``, one entry per row each."""
        if not isinstance(parts, list | tuple):
            raise InputTypeError(f"tensors must be a list, got {type(parts).__name__}; pass for example [images].")
        datasets = [part for part in parts if isinstance(part, Dataset)]
        tensors = []
        for part in (part for part in parts if not isinstance(part, Dataset)):
            with in_one_sentence("One of the tensors cannot be used", "pass numbers with one entry per row"):
                tensor = torch.as_tensor(part.to_numpy() if hasattr(part, "to_numpy") else part)
                if tensor.dim() == 0:
                    raise InputError("One of the tensors is a single number; pass one entry per row.")
            # Networks compute in single precision, numpy in double.
            tensors.append(tensor.float() if tensor.dtype == torch.float64 else tensor)
        for size in (*map(checked_length, datasets), *(len(part) for part in tensors)):
            if size != n_rows:
                raise InputError(f"One of the tensors has {size} entries for {n_rows} rows; pass one entry per row.")
        if any(isinstance(part, Dataset) for part in parts[: len(tensors)]):
            raise InputError("Tensors come before datasets among the inputs, got a dataset first; reorder them.")
        if not datasets:
            return cls(tuple(tensors))
        return cls(tuple(tensors), datasets[0] if len(datasets) == 1 else StackDataset(*datasets))

    def take(self, kept: np.ndarray) -> Self:
        """Return the entries of some rows: a mask, or positions."""
        positions = torch.from_numpy(np.flatnonzero(kept) if kept.dtype == bool else kept)
        dataset = None if self.dataset is None else Subset(self.dataset, positions.tolist())
        return type(self)(tuple(part[positions] for part in self.tensors), dataset)

    def read(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the entries of a few rows, read where they were not in memory."""
        read = () if self.dataset is None else next(read_batches(self.dataset, [rows]))
        return (*(part[rows] for part in self.tensors), *read)


@contextmanager
def naming_inputs(encoding: TableEncoding, n_further: int) -> Iterator[None]:
    """Add to an error from inside a network what the network was called with."""
    try:
        yield
    except CiplearnError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        columns = ", ".join(f"{column.name} ({column.width})" for column in encoding.columns)
        table = f"the encoded table, {encoding.width} columns wide: {columns}"
        error.add_note(f"The network was called with {table}; and with {n_further} further inputs from tensors=.")
        raise


@contextmanager
def going_on(estimator: CIPEstimator) -> Iterator[Callable[[], None]]:
    """Keep the last fit where the next one is refused; without a warm start there is nothing to keep.

    Yields a function to call when the estimator knows its columns and its target, which refuses others than the last.
    """
    before = dict(vars(estimator))
    if not estimator.warm_start or "module_" not in before:
        yield lambda: None
        return

    def refuse_others() -> None:
        last, now = _task(before), _task(vars(estimator))
        for what in last:
            if last[what] != now[what]:
                why = f"A warm start goes on from a network whose {what} are {_shortened(last[what])}"
                raise InputError(f"{why}, got {_shortened(now[what])}; pass the same {what}, or warm_start=False.")

    try:
        yield refuse_others
    except (InputError, GraphError):
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _task(fitted: Mapping[str, Any]) -> dict[str, list[Any]]:
    columns = fitted["encoding_"].columns
    task = {"inputs": [column.name for column in columns]}
    task |= {f"values of {column.name!r}": list(getattr(column, "levels", ["numbers"])) for column in columns}
    if "classes_" in fitted:
        return task | {"classes": fitted["classes_"].tolist()}
    outputs = len(fitted["target_low_"])
    return task | {"outcomes": ["one number" if outputs == 1 else f"{outputs} numbers"]}


def _shortened(values: list[Any]) -> str:
    more = [f"{len(values) - _NAMED} more"] if len(values) > _NAMED else []
    return as_list([*map(str, values[:_NAMED]), *more])
