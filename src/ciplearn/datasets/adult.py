"""The Adult data: incomes of 48 842 people in the United States, from the census of 1994.

The raw files have no header, ", " between fields and "?" for what is not known. The file of test rows starts with a
comment, and its labels end in a full stop.
"""

from __future__ import annotations

import io
import os
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import NoReturn

import pandas as pd
from tqdm import tqdm

from ciplearn._core.arguments import flag, one_of
from ciplearn._core.errors import InputError, InputTypeError, MissingDataError
from ciplearn._core.files import checksum, write_file

# A folder with data that a user has; looked at before anything is downloaded.
DATA_VARIABLE = "CIPLEARN_DATA"

_HEADER = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
_OF_GRAPH = "age sex race native-country marital-status education workclass occupation hours-per-week income"
COLUMNS = tuple(_HEADER.split())
GRAPH_COLUMNS = tuple(_OF_GRAPH.split())  # those of `datasets.graphs.adult_columns`
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
INCOMES = ("<=50K", ">50K")

# What the two files are, whichever source they come from.
CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

# OpenML's table is both files in one, the test rows first, without the comment and the full stops.
_TEST_ROWS = 16_281


@dataclass(frozen=True, eq=False)
class Adult:
    """The two tables, with the same kinds of columns: numbers are whole, labels are categories with the same levels.

    >>> from ciplearn.datasets import Adult
    >>> sorted(Adult.__dataclass_fields__)
    ['left_out', 'source', 'test', 'train', 'weights']
    """

    # As UCI splits them.
    train: pd.DataFrame
    test: pd.DataFrame
    weights: pd.Series  # ``fnlwgt`` of the training rows: how many people of the population a row stands for
    left_out: int  # rows that were dropped because they miss a value
    source: str  # where the files were read


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
    all_columns, allow_download : bool
        Whether to return all 15 columns, not only those of `graphs.adult_columns`; whether the internet may be used.
    missing : "drop" or "keep"
        What to do with rows that miss a value, "?" in the files: 30 162 and 15 060 rows are complete. Kept rows hold
        NaN; estimators take them with ``missing="impute"``.

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
    source = _at_hand(allow_download) if path is None else Path(path)
    both = pd.concat({name: read_raw(text, name) for name, text in _read(source).items()}, names=["file", "row"])
    total = len(both)
    if missing == "drop":
        both = both.dropna()
    labels = [column for column in COLUMNS if column not in NUMBERS]
    both = both.astype({column: pd.CategoricalDtype(sorted(both[column].dropna().unique())) for column in labels})
    files = {str(name): rows.reset_index(drop=True) for name, rows in both.groupby(level="file")}
    if lacking := [name for name in CHECKSUMS if name not in files]:
        raise InputError(f'{lacking[0]} has no complete rows; pass missing="keep", or the files as UCI publishes them.')
    train, test = (files[name] for name in CHECKSUMS)
    columns = list(COLUMNS if all_columns else GRAPH_COLUMNS)
    return Adult(train[columns], test[columns], train["fnlwgt"], total - len(both), str(source))


