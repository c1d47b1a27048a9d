"""The Adult data: incomes of 48 842 people in the United States, from the census of 1994.

The raw files have no header, ", " between fields and "?" for what is not known. The file of test rows starts with a
comment, and its labels end in a full stop.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ciplearn._core.choices import flag, one_of
from ciplearn._core.errors import InputError, InputTypeError, MissingDataError
from ciplearn.datasets.adult_download import CHECKSUMS, SOURCES, download, from_zip

# A folder with data that a user has; looked at before anything is downloaded.
DATA_VARIABLE = "CIPLEARN_DATA"

# The columns of `datasets.graphs.adult_columns`.
GRAPH_COLUMNS = (
    "age",
    "sex",
    "race",
    "native-country",
    "marital-status",
    "education",
    "workclass",
    "occupation",
    "hours-per-week",
    "income",
)

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)

INCOMES = ("<=50K", ">50K")


@dataclass(frozen=True, eq=False)
class Adult:
    """The two tables, with the same kinds of columns: numbers are whole, labels are categories with the same levels.

    Attributes
    ----------
    train, test : DataFrame
        As UCI splits them.
    weights : Series
        ``fnlwgt`` of the training rows: how many people of the population a row stands for.
    left_out : int
        Rows that were dropped because they miss a value.
    source : str
        Where the files were read.

    Examples
    --------
    >>> from ciplearn.datasets import Adult
    >>> sorted(Adult.__dataclass_fields__)
    ['left_out', 'source', 'test', 'train', 'weights']
    """

    train: pd.DataFrame
    test: pd.DataFrame
    weights: pd.Series
    left_out: int
    source: str


def load_adult(
    path: str | os.PathLike[str] | None = None,
    *,
    all_columns: bool = False,
    missing: str = "drop",
    allow_download: bool = True,
) -> Adult:
    """Read the Adult data, and download it first where it is not at hand.

    Parameters
    ----------
    path : path, optional
        The folder with ``adult.data`` and ``adult.test``, or the archive ``adult.zip`` of UCI. By default the folder
        that the environment variable CIPLEARN_DATA names, or ``adult`` in it, then the cache; if the files are in none
        of these they are downloaded into the cache, from UCI or else from OpenML, and checked.
    all_columns : bool
        Whether to return all 15 columns, not only those of `datasets.graphs.adult_columns`.
    missing : "drop" or "keep"
        What to do with rows that miss a value, "?" in the files: 30 162 and 15 060 rows are complete. Kept rows hold
        NaN; estimators take them with ``missing="impute"``.
    allow_download : bool
        Whether the internet may be used.

    Examples
    --------
    >>> from ciplearn.datasets import load_adult
    >>> adult = load_adult()  # doctest: +SKIP
    >>> adult.train.shape, adult.test.shape  # doctest: +SKIP
    ((30162, 10), (15060, 10))
    """
    one_of(missing, "missing", ("drop", "keep"))
    flag(all_columns, "all_columns")
    flag(allow_download, "allow_download")
    if path is not None and not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be a file or folder, got {path!r}; pass its name.")
    texts, source = _texts(path, allow_download)
    tables = {name: read_raw(text, name) for name, text in texts.items()}
    both = pd.concat(tables, names=["file", "row"])
    total = len(both)
    if missing == "drop":
        both = both.dropna()
    labels = [column for column in COLUMNS if column not in NUMBERS]
    both = both.astype({column: pd.CategoricalDtype(sorted(both[column].dropna().unique())) for column in labels})
    train, test = (_of_file(both, name) for name in CHECKSUMS)
    columns = list(COLUMNS if all_columns else GRAPH_COLUMNS)
    return Adult(train[columns], test[columns], train["fnlwgt"], total - len(both), source)


def cache_folder() -> Path:
    """Return where downloaded data is kept: ``ciplearn`` under XDG_CACHE_HOME, or under .cache of the home folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ciplearn"


def _of_file(both: pd.DataFrame, name: str) -> pd.DataFrame:
    if name not in both.index.get_level_values("file"):
        raise InputError(f'{name} has no complete rows; pass missing="keep", or the files as UCI publishes them.')
    return both.xs(name, level="file").reset_index(drop=True)


def _texts(path: str | os.PathLike[str] | None, allow_download: bool) -> tuple[dict[str, str], str]:
    if path is not None:
        return _read(Path(path)), str(path)
    cached = cache_folder() / "adult"
    named = os.environ.get(DATA_VARIABLE)
    folders = [*([Path(named) / "adult", Path(named)] if named else []), cached]
    for folder in folders:
        if _is_complete(folder):
            return _read(folder), str(folder)
    if not allow_download:
        raise MissingDataError(
            f"The Adult data is not in {', '.join(map(str, folders))}, and downloading was not allowed; save "
            f"adult.data and adult.test from {SOURCES[0].url} in a folder and pass it as path, or name it in "
            f"{DATA_VARIABLE}."
        )
    download(cached)
    return _read(cached), str(cached)


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in CHECKSUMS)


def _read(path: Path) -> dict[str, str]:
    try:
        if path.is_file():
            return {name: content.decode("utf-8") for name, content in from_zip(path.read_bytes()).items()}
        if not _is_complete(path):
            raise MissingDataError(
                f"{path} holds no {' and '.join(CHECKSUMS)}; pass the folder with both files, or UCI's adult.zip."
            )
        return {name: (path / name).read_text(encoding="utf-8") for name in CHECKSUMS}
    except MissingDataError:
        raise
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, OSError) as error:
        raise InputError(
            f"{path} does not hold the Adult data; pass the folder with {' and '.join(CHECKSUMS)}, or UCI's adult.zip."
        ) from error


def read_raw(text: str, name: str) -> pd.DataFrame:
    """Return the rows of one file: whole numbers, and labels as text with None where the file says "?".

    ``name``: what messages call the file.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("|"):
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            raise InputError(
                f"{name} has {len(fields)} fields instead of {len(COLUMNS)} in line {number}; pass the files as UCI "
                "publishes them."
            )
        fields[-1] = fields[-1].rstrip(".")
        if fields[-1] not in INCOMES:
            raise InputError(
                f"{name} has the income {fields[-1]!r} in line {number}, which is neither {' nor '.join(INCOMES)}; "
                "pass the files as UCI publishes them."
            )
        rows.append([None if field == "?" else field for field in fields])
    if not rows:
        raise InputError(f"{name} has no rows; pass the files as UCI publishes them.")
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.assign(**{column: _whole(frame[column], column, name) for column in NUMBERS})


def _whole(column: pd.Series, title: str, name: str) -> pd.Series:
    try:
        return column.astype("int64")
    except (TypeError, ValueError) as error:
        bad = next(value for value in column if value is None or not value.lstrip("-").isdigit())
        raise InputError(
            f"{name} has the {title} {bad!r}, which is no whole number; pass the files as UCI publishes them."
        ) from error
