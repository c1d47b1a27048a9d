"""VCF of many predictors at once: each counterfactual row is made a single time and shown to all of them.

Making a row (a draw of the latent nodes, five estimated mechanisms) costs more than asking a network about it, and the
paper's setting has fifty million rows: 1000 points, 100 interventions, 500 draws.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from torch import Tensor
from tqdm import tqdm

from ciplearn._core.blocks import row_blocks
from ciplearn._core.columns import TableEncoding
from ciplearn.estimators import CIPClassifier
from ciplearn.evaluation.counterfactual_rows import Points
from ciplearn.evaluation.draws import Empirical
from ciplearn.scm import StructuralCausalModel
from ciplearn.scm.kinds import Array


@dataclass(frozen=True)
class Imagining:
    """What VCF is taken over: d points, k interventions each, m draws of what a row leaves open."""

    points: int
    interventions: int
    draws: int


def vcf_of_each(
    models: Sequence[Any],
    scm: StructuralCausalModel,
    rows: pd.DataFrame,
    protected: Sequence[str],
    imagining: Imagining,
    seed: int,
    *,
    device: str = "cpu",
    jobs: int = 1,
    progress: bool = False,
) -> Array:  # (models, points)
    """Variance over interventions of each model's prediction at each point; its mean over points is the model's VCF.

    Parameters
    ----------
    models : sequence of classifiers
        The probability of the second class counts.
    scm : StructuralCausalModel
    rows : DataFrame
        Points are drawn from these rows, and the protected values that are imagined.
    protected : sequence of str
    imagining : Imagining
    seed : int
    device : str
        Where networks answer; rows are made on processes all the same.
    jobs : int
        Processes that share the points.
    progress : bool
    """
    generator = np.random.default_rng(seed)
    points = Points.of(_nobody, scm, rows, protected, imagining.points, imagining.draws, None, None, generator)
    law = Empirical(rows[list(protected)].reset_index(drop=True))
    parts = list(points.chunks(imagining.interventions))
    seeds = np.random.SeedSequence(seed).spawn(len(parts))
    tasks = (
        delayed(_variances)(models, _only(points, places), law, imagining.interventions, own, device)
        for places, own in zip(parts, seeds, strict=True)
    )
    done = Parallel(n_jobs=jobs, return_as="generator")(tasks)
    return np.concatenate(list(tqdm(done, total=len(parts), desc="counterfactuals", disable=not progress)), axis=1)


def _variances(
    models: Sequence[Any], points: Points, law: Empirical, k: int, seed: np.random.SeedSequence, device: str
) -> Array:  # (models, points)
    torch.set_num_threads(1)
    generator = np.random.default_rng(seed)
    frame = points.had_been(np.arange(points.n), k, law.draw(points.n, k, generator), generator)
    panel = Panel(frame.reset_index(drop=True), device)
    variances = []
    for model in models:
        answers = points.averaged(panel.answers(model), points.n, k)[:, :, 0]
        # Relative to the first answer: a prediction that never changes then has variance zero to the last bit.
        variances.append((answers - answers[:, :1]).var(axis=1, ddof=law.ddof))
    return np.stack(variances)


class Panel:
    """Counterfactual rows that many predictors are asked about; what networks share is encoded once."""

    def __init__(self, frame: pd.DataFrame, device: str = "cpu") -> None:
        self.frame, self.device = frame, device
        self._encoded: dict[TableEncoding, Tensor] = {}

    def answers(self, model: Any) -> Array:  # (n,)
        """The second class's probability of each row."""
        if not isinstance(model, CIPClassifier):
            return np.asarray(model.predict_proba(self.frame)[:, 1])
        if model.encoding_ not in self._encoded:
            self._encoded[model.encoding_] = torch.from_numpy(model.encoding_.features(self.frame)).to(self.device)
        features = self._encoded[model.encoding_]
        network = copy.deepcopy(model.module_).to(self.device)
        blocks = row_blocks(len(features)) if self.device == "cpu" else [slice(None)]
        with torch.no_grad():
            scores = torch.cat([network(features[rows])[:, 0] for rows in blocks])
        return np.asarray(torch.sigmoid(scores).double().cpu().numpy())


def _only(points: Points, places: Array) -> Points:
    return Points(points.scm, points.predictor, points.rows.iloc[:0], points.units.take(places))


def _nobody(frame: pd.DataFrame) -> Array:
    return np.zeros(len(frame))
