"""Intervals and sets of labels around the strict predictor, which are the same in every world."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ciplearn._core.arguments import share
from ciplearn._core.errors import InputError
from ciplearn.evaluation.any_model import bare
from ciplearn.scm.kinds import Array


@dataclass(frozen=True, eq=False)
class Conformal:
    """Scores of rows that the model was not trained on: |y − f̄| of numbers, 1 − f̄_y of labels.

    With n such rows and a new one in any order, the new score is at most the ⌈(n + 1) c⌉-th smallest with probability
    at least c. So y lies within that radius of f̄ with at least that probability, and as f̄ is the same in every world,
    so are the interval and the set.
    """

    scores: Array  # (n,), sorted

    @classmethod
    def of(cls, truth: Array, strict: Array, classes: Array | None) -> Conformal:  # (n,), (n, q)
        """Score rows by their outcome."""
        if classes is None:
            return cls(np.sort(np.abs(truth.astype(float) - strict[:, 0])))
        known = {bare(label): place for place, label in enumerate(classes)}
        codes = np.array([known.get(bare(label), -1) for label in truth], dtype=int)
        # A label that the model does not know is never in a set.
        return cls(np.sort(np.where(codes < 0, np.inf, 1 - strict[np.arange(len(codes)), np.maximum(codes, 0)])))

    def radius(self, coverage: float) -> float:
        """Return the ⌈(n + 1) c⌉-th smallest score; infinity where the rows are too few for so much."""
        if not 0 < share(coverage, "coverage") < 1:
            raise InputError(f"coverage must lie between 0 and 1, got {coverage!r}; pass for example 0.9.")
        place = math.ceil((len(self.scores) + 1) * coverage - 1e-9)
        return float(self.scores[place - 1]) if place <= len(self.scores) else math.inf