def _at_hand(allow_download: bool) -> Path:
    """The folder of a user that has the files, or the cache, with the files by then."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ciplearn" / "adult"
    named = os.environ.get(DATA_VARIABLE)
    folders = [*([Path(named) / "adult", Path(named)] if named else []), cached]
    complete = [folder for folder in folders if _is_complete(folder)]
    if not complete and not allow_download:
        raise MissingDataError(
            f"The Adult data is not in {', '.join(map(str, folders))}, and downloading was not allowed; save "
            f"adult.data and adult.test from {SOURCES[0].url} in a folder and pass it as path, or name it in "
            f"{DATA_VARIABLE}."
        )
    if not complete:
        download(cached)
    return complete[0] if complete else cached


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in CHECKSUMS)


def _read(path: Path) -> dict[str, str]:
    try:
        if path.is_file():
            return {name: content.decode("utf-8") for name, content in from_zip(path.read_bytes()).items()}
        if not _is_complete(path):
            why = f"{path} holds no {' and '.join(CHECKSUMS)}"
            raise MissingDataError(f"{why}; pass the folder with both files, or UCI's adult.zip.")
        return {name: (path / name).read_text(encoding="utf-8") for name in CHECKSUMS}
    except MissingDataError:
        raise
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, OSError) as error:
        why = f"{path} does not hold the Adult data"
        raise InputError(f"{why}; pass the folder with {' and '.join(CHECKSUMS)}, or UCI's adult.zip.") from error


def read_raw(text: str, name: str) -> pd.DataFrame:
    """Return the rows of one file: whole numbers, and labels as text with None where the file says "?"."""

    def refuse(what: str) -> NoReturn:
        raise InputError(f"{name} has {what}; pass the files as UCI publishes them.")

    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("|"):
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            refuse(f"{len(fields)} fields instead of {len(COLUMNS)} in line {number}")
        fields[-1] = fields[-1].rstrip(".")
        if fields[-1] not in INCOMES:
            refuse(f"the income {fields[-1]!r} in line {number}, which is neither {' nor '.join(INCOMES)}")
        rows.append([None if field == "?" else field for field in fields])
    if not rows:
        refuse("no rows")
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    for column in NUMBERS:
        try:
            frame[column] = frame[column].astype("int64")
        except (TypeError, ValueError):
            bad = next(value for value in frame[column] if value is None or not value.lstrip("-").isdigit())
            refuse(f"the {column} {bad!r}, which is no whole number")
    return frame


@dataclass(frozen=True)
class Mirror:
    """A place on the internet, and how to make the two files out of what it sends."""

    name: str
    url: str
    files: Callable[[bytes], dict[str, bytes]]  # from the bytes received to the bytes of each file by name


def from_zip(received: bytes) -> dict[str, bytes]:
    """Take the two files out of UCI's archive."""
    with zipfile.ZipFile(io.BytesIO(received)) as archive:
        return {name: archive.read(name) for name in CHECKSUMS}


def from_arff(received: bytes) -> dict[str, bytes]:
    """Cut OpenML's table into the two files, to the byte."""
    _, _, body = received.decode("utf-8").partition("@data")
    rows = [line for line in body.splitlines() if line.strip()]
    test = ["|1x3 Cross validator", *(f"{line}." for line in rows[:_TEST_ROWS])]
    data = rows[_TEST_ROWS:]
    return {name: "\n".join([*lines, "", ""]).encode() for name, lines in zip(CHECKSUMS, (data, test), strict=True)}


SOURCES = (
    Mirror("UCI", "https://archive.ics.uci.edu/static/public/2/adult.zip", from_zip),
    Mirror("OpenML", "https://api.openml.org/data/v1/download/1595261/adult.arff", from_arff),
)


def download(folder: Path, sources: tuple[Mirror, ...] = SOURCES) -> None:
    """Put both files into ``folder``, from the first source that has them unchanged.

    Raises `MissingDataError` if none has; the folder then holds nothing new.
    """
    failures = []
    for source in sources:
        try:
            files = source.files(_received(source))
            for name, expected in CHECKSUMS.items():
                if (actual := checksum(files[name])) != expected:
                    raise InputError(f"{name} has the checksum {actual[:12]}… instead of {expected[:12]}…")
        # KeyError: an archive without the files; UnicodeDecodeError and the like are ValueErrors.
        except (OSError, HTTPException, zipfile.BadZipFile, KeyError, ValueError) as error:
            reason = "the archive lacks the files" if isinstance(error, KeyError) else getattr(error, "reason", None)
            failures.append(f"{source.name}: {reason or error}")
            continue
        try:
            for name, content in files.items():
                write_file(folder / name, content)
        except InputError as error:
            why = f"The Adult data cannot be kept: {str(error).split(';')[0]}"
            raise InputError(f"{why}; free or permit that folder, or set XDG_CACHE_HOME to another.") from error
        return
    raise MissingDataError(
        f"The Adult data could not be downloaded ({'; '.join(failures)}); save adult.data and adult.test from "
        f"{SOURCES[0].url} in a folder and pass it as path, or name the folder in CIPLEARN_DATA."
    )


def _received(source: Mirror) -> bytes:
    request = urllib.request.Request(source.url, headers={"User-Agent": "ciplearn"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        size, blocks = int(answer.headers.get("Content-Length") or 0), []
        title = f"Adult from {source.name}"
        with tqdm(total=size or None, desc=title, unit="B", unit_scale=True, disable=None, leave=False) as bar:
            while block := answer.read(1 << 16):
                blocks.append(block)
                bar.update(len(block))
    received = b"".join(blocks)
    if len(received) < size:
        raise OSError(f"the connection broke off after {len(received)} of {size} bytes")
    return received
