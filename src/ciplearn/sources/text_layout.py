"""How a table of text is packed and laid out: what unpacks it, what parts its cells, how many its first row has."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

import pandas as pd

from ciplearn._core.errors import MissingDependencyError

# How the names of packed files end -> what pandas calls the packing; what it does not unpack is read as a stream.
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": None}

# Compressed bytes at a time; what they become is held in memory.
_BLOCK = 1 << 14


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
        try:
            from zstandard import ZstdDecompressor
        except ImportError as error:
            raise MissingDependencyError(
                "Files that end in .zst need zstandard, which is not installed; pip install zstandard, or pass .csv.gz."
            ) from error
        self._packed, self._unpacker = packed, ZstdDecompressor()
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
        from zstandard import ZstdError

        block = self._ahead or self._packed.read(_BLOCK)
        if not block:
            if self._frame is not None:
                raise EOFError("the compressed text ends too early")
            return False
        self._frame = self._frame or self._unpacker.decompressobj()
        try:
            self._bytes = self._frame.decompress(block)
        except ZstdError as error:
            raise EOFError(str(error)) from error
        self._ahead = self._frame.unused_data if self._frame.eof else b""
        self._frame = None if self._frame.eof else self._frame
        return True
