"""How much memory a process holds beside what it uses."""

from __future__ import annotations

import ctypes
import sys

# Of mallopt, in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

# Smaller pieces are used again at once: a batch is one.
_LARGE = 1 << 20


def give_back_what_is_freed() -> None:
    """Have large pieces of memory go back to the system as soon as they are freed.

    C's allocator keeps them for later, and so does Arrow's: a process that reads a large table piece by piece would
    hold a quarter more than it ever uses at a time. Only for a process of one's own, such as a command; without glibc
    nothing changes but Arrow's.
    """
    if "pyarrow" in sys.modules:
        import pyarrow

        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
    mallopt(_TRIM_THRESHOLD, _LARGE)
