import numpy as np
import pytest

from ciplearn._core.rows import row_blocks


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 48, 49, 64, 95, 1000])
def test_blocks_hold_every_row_once_in_order_and_none_is_small(n):
    blocks = row_blocks(n, 32)
    assert np.concatenate([np.arange(n)[block] for block in blocks]).tolist() == list(range(n))
    sizes = [block.stop - block.start for block in blocks]
    assert all(size == 32 for size in sizes[:-1])
    assert sizes[-1] == n or 16 <= sizes[-1] <= 48
