"""How large a packed table is once it is unpacked, found out without holding it."""

from __future__ import annotations

import gzip
import io
import zlib

_BLOCK = 1 << 20

# Rows of a Parquet file that are held at a time.
_ROWS = 1024


def unpacks_beyond(name: str, content: bytes, largest: int) -> bool:
    """Whether a table has more bytes than the limit, packed or unpacked; one that cannot be read has none."""
    if name.lower().endswith(".gz"):
        return _gzip_beyond(content, largest)
    return len(content) > largest or (name.lower().endswith(".parquet") and _parquet_beyond(content, largest))


def _gzip_beyond(content: bytes, largest: int) -> bool:
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while size <= largest and (block := stream.read(_BLOCK)):
                size += len(block)
    except (OSError, EOFError, zlib.error):
        return False
    return size > largest


def _parquet_beyond(content: bytes, largest: int) -> bool:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        # Then the reader cannot read it either, and says what is missing.
        return False
    size = 0
    try:
        file = ParquetFile(io.BytesIO(content))
        # A cell that is repeated costs nothing in the file, and two bytes at least as text.
        if 2 * file.metadata.num_rows * file.metadata.num_columns > largest:
            return True
        for batch in file.iter_batches(batch_size=_ROWS):
            size += batch.nbytes
            if size > largest:
                return True
    except (ArrowException, OSError):
        return False
    return False
