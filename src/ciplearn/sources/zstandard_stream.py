"""Text that was compressed with zstandard, as a stream that tells where it was cut short."""

from __future__ import annotations

import io
from typing import IO, Any

from ciplearn._core.errors import MissingDependencyError

# Compressed bytes at a time; what they become is held in memory.
_BLOCK = 1 << 14


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
