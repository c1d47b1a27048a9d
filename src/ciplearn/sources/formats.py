"""Formats of tables: how text is packed and laid out, what Arrow holds in a column, and why a file cannot be read."""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import LARGEST_WHOLE
from ciplearn._core.errors import InputError, optional_module

# How the names of packed files end -> what pandas calls the packing; what it does not unpack is read as a stream.
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": None}

_BLOCK = 1 << 14  # compressed bytes at a time; what they become is held in memory

# First bytes of what people take for a table of text.
_BEGINNINGS = {
    b"PK\x03\x04": "an Excel file or another archive; in the spreadsheet, save it as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "an old Excel file; in the spreadsheet, save it as CSV UTF-8",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"PAR1": "a Parquet file; pass it by a name that ends in .parquet",
    b"\x1f\x8b": "compressed; pass it by a name that ends in .csv.gz",
}


def unpacked_name(path: Path) -> str:
    """Return the name of a file in small letters, without the ending that says how it is packed."""
    name = path.name.lower()
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in PACKED else name


def separator_of(path: Path) -> str:
    """Return what parts the cells of a file where nothing else is said: a tab in ``.tsv`` files, else a comma."""
    return "\t" if unpacked_name(path).endswith((".tsv", ".tab")) else ","


def first_row_width(content: Any, reading: dict[str, Any]) -> int | None:
    """Count the cells of the first row; None where a stream that can be read only once does not have all of it at hand.

    ``reading``: arguments of `pandas.read_csv`.
    """
    start = content
    again = not isinstance(content, Path) and content.seekable()
    if not isinstance(content, Path) and not again:
        lines = content.peek()
        start = io.BytesIO(lines[: lines.rfind(b"\n") + 1])
    try:
        return int(pd.read_csv(start, nrows=1, **reading).shape[1])
    except (pd.errors.EmptyDataError, pd.errors.ParserError):
        # Whoever reads the rows says what is wrong.
        return None
    finally:
        if again:
            content.seek(0)


class ZstandardStream(io.RawIOBase):
    """The bytes behind compressed ones, frame after frame.

    zstandard's own reader ends without a word where a file was cut short, so that rows would be lost.

    ``packed``: stays open when this one is closed.
    """

    def __init__(self, packed: IO[bytes]) -> None:
        advice = "pip install zstandard, or pass .csv.gz"
        self._library = optional_module("zstandard", "Files that end in .zst need zstandard", advice)
        self._packed, self._unpacker = packed, self._library.ZstdDecompressor()
        self._frame: Any = None
        self._ahead, self._bytes = b"", b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, target: Any) -> int:
        """Fill a buffer as far as one block goes, and return how far."""
        while not self._bytes and self._advance():
            pass
        size = min(len(target), len(self._bytes))
        target[:size], self._bytes = self._bytes[:size], self._bytes[size:]
        return size

    def _advance(self) -> bool:
        """Unpack one more block; False after the last."""
        block = self._ahead or self._packed.read(_BLOCK)
        if not block:
            if self._frame is not None:
                raise EOFError("the compressed text ends too early")
            return False
        self._frame = self._frame or self._unpacker.decompressobj()
        try:
            self._bytes = self._frame.decompress(block)
        except self._library.ZstdError as error:
            raise EOFError(str(error)) from error
        self._ahead = self._frame.unused_data if self._frame.eof else b""
        self._frame = None if self._frame.eof else self._frame
        return True


def arrow_cells(
    name: str, array: Any, where: str, labels: Collection[str] = (), missing: Sequence[str] = ()
) -> pd.Series:
    """Return a column of Arrow's: numbers as they are, all else and what is asked for as labels as text."""
    from pyarrow import string, types
    from pyarrow.compute import if_else, min_max

    if types.is_nested(array.type):
        why = f"Column {name!r} of {where} holds {array.type}, not one value per row"
        raise InputError(f"{why}; spread it over several columns.")
    if name not in labels and is_numeric(array.type):
        # As objects beside gaps where floats would lose digits.
        exact = types.is_integer(array.type) and array.null_count and array.type.bit_width == 64
        ends = min_max(array).as_py().values() if exact else ()
        large = any(value is not None and abs(value) > LARGEST_WHOLE for value in ends)
        return array.to_pandas(integer_object_nulls=large)
    if name not in labels and (types.is_duration(array.type) or types.is_time(array.type)):
        why = f"Column {name!r} of {where} holds dates or times ({array.type})"
        raise InputError(f"{why}; convert them to numbers, say of days.")
    held = array.dictionary if types.is_dictionary(array.type) else array
    # As Python writes booleans, and with it frames and CSV files.
    text = (if_else(held, "True", "False") if types.is_boolean(held.type) else held.cast(string())).to_pandas()
    if held is not array:
        # A label stays one object however many rows have it: written out, a few bytes of a file could fill the memory.
        codes = array.indices.fill_null(len(text)).to_numpy(zero_copy_only=False)
        text = pd.Series(np.array([*text, None], dtype=object)[codes], dtype=object)
    return text.mask(text.isin(list(missing))) if missing else text


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow's is one of numbers."""
    from pyarrow import types

    return types.is_floating(kind) or types.is_integer(kind)


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
        # A stream, which is read once, has only the bytes that were no text.
        first = error.object
        if path.is_file():
            with path.open("rb") as stream:
                first = stream.read(4)
        kinds = (kind for beginning, kind in _BEGINNINGS.items() if first.startswith(beginning))
        what = next(kinds, "not UTF-8 text; save the table as UTF-8 or Parquet")
        raise InputError(f"{path} is {what}.") from error
    except pd.errors.ParserError as error:
        raise InputError(f"{path} is no regular table: {_in_plain_words(str(error))}; correct that line.") from error
    except (ValueError, ArithmeticError, NotImplementedError, KeyError, AssertionError) as error:
        # The last two: of a link and of a folder in an archive.
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a table: {error}; pass a CSV, TSV or Parquet file.") from error


def _in_plain_words(message: str) -> str:
    """What pandas says about a line, in words of those who do not know its parser."""
    if match := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        expected, line, seen = match.groups()
        return f"line {line} has {seen} cells, and those above have {expected}"
    if match := re.search(r"EOF inside string starting at row (\d+)", message):
        return f"a quotation mark opens in line {int(match[1]) + 1} and is never closed"
    return message.strip()
