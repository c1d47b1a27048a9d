"""Short names for computations, so that nothing old is taken for something new."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import ciplearn

# Rooms, and files of this package, that a training or a measurement can depend on.
_COMPUTATIONS = (
    "_core",
    "baselines",
    "causal",
    "datasets",
    "estimators",
    "evaluation",
    "kernels",
    "learning",
    "penalties",
    "routes",
    "scm",
    "experiments/image_network.py",
    "experiments/speed.py",
    "experiments/reproduction/adult_models.py",
    "experiments/reproduction/cases.py",
    "experiments/reproduction/dsprites_trainings.py",
    "experiments/reproduction/in_batch.py",
    "experiments/reproduction/methods.py",
    "experiments/reproduction/trainings.py",
)

# What a study makes of its trainings: claims, tables, figures.
_JUDGEMENTS = ("experiments",)


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
def _code(places: tuple[str, ...]) -> str:
    root = Path(ciplearn.__file__).parent
    digest = hashlib.sha256()
    for place in places:
        files = sorted((root / place).rglob("*.py")) if (root / place).is_dir() else [root / place]
        for path in files:
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
