"""How large a packed table is once it is unpacked, found out without holding it."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any

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
        about = ParquetFile(io.BytesIO(content))
        columns = [about.schema.column(place) for place in range(len(about.schema))]
        # Text that is repeated stays as it is in the file: the text once, and its number in every row.
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        file = ParquetFile(io.BytesIO(content), read_dictionary=texts)
        # A cell that is repeated costs nothing in the file, and two bytes at least as text.
        if 2 * file.metadata.num_rows * file.metadata.num_columns > largest:
            return True
        for batch in file.iter_batches(batch_size=_ROWS):
            size += sum(map(_written_out, batch.columns))
            if size > largest:
                return True
    except (ArrowException, OSError):
        return False
    return False


def _written_out(column: Any) -> int:
    """Bytes of a column of Arrow's with each label written out in every row."""
    from pyarrow import compute, types

    if not types.is_dictionary(column.type):
        return int(column.nbytes)
    labels = column.dictionary
    if not (types.is_string(labels.type) or types.is_large_string(labels.type) or types.is_binary(labels.type)):
        return int(labels.nbytes) // max(1, len(labels)) * len(column)
    lengths = compute.take(compute.binary_length(labels), column.indices)
    return int(column.indices.nbytes) + int(compute.sum(lengths).as_py() or 0)
