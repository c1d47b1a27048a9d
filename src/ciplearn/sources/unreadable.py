"""Why a file cannot be read as a table, in one sentence for those who saved it."""

from __future__ import annotations

import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from ciplearn._core.errors import InputError

# First bytes of what people take for a table of text.
_BEGINNINGS = {
    b"PK\x03\x04": "an Excel file or another archive; in the spreadsheet, save it as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "an old Excel file; in the spreadsheet, save it as CSV UTF-8",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"PAR1": "a Parquet file; pass it by a name that ends in .parquet",
    b"\x1f\x8b": "compressed; pass it by a name that ends in .csv.gz",
}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty; pass a table with a header and rows.") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}; pass another file.") from error
    except UnicodeDecodeError as error:
        what = _known_beginning(path, error.object) or "not UTF-8 text; save the table as UTF-8 or Parquet"
        raise InputError(f"{path} is {what}.") from error
    except pd.errors.ParserError as error:
        raise InputError(f"{path} is no regular table: {_in_plain_words(str(error))}; correct that line.") from error
    except (ValueError, ArithmeticError, NotImplementedError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a table: {error}; pass a CSV, TSV or Parquet file.") from error


def _known_beginning(path: Path, first: bytes) -> str | None:
    """What a file is by its first bytes; a stream, which is read once, has only those that were no text."""
    if path.is_file():
        with path.open("rb") as stream:
            first = stream.read(4)
    return next((what for bytes_, what in _BEGINNINGS.items() if first.startswith(bytes_)), None)


def _in_plain_words(message: str) -> str:
    """What pandas says about a line, in words of those who do not know its parser."""
    if match := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        expected, line, seen = match.groups()
        return f"line {line} has {seen} cells, and those above have {expected}"
    if match := re.search(r"EOF inside string starting at row (\d+)", message):
        return f"a quotation mark opens in line {int(match[1]) + 1} and is never closed"
    return message.strip()
