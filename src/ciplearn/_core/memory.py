"""How much memory a process holds beside what it uses."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

# Of mallopt, in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

# Smaller pieces are used again at once: a batch is one.
_LARGE = 1 << 20


def give_back_what_is_freed() -> None:
    """Have large pieces of memory go back to the system as soon as they are freed.

    C's allocator keeps them for later, and so does Arrow's: a process that reads a table piece by piece would hold a
    quarter more than it uses. Only for a process of one's own, such as a command; without glibc only Arrow's changes.
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


def give_back_what_is_free() -> None:
    """Have free memory between pieces that are in use go back to the system too: small pieces leave such gaps."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return


class _Later(ModuleType):
    """A module that is loaded when something in it is asked for.

    `importlib.util.LazyLoader` loads at any attribute, also at those that libraries read off everything in
    ``sys.modules``: the module would be loaded before the first command begins.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":
            # Who only looks at what is loaded does not ask for the module's content.
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        module = importlib.import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


def put_off(name: str) -> None:
    """Have a module be loaded not where it is imported, but where something in it is first asked for.

    scikit-learn imports scipy.stats, which takes 40 MB, for those who ask for a mode. Only for a process of one's own.
    """
    if name not in sys.modules:
        module = _Later(name)
        module.__spec__ = importlib.util.find_spec(name)
        sys.modules[name] = module
