"""Short names for computations, so that nothing old is taken for something new."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import ciplearn

_LIBRARY, _HERE = Path(ciplearn.__file__).parent, Path(__file__).parent

# Rooms of the library, and files of this package, that a training or a measurement can depend on.
_ROOMS = "_core baselines causal datasets estimators evaluation kernels learning penalties routes scm"
_FILES = ("adult_models", "cases", "dsprites_trainings", "image_network", "in_batch", "methods", "trainings")
_COMPUTATIONS = (
    *(_LIBRARY / room for room in [*_ROOMS.split(), "experiments/speed.py"]),
    *(_HERE / f"{name}.py" for name in _FILES),
    _HERE / "sprites",
)

# What a study makes of its trainings: claims, tables, figures.
_JUDGEMENTS = (_LIBRARY / "experiments", _HERE)


def of_computation(*parts: object) -> str:
    """A digest of the parts' ``repr`` and of the code that trains and measures."""
    return _digest(_code(_COMPUTATIONS), *parts)


def of_result(*parts: object) -> str:
    """A digest of the parts' ``repr`` and of all code behind a result."""
    return _digest(code(), *parts)


def code() -> str:
    """A digest of all code behind a result."""
    return _code(_COMPUTATIONS + _JUDGEMENTS)


def of_function(function: Callable[..., Any]) -> str:
    """A digest of a function's text, for what a study's own code decides; arguments bound to it are not in it."""
    bare = function.func if isinstance(function, partial) else function
    return _digest(inspect.getsource(bare))


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(repr(part) for part in parts).encode()).hexdigest()[:16]


@cache
def _code(places: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.relative_to(place.parent).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
