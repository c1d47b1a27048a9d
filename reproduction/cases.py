"""A data-generating process of the paper, sampled, scaled to [0, 1] and split; and one judge for all its predictors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.encoding import TableEncoding
from ciplearn.causal import Independence
from ciplearn.datasets import MinMaxScaling
from ciplearn.estimators import CIPRegressor
from ciplearn.evaluation.counterfactual_rows import Points
from ciplearn.evaluation.interventions import InterventionLaw, squared_deviations
from ciplearn.kernels import Gaussian
from ciplearn.penalties import HSCIC, HSIC, Penalty
from ciplearn.scm import StructuralCausalModel
from ciplearn.scm.kinds import Array

OUTCOME = "Y"
PROTECTED = "A"

_TRAIN_SHARE = 0.8

# For columns scaled to [0, 1].
PAPER_HSIC = HSIC(Gaussian(0.1), Gaussian(0.1))


@dataclass(frozen=True, eq=False)
class Case:
    """Rows of a process, every column scaled to [0, 1], the outcome included.

    Attributes
    ----------
    scm : StructuralCausalModel
        Of the scaled columns.
    train, test : DataFrame
        80 % and 20 % of the rows.
    """

    scm: StructuralCausalModel
    train: pd.DataFrame
    test: pd.DataFrame

    @classmethod
    def draw(cls, scm: StructuralCausalModel, rows: int, seed: int) -> Case:
        """Sample, scale and split."""
        raw = scm.sample(rows, random_state=seed)
        scaling = MinMaxScaling.fit(raw)
        table, cut = scaling.transform(raw), int(_TRAIN_SHARE * rows)
        return cls(scaling.model(scm), table.iloc[:cut], table.iloc[cut:])

    @property
    def inputs(self) -> list[str]:
        """Every observed column but the outcome."""
        return [name for name in self.train.columns if name != OUTCOME]

    def independence(self) -> Independence:
        """What the graph asks for, in columns."""
        statement = self.scm.graph.criterion(outcome=OUTCOME, protected=[PROTECTED]).independence
        return Independence(right=self.scm.columns(statement.right), given=self.scm.columns(statement.given))


class Judge:
    """Asks predictors about the same test rows and the same counterfactual rows, which are made once.

    Parameters
    ----------
    case : Case
    points, interventions : int
        d and k of the variance of counterfactuals.
    seed : int
    device : str
        Where networks answer.
    independence : Independence, optional
        What the criterion is measured for, where it is not what the graph asks for.
    """

    def __init__(
        self,
        case: Case,
        points: int,
        interventions: int,
        seed: int,
        device: str = "cpu",
        independence: Independence | None = None,
    ) -> None:
        self.case = case
        self.device = device
        # The outcome is left out: no predictor reads it, and where a hidden cause leaves it open, one draw of it would
        # tell nothing.
        generator, columns = np.random.default_rng(seed), case.scm.columns([PROTECTED])
        self._points = Points.of(case.scm, case.test, [PROTECTED], case.inputs, generator, n_points=points, n_draws=1)
        self._law = InterventionLaw.of_rows(case.test[columns], interventions)
        values = self._law.draw(self._points.n, generator).values
        self.worlds = self._points.counterfactuals(values, self._law.k, generator).reset_index(drop=True)
        statement = independence or case.independence()
        criterion: Penalty = HSCIC.paper() if statement.given else PAPER_HSIC
        given = self._numbers(statement.given) if statement.given else None
        self._criterion = criterion.prepare(self._numbers(statement.right), given)
        self._encoded: dict[TableEncoding, Tensor] = {}

    def mse(self, model: Any) -> float:
        """Mean squared error on the test rows."""
        return float(np.mean(np.square(self._predicted(model) - self.case.test[OUTCOME].to_numpy())))

    def hscic(self, model: Any) -> float:
        """The paper's criterion, HSCIC or, where nothing is conditioned on, HSIC, on the test rows."""
        return float(self._criterion(torch.tensor(self._predicted(model))))

    def vcf(self, model: Any) -> float:
        """Variance over values of A of the answer for one point, averaged over points."""
        answers = self._answers(model).reshape(self._points.n, -1, 1, 1)
        squares = squared_deviations(answers, self._law.weights, self._law.correction)
        return float((squares[:, :, 0] @ self._law.weights).mean())

    def measures(self, model: Any) -> dict[str, float]:
        """All three."""
        return {"mse": self.mse(model), "hscic": self.hscic(model), "vcf": self.vcf(model)}

    def __getstate__(self) -> dict[str, Any]:
        # Processes encode for themselves: what lies on a device cannot travel.
        return {**self.__dict__, "_encoded": {}}

    def _predicted(self, model: Any) -> Array:
        return np.asarray(model.predict(self.case.test[self.case.inputs]), dtype=np.float64)

    def _answers(self, model: Any) -> Array:
        if not isinstance(model, CIPRegressor):
            return np.asarray(model.predict(self.worlds[self.case.inputs]), dtype=np.float64)
        # The networks of a frontier share their encoding, so a million rows are encoded and moved once for all.
        if model.encoding_ not in self._encoded:
            self._encoded[model.encoding_] = torch.from_numpy(model.encoding_.features(self.worlds)).to(self.device)
        with torch.no_grad():
            scaled = model.module_.to(self.device)(self._encoded[model.encoding_])[:, 0].double().cpu().numpy()
        return np.asarray(model.target_low_[0] + scaled * model.target_range_[0])

    def _numbers(self, columns: tuple[str, ...]) -> Tensor:
        return torch.tensor(self.case.test[list(columns)].to_numpy())
