"""What a column of a table holds, decided here and nowhere else: numbers, or labels of categories; tables as frames.

The rule of kinds: a column holds numbers if its values are numbers, be it as objects; booleans, text and pandas
categories are labels. A label is its text without blanks around it; a whole number reads the same with and without a
fraction of zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.errors import InputError, InputTypeError

Array = np.ndarray[Any, Any]
LARGEST_WHOLE = 2**53  # beyond, a double does not tell one whole number from the next
_WRITTEN_OUT = 10**21  # whole numbers below are written without an exponent
MISSING = "\0missing"  # a name that no level can have

# Two equal values of these types in an object column have the same label.
_EQUAL_READS_EQUAL = {str, float, type(None), type(pd.NA)}

_SMALLEST = 1e-12  # a label that was held impossible costs this much: −log of it is 27.6
_WRITTEN_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
NUMBER, CATEGORY = "number", "category"
REGRESSION, CLASSIFICATION = "regression", "classification"

# In the words of pandas.
_NUMBERS_AS_OBJECTS = ("floating", "integer", "mixed-integer-float", "decimal")
_TIMES = ("date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period")

_FEW_VALUES = 10  # numbers of more values have distances that matter; whole numbers of so few may be codes
_MOST_GROUPS = 50  # with more groups than this, groups are too small to compare their laws
_SEVERAL_VALUES = (list, set, dict, np.ndarray)  # what is no single value
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(?:\.0*)?")


def distinct_labels(column: pd.Series) -> tuple[list[str], Array]:  # (n,)
    """Labels that occur, perhaps twice, and for each row the place of its label among them."""
    # One number per row, the same only where labels are the same; none where equal values may have two labels.
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        values = column.cat.codes.to_numpy().astype(np.int64) + 1
    else:
        # True == 1 == Decimal(1), an Enum may equal its text, and some kinds of float read 0.0 and -0.0 as two.
        if pd.api.types.is_object_dtype(kind):
            reads_equal = set(map(type, column.to_numpy())) <= _EQUAL_READS_EQUAL
        else:
            whole = pd.api.types.is_integer_dtype(kind) or pd.api.types.is_bool_dtype(kind)
            reads_equal = whole or kind == np.float64 or isinstance(kind, pd.StringDtype)
        if not reads_equal:
            return _labels(column), np.arange(len(column))
        values = pd.factorize(column)[0] + 1
    # A row that has the value; a category that no row has takes the first row's label, which occurs.
    rows = np.zeros(values.max(initial=-1) + 1, dtype=np.int64)
    rows[values] = np.arange(len(column))
    return _labels(column.iloc[rows]), values


def _labels(column: pd.Series) -> list[str]:
    return [MISSING if missing else label_of(value) for value, missing in zip(column, column.isna(), strict=True)]


def label_of(value: Any) -> str:
    """Return the label that a value has."""
    # Text is what survives a round trip through a file. A whole number reads the same where a gap in the column made
    # it a float; a far larger one would have digits that nobody wrote.
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _WRITTEN_OUT
    return str(int(value)) if whole else str(value).strip()


def written_number(label: str) -> bool:
    """Whether a label is a number as people write it."""
    return _WRITTEN_NUMBER.fullmatch(label) is not None


def log_losses(probabilities: np.ndarray, places: np.ndarray) -> np.ndarray:  # (n, classes), (n,) -> (n,)
    """−log of the right class's probability; a place of −1 is a class that training has not seen."""
    right = np.where(places >= 0, probabilities[np.arange(len(places)), places], 0.0)
    return -np.log(np.maximum(right, _SMALLEST))


def holds_numbers(column: pd.Series) -> bool:
    """Whether a column holds numbers, be it as objects; else it holds labels. See `check_cells` for what is refused."""
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return True
    check_cells(column)
    return pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS_AS_OBJECTS


