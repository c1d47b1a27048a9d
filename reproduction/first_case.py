"""The first synthetic process and its frontier, which three results of the paper rest on."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ciplearn.datasets import first_synthetic
from reproduction.cases import Case, Judge
from reproduction.methods import Training
from reproduction.study import Conditions
from reproduction.trainings import frontiers


@dataclass(frozen=True)
class FrontierSettings:
    """Of a frontier over gammas and seeds.

    Attributes
    ----------
    rows : int
        80 % train, 20 % test.
    gammas : tuple of float
    seeds, epochs, batch_size : int
    learning_rate : float
    points, interventions : int
        d and k of the variance of counterfactuals.
    """

    rows: int
    gammas: tuple[float, ...]
    seeds: int
    epochs: int
    batch_size: int = 256
    learning_rate: float = 1e-3
    points: int = 1000
    interventions: int = 500

    @property
    def training(self) -> Training:
        """How each network is trained."""
        return Training(self.epochs, self.batch_size, self.learning_rate)


FIRST = {
    "quick": FrontierSettings(
        rows=2500,
        gammas=(0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 5.0),
        seeds=2,
        epochs=60,
        batch_size=128,
        learning_rate=2e-3,
        points=300,
        interventions=100,
    ),
    "paper": FrontierSettings(
        rows=10_000,
        gammas=(0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 5.0, 10.0),
        seeds=10,
        epochs=1000,
    ),
}

# The paper prints numbers of this process in one table only: n = 3000, 100 epochs; here × 10³.
PAPER_PRINTS = {0.5: {"mse": "1.64 ± 0.22", "vcf": "1.05 ± 0.13"}, 1.0: {"mse": "2.50 ± 0.72", "vcf": "0.35 ± 0.19"}}


def measure_first(settings: FrontierSettings, conditions: Conditions) -> dict[str, pd.DataFrame]:
    """Train both methods over gammas on the first process, or read what has been trained."""
    case = Case.draw(first_synthetic(), settings.rows, conditions.seed)
    judge = Judge(case, settings.points, settings.interventions, conditions.seed, conditions.device)
    seeds = conditions.seeds(settings.seeds)
    table = frontiers("first", settings, case, judge, settings.gammas, seeds, settings.training, conditions)
    return {"frontier": table}
