"""A training as it is sent to workers: everything it needs, and what it leaves."""

from __future__ import annotations

import os
from dataclasses import dataclass

from torch import nn

from ciplearn._core.workers import Workers
from ciplearn.learning.dataset_rows import Rows
from ciplearn.learning.invariance import Invariance
from ciplearn.learning.loop import Fit, Validation, train
from ciplearn.learning.objectives import Objective
from ciplearn.learning.settings import TrainingSettings


@dataclass(frozen=True)
class TrainingTask:
    """The arguments of `train`; every worker calls it, and all end with the same weights."""

    module: nn.Module
    rows: Rows
    objective: Objective
    settings: TrainingSettings
    invariance: Invariance | None
    validation: Validation | None
    checkpoint: str | os.PathLike[str] | None
    verbose: bool

    def __call__(self, workers: Workers) -> Fit:
        """Train together with others."""
        return train(
            self.module,
            self.rows,
            self.objective,
            self.settings,
            self.invariance,
            self.validation,
            checkpoint=self.checkpoint,
            verbose=self.verbose,
            workers=workers,
        )
