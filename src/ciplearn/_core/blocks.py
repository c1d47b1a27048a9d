"""Rows in blocks that stay in cache while they are worked on."""

from __future__ import annotations

# What a small network's layers return for so many rows stays in cache.
ROWS_IN_CACHE = 4096


def row_blocks(n: int, size: int = ROWS_IN_CACHE) -> list[slice]:
    """Cut n rows into blocks of ``size``, the last of which also takes up to half a block more, or half a block less.

    Matrix products round by a row's place in its block, and in another way where rows are few. Blocks of a power of two
    of rows, and none that is small, answer as all rows at once do.
    """
    starts = [size * place for place in range(max(1, round(n / size)))]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], n], strict=True)]
