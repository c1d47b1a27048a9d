"""Predictors of income on the Adult data: ours over gammas, and the baselines, trained and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from tqdm import tqdm

from ciplearn.baselines import CF1, CF2, PSCF, NaivePredictor
from ciplearn.causal import CausalGraph
from ciplearn.datasets import graphs
from ciplearn.estimators import CIPClassifier
from ciplearn.estimators.preparation import Prepared
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.experiments.reproduction.in_batch import InBatchHSCIC
from ciplearn.experiments.reproduction.methods import DEFAULT, Training
from ciplearn.experiments.reproduction.study import Conditions
from ciplearn.scm import EstimatedModel, VariationalLatent, fit_scm

OUTCOME = "income"
PROTECTED = ("age", "sex")
NAIVE, FIRST_LEVEL, THIRD_LEVEL, PATHS = "naive", "CF1", "CF2", "PSCF"
BASELINES = (NAIVE, FIRST_LEVEL, THIRD_LEVEL, PATHS)

# The paper gives the predictor one tanh layer; its width, which is not printed, is taken from the autoencoders.
PAPER_HIDDEN = (20,)

# Baselines whose answer to a row takes many networks are asked about fewer draws.
_SLOW = (THIRD_LEVEL, PATHS)

# Draws of PSCF's own latents that each of its answers averages over.
PATH_DRAWS = 10

# Where baselines are trained: small networks are quicker on processes than one by one on a device.
_BESIDE = "cpu"

# The causes of marital status, education and work that nobody has observed.
_LATENT = ("H_m", "H_d", "H_r")


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on and rows to measure on, outcome included."""

    train: pd.DataFrame
    test: pd.DataFrame

    def seen(self, rows: pd.DataFrame) -> pd.DataFrame:
        """What predictors may read."""
        return rows.drop(columns=OUTCOME)


def estimated_model(split: Split, latent: VariationalLatent, seed: int) -> EstimatedModel:
    """The paper's model of Adult: an autoencoder for each unobserved cause.

    Race and native country share a cause in the graph. No intervention on age or sex reaches either, so that which of
    them comes first makes no difference; an arrow between them spares a fourth autoencoder.
    """
    drawn = graphs.adult_columns()
    edges = [*drawn.directed, ("race", "native-country")]
    graph = CausalGraph.from_edges(edges, nodes=drawn.nodes, latent=drawn.latent)
    return fit_scm(graph, split.train, mechanisms=dict.fromkeys(_LATENT, latent), random_state=seed)


@dataclass(frozen=True)
class Measurement:
    """What VCF is taken over: d points, k interventions each, m draws of what a row leaves open."""

    points: int
    interventions: int
    draws: int


