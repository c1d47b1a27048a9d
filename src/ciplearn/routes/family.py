"""`Family`: predictors along one strength, measured alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from ciplearn.evaluation.predictors import Predictor
from ciplearn.routes.part import Part

Array = np.ndarray[Any, Any]

# What a predictor without a constraint, and one that is only shown, are called.
FREE, BASELINE = "unconstrained", "baseline"


@dataclass(frozen=True, eq=False)
class Candidate:
    """One predictor of a family."""

    name: str  # unlike any other's
    kind: str  # its route, "unconstrained" or "baseline"
    rests_on: str
    model: Any  # fitted
    make: Callable[[Part], Any]  # trains it on other rows
    learner: str = "network"
    # How strongly it is kept from following A, in the route's own unit.
    gamma: float | None = None
    share: float | None = None
    strength: float | None = None

    def about(self) -> dict[str, Any]:
        """Return what a row of the comparison says of it before anything is measured."""
        names = ("name", "kind", "learner", "gamma", "share", "strength", "rests_on")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Family:
    """Candidates of one route and learner, and their answers to the same rows."""

    candidates: tuple[Candidate, ...]
    reads: tuple[str, ...]  # the columns that all of them need
    along: Callable[[pd.DataFrame], Array]  # (n, candidates, q): a number, a probability, or one per class
    complete: bool = False  # whether only rows that miss no value are answered: the worlds of others are unknown

    @classmethod
    def of(cls, candidates: Sequence[Candidate], columns: Sequence[str]) -> Self:
        """Return candidates that are asked one after the other."""
        asked = [Predictor.of(one.model, list(columns), None, None) for one in candidates]
        reads = tuple(dict.fromkeys(name for predictor in asked for name in predictor.inputs))

        def along(frame: pd.DataFrame) -> Array:
            return np.stack([predictor(frame) for predictor in asked], axis=1)

        return cls(tuple(candidates), reads, along)

    def flat(self, frame: pd.DataFrame) -> Array:  # (n, candidates q)
        """Return the answers of all candidates side by side."""
        return self.along(frame).reshape(len(frame), -1)