def check_cells(column: pd.Series) -> None:
    """Refuse what is neither a number nor a label: times, complex numbers, lists."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in _TIMES:
        why = f"Column {column.name!r} holds dates or times ({kind})"
        raise InputError(f"{why}; convert them to numbers, say of days since a start.")
    if kind == "complex":
        raise InputError(f"Column {column.name!r} holds complex numbers; pass real and imaginary part as two columns.")
    if kind == "mixed" and any(isinstance(value, _SEVERAL_VALUES) for value in column):
        raise InputError(f"Column {column.name!r} holds lists or the like; convert them to numbers or labels.")


def mixes_kinds(labels: pd.Series) -> bool:
    """Whether labels are of several kinds, text beside numbers for example, which cannot be put in order."""
    return pd.api.types.infer_dtype(labels, skipna=True) in ("mixed", "mixed-integer")


def takes_few_values(column: pd.Series) -> bool:
    """Whether a column holds categories, or numbers that take so few values that they can be compared as groups."""
    return not holds_numbers(column) or column.nunique() <= _FEW_VALUES


def form_groups(table: pd.DataFrame, names: Sequence[str]) -> bool:
    """Whether the rows of some columns are few enough to be compared as groups."""
    chosen = table[list(names)]
    if not all(takes_few_values(chosen[name]) for name in chosen.columns):
        return False
    return len(chosen.drop_duplicates()) <= min(_MOST_GROUPS, max(2, len(table) // 2))


def task_of(outcome: pd.Series) -> str:
    """Return what an outcome asks for: classification of labels and of exactly two values, else regression."""
    return REGRESSION if holds_numbers(outcome) and outcome.nunique() != 2 else CLASSIFICATION


def number_classes(numbers: Array) -> Array:
    """Return different numbers as classes: whole numbers where all of them are, else their labels."""
    if ((numbers == numbers.round()) & (np.abs(numbers) <= LARGEST_WHOLE)).all():
        return numbers.astype(np.int64)
    return np.array([label_of(number) for number in numbers.tolist()])


def as_target(column: pd.Series, task: str, classes: Array | None = None) -> pd.Series:
    """Return labels as whole numbers where they are, as text where not; numbers for regression.

    Where the classes of a model are passed, a number is the class that has it, and one that none has stands for itself.
    """
    if task == REGRESSION or not holds_numbers(column):
        return column
    learnt = number_classes(column.unique().astype(float)) if classes is None else classes
    labels = dict(zip(learnt.astype(float).tolist(), learnt.tolist(), strict=True))
    alone = float if learnt.dtype.kind == "i" else str
    return column.map(lambda number: labels.get(number, alone(number)))


def looks_like_codes(column: pd.Series) -> bool:
    """Whether a column holds whole numbers 0, 1, 2, ... or 1, 2, 3, ... without a gap, and few of them."""
    values = sorted(column.dropna().unique())
    few = 2 <= len(values) <= _FEW_VALUES and values[0] in (0, 1)
    # 0 and 1 are two groups, whether they are taken for amounts or for codes.
    return few and values != [0, 1] and values == list(range(int(values[0]), int(values[0]) + len(values)))


def as_numbers(column: pd.Series) -> pd.Series:
    """Return a column of numbers as floats, with NaN for what is missing."""
    numbers = pd.Series(column.to_numpy(dtype=float, na_value=np.nan), index=column.index, name=column.name)
    blurred = _blurred(column, numbers)
    if blurred.any():
        raise InputError(
            f"Column {column.name!r} holds {column[blurred].iloc[0]}, and numbers beyond 2**53 are not told from their "
            "neighbours; convert labels to text, and rescale amounts."
        )
    return numbers


def text_as_numbers(column: pd.Series) -> pd.Series | None:
    """Return a column of text as numbers, or None where a value that is there does not read as one."""
    numbers = read_numbers(column)
    return None if (numbers.isna() & column.notna()).any() else numbers


def read_numbers(column: pd.Series) -> pd.Series:
    """Return the floats next to what text says, NaN for text that is no number, or one that no float is equal to."""
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    if column.dtype.kind == "O":
        # Before pandas 3.1 to_numeric misses the last digit of every third number.
        present = numbers.notna()
        numbers[present] = column[present].astype(float)
    return numbers.mask(_blurred(column, numbers))


def in_kinds(table: pd.DataFrame, kinds: Mapping[str, str], where: str, first_row: int = 1) -> pd.DataFrame:
    """Return columns as training knew them; what does not read as a number where one is due is named with its row."""
    columns = {}
    for name, kind in kinds.items():
        column = table[name]
        numbers = None if kind == CATEGORY else text_as_numbers(column)
        if kind != CATEGORY and numbers is None:
            row = int((read_numbers(column).isna() & column.notna()).to_numpy().argmax())
            raise InputError(
                f"Column {name!r} of {where} held numbers in training, got {column.iloc[row]!r} in row "
                f"{first_row + row}; correct it, or leave the cell empty."
            )
        columns[name] = column if numbers is None else numbers
    return pd.DataFrame(columns, index=table.index)


def _blurred(column: pd.Series, numbers: pd.Series) -> Array:  # (n,)
    """Which cells are whole numbers that no float is equal to."""
    blurred = np.zeros(len(column), dtype=bool)
    if column.dtype.kind == "f":
        return blurred
    large = np.flatnonzero((numbers.abs() >= LARGEST_WHOLE) & np.isfinite(numbers))
    for row, cell, number in zip(large, column.iloc[large], numbers.iloc[large], strict=True):
        whole = _WHOLE_NUMBER.fullmatch(str(cell).strip())
        blurred[row] = whole is not None and int(whole[1]) != int(number)
    return blurred


def as_frame(X: Any) -> pd.DataFrame | None:
    """Return a pandas frame with text labels for a pandas or polars frame, None for anything else."""
    refuse_lazy(X)
    if isinstance(X, pd.DataFrame):
        # New labels take pandas as long as a network takes for some hundred rows.
        labels = X.columns.tolist()
        frame = X if all(type(label) is str for label in labels) else X.set_axis(list(map(str, labels)), axis=1)
    elif hasattr(X, "get_column") and hasattr(X, "columns"):  # polars, without importing it
        frame = pd.DataFrame({str(name): X.get_column(name).to_list() for name in X.columns})
    else:
        return None
    repeated = frame.columns[frame.columns.duplicated()].tolist()
    if repeated:
        raise InputError(f"X has several columns of the same name, got {repeated} more than once; rename them.")
    objects = [name for name, kind in frame.dtypes.items() if pd.api.types.is_object_dtype(kind)]
    return frame.assign(**{name: _plain(frame[name]) for name in objects})


def refuse_lazy(X: Any) -> None:
    """Refuse a table whose rows are yet to be computed: every look at it would compute them anew."""
    if _is_lazy(X):
        raise InputTypeError(f"A {type(X).__name__} has no rows yet; pass what its collect() returns.")


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "collect") and hasattr(X, "collect_schema") and not hasattr(X, "get_column")


def checked_table(table: Any, name: str) -> pd.DataFrame:
    """Return ``table`` if it is a pandas frame whose columns have names of their own."""
    if not isinstance(table, pd.DataFrame):
        kind, advice = f"{type(table).__module__}.{type(table).__name__}".removeprefix("builtins."), "the table"
        if _is_lazy(table) or hasattr(table, "to_pandas"):
            advice = f"what its {'collect().' if _is_lazy(table) else ''}to_pandas() returns"
        raise InputTypeError(f"{name} must be a pandas DataFrame, got {kind}; pass {advice}.")
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{name} has several columns named {repeated[0]!r}; rename all but one of them.")
    return table


def _plain(column: pd.Series) -> pd.Series:
    """Return numbers that came as objects, as from a database or an array of objects, in a type of their own."""
    try:
        return as_numbers(column) if holds_numbers(column) else column
    except InputError:
        # Refused where the column is used; it may well not be.
        return column