@dataclass(frozen=True)
class Trial:
    """What predictors are trained and measured on, and how.

    Attributes
    ----------
    split : Split
    scm : EstimatedModel
        Whose counterfactuals VCF is taken over.
    training : Training
        Of the paper's networks and the baselines'.
    default_training : Training
        Of the default's.
    measurement : Measurement
    slow_draws : int
        Draws of the latent nodes for baselines that are slow to ask.
    seeds : sequence of int
    conditions : Conditions
    """

    split: Split
    scm: EstimatedModel
    training: Training
    default_training: Training
    measurement: Measurement
    slow_draws: int
    seeds: Sequence[int]
    conditions: Conditions

    def ours(self, method: str, gammas: Sequence[float]) -> pd.DataFrame:
        """Train a method at each gamma with each seed; one row a predictor, with scores and VCF."""
        pairs = [(gamma, seed) for gamma in gammas for seed in self.seeds]
        names = [{"method": method, "gamma": gamma, "seed": seed} for gamma, seed in pairs]
        training = self.default_training if method == DEFAULT else self.training
        model = _ours(method, training, self.conditions.device)
        prepared = Prepared.of(model, self.split.seen(self.split.train), self.split.train[OUTCOME])
        # One stack also on a CPU: steps of networks this small are mostly overhead, which they share.
        fitted = prepared.stacked(pairs, verbose=self.conditions.progress)
        for one in fitted:
            # Processes ask them next, and what lies on a device cannot travel.
            one.module_ = one.module_.cpu()
        return self._measured(names, fitted, self.measurement)

    def baselines(self) -> pd.DataFrame:
        """Train every baseline with each seed; as `ours`, with gamma 0."""
        made = [(name, seed, model) for seed in self.seeds for name, model in _baselines(self.training, seed).items()]
        fitted = self._fitted([model for _, _, model in made])
        fewer = replace(self.measurement, draws=self.slow_draws)
        tables = []
        for slow, asked in ((False, self.measurement), (True, fewer)):
            chosen = [place for place, (name, _, _) in enumerate(made) if (name in _SLOW) == slow]
            names = [{"method": made[place][0], "gamma": 0.0, "seed": made[place][1]} for place in chosen]
            tables.append(self._measured(names, [fitted[place] for place in chosen], asked))
        return pd.concat(tables, ignore_index=True)

    def _measured(self, names: list[dict[str, Any]], models: list[Any], measurement: Measurement) -> pd.DataFrame:
        found = variance_of_counterfactuals(
            {str(place): model for place, model in enumerate(models)},
            self.scm,
            self.split.test,
            PROTECTED,
            measurement.points,
            measurement.interventions,
            self.conditions.seed,
            inputs=list(self.split.seen(self.split.test).columns),
            n_draws=measurement.draws,
            n_jobs=self.conditions.jobs,
        )
        rows = [
            {**name, **scores(model, self.split), "vcf": vcf.value}
            for name, model, vcf in zip(names, models, found.values(), strict=True)
        ]
        return pd.DataFrame(rows)

    def _fitted(self, models: list[Any]) -> list[Any]:
        done = Parallel(n_jobs=self.conditions.jobs, return_as="generator")(
            delayed(_fit)(model, self.split) for model in models
        )
        watched = self.conditions.progress
        return list(tqdm(done, total=len(models), desc="training", unit="fit", disable=not watched))


def scores(model: Any, split: Split) -> dict[str, float]:
    """Accuracy, balanced accuracy and area under the curve on the test rows."""
    truth = (split.test[OUTCOME] == model.classes_[1]).to_numpy()
    probability = model.predict_proba(split.seen(split.test))[:, 1]
    said = probability > 0.5
    return {
        "accuracy": float(accuracy_score(truth, said)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, said)),
        "auc": float(roc_auc_score(truth, probability)),
    }


def _ours(method: str, training: Training, device: str) -> CIPClassifier:
    model = CIPClassifier(graph=graphs.adult_columns(), outcome=OUTCOME, protected=PROTECTED, device=device)
    model.set_params(**vars(training))
    if method == DEFAULT:
        return model.set_params(gamma_scale=1.0)  # gammas are plain weights of the penalty in both methods
    return model.set_params(hidden=PAPER_HIDDEN, penalty=InBatchHSCIC.paper())


def _baselines(training: Training, seed: int) -> dict[str, Any]:
    roles: dict[str, Any] = {"graph": graphs.adult_columns(), "outcome": OUTCOME, "protected": list(PROTECTED)}
    common = {**roles, **vars(training), "hidden": PAPER_HIDDEN, "device": _BESIDE, "random_state": seed}
    return {
        NAIVE: NaivePredictor(**common),
        FIRST_LEVEL: CF1(**common),
        THIRD_LEVEL: CF2(**common, regress_on="protected"),  # as the paper does
        PATHS: PSCF(**common, n_draws=PATH_DRAWS),
    }


def _fit(model: Any, split: Split) -> Any:
    torch.set_num_threads(1)
    return model.fit(split.seen(split.train), split.train[OUTCOME])


def draw_split(train: pd.DataFrame, test: pd.DataFrame, rows: int | None, seed: int) -> Split:
    """Take a sample of the training rows, or all of them."""
    if rows is None or rows >= len(train):
        return Split(train, test)
    chosen = np.sort(np.random.default_rng(seed).choice(len(train), rows, replace=False))
    return Split(train.iloc[chosen].reset_index(drop=True), test)
