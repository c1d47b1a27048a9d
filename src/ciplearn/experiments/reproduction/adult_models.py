"""Predictors of income on the Adult data: ours over gammas, and the rivals, trained and measured seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from tqdm import tqdm

from ciplearn.baselines import CF1, CF2, PSCF, NaivePredictor
from ciplearn.causal import CausalGraph
from ciplearn.datasets import graphs
from ciplearn.estimators import CIPClassifier
from ciplearn.estimators.stacking import can_stack, fit_stacked
from ciplearn.experiments.reproduction.adult_counterfactuals import Imagining, vcf_of_each
from ciplearn.experiments.reproduction.in_batch import InBatchHSCIC
from ciplearn.experiments.reproduction.methods import DEFAULT, Training
from ciplearn.experiments.reproduction.study import Conditions
from ciplearn.penalties import HSCIC
from ciplearn.scm import EstimatedModel, VariationalLatent, fit_scm

OUTCOME = "income"
PROTECTED = ("age", "sex")
NAIVE, FIRST_LEVEL, SECOND_LEVEL, PATHS = "naive", "CF1", "CF2", "PSCF"
RIVALS = (NAIVE, FIRST_LEVEL, SECOND_LEVEL, PATHS)

# The paper gives the predictor one tanh layer; its width, which is not printed, is taken from the autoencoders.
_PAPER_HIDDEN = (20,)

# Rivals whose answer to a row takes many networks are asked about fewer draws.
_SLOW = (SECOND_LEVEL, PATHS)

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


def measured(
    split: Split,
    scm: EstimatedModel,
    gammas: Mapping[str, Sequence[float]],
    training: Training,
    imagining: Imagining,
    slow_draws: int,
    seed: int,
    conditions: Conditions,
) -> pd.DataFrame:
    """Train every predictor with one seed and measure it; one row a predictor.

    Parameters
    ----------
    split : Split
    scm : EstimatedModel
        Whose counterfactuals VCF is taken over.
    gammas : mapping from method to gammas
    training : Training
        Of every network, the rivals' too.
    imagining : Imagining
    slow_draws : int
        Draws of the latent nodes for rivals that are slow to ask.
    seed : int
    conditions : Conditions

    Returns
    -------
    DataFrame
        ``method``, ``gamma`` (0 for rivals), ``seed``, ``accuracy``, ``balanced_accuracy``, ``auc`` and ``vcf``.
    """
    names: list[tuple[str, float]] = []
    models: list[Any] = []
    for method, values in gammas.items():
        names += [(method, gamma) for gamma in values]
        models += _fitted_over(_ours(method, training, conditions.device), split, values, seed, conditions)
    rivals = _rivals(training, seed, conditions.device)
    names += [(name, 0.0) for name in rivals]
    models += _fitted(list(rivals.values()), split, conditions)
    spreads: dict[tuple[str, float], float] = {}
    for slow in (False, True):
        chosen = [place for place, (name, _) in enumerate(names) if (name in _SLOW) == slow]
        asked = Imagining(imagining.points, imagining.interventions, slow_draws) if slow else imagining
        variances = vcf_of_each(
            [models[place] for place in chosen],
            scm,
            split.test,
            PROTECTED,
            asked,
            seed,
            jobs=conditions.jobs,
            progress=conditions.progress,
        )
        spreads |= {names[place]: float(row.mean()) for place, row in zip(chosen, variances, strict=True)}
    rows = [
        {"method": name, "gamma": gamma, "seed": seed, **scores(model, split), "vcf": spreads[name, gamma]}
        for (name, gamma), model in zip(names, models, strict=True)
    ]
    return pd.DataFrame(rows)


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
        return model
    model.set_params(hidden=_PAPER_HIDDEN)
    if device == "cuda":
        return model.set_params(penalty=InBatchHSCIC.paper())
    return model.set_params(penalty=HSCIC.paper(), prepare_once=False)


def _rivals(training: Training, seed: int, device: str) -> dict[str, Any]:
    roles: dict[str, Any] = {"graph": graphs.adult_columns(), "outcome": OUTCOME, "protected": list(PROTECTED)}
    common = {**roles, **vars(training), "hidden": _PAPER_HIDDEN, "device": device, "random_state": seed}
    return {
        NAIVE: NaivePredictor(**common),
        FIRST_LEVEL: CF1(**common),
        SECOND_LEVEL: CF2(**common),
        PATHS: PSCF(**common),
    }


def _fitted_over(
    model: CIPClassifier, split: Split, gammas: Sequence[float], seed: int, conditions: Conditions
) -> list[Any]:
    if can_stack(model):
        pairs = [(gamma, seed) for gamma in gammas]
        return list(
            fit_stacked(model, split.seen(split.train), split.train[OUTCOME], pairs, progress=conditions.progress)
        )
    return _fitted([clone(model).set_params(gamma=gamma, random_state=seed) for gamma in gammas], split, conditions)


def _fitted(models: Sequence[Any], split: Split, conditions: Conditions) -> list[Any]:
    # One process on a device: it does not share itself out.
    jobs = conditions.jobs if conditions.device == "cpu" else 1
    done = Parallel(n_jobs=jobs, return_as="generator")(delayed(_fit)(model, split) for model in models)
    return list(tqdm(done, total=len(models), desc="training", unit="fit", disable=not conditions.progress))


def _fit(model: Any, split: Split) -> Any:
    torch.set_num_threads(1)
    return model.fit(split.seen(split.train), split.train[OUTCOME])


def draw_split(train: pd.DataFrame, test: pd.DataFrame, rows: int | None, seed: int) -> Split:
    """Take a sample of the training rows, or all of them."""
    if rows is None or rows >= len(train):
        return Split(train, test)
    chosen = np.sort(np.random.default_rng(seed).choice(len(train), rows, replace=False))
    return Split(train.iloc[chosen].reset_index(drop=True), test)
