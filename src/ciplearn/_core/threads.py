"""`on_one_thread`: a function whose linear algebra takes one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_one_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function that works on many small matrices.

    On several threads they are slower than on one: by half on idle cores, ten times on busy ones.
    """
    limited: Callable[Arguments, Result] = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return limited
