"""Predictors of income on the Adult data: the paper's, ours by every route, and the baselines, trained and measured.

Two causal models are estimated, on different rows: one imagines the rows that the counterfactual route trains with, the
other judges all predictors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from ciplearn.baselines import CF1, CF2, PSCF, NaivePredictor
from ciplearn.causal import CausalGraph
from ciplearn.datasets import graphs
from ciplearn.estimators import CIPClassifier
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LINE, Prepared
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.routes import compare_routes
from ciplearn.scm import EstimatedModel, VariationalLatent, fit_scm
from reproduction.in_batch import InBatchHSCIC
from reproduction.methods import PAPER, Training
from reproduction.study import Conditions

OUTCOME = "income"
PROTECTED = ("age", "sex")
NAIVE, FIRST_LEVEL, THIRD_LEVEL, PATHS = "naive", "CF1", "CF2", "PSCF"
ON_PARENTS = "CF2 on parents"
BASELINES = (NAIVE, FIRST_LEVEL, THIRD_LEVEL, ON_PARENTS, PATHS)
AUTO = "auto"

# Trained at each gamma.
PENALISED = (PAPER, INDEPENDENCE, COUNTERFACTUAL)

# Curves, in the order in which they are shown.
CURVES = (*PENALISED, LINE)

# The paper gives the predictor one tanh layer; its width, which is not printed, is taken from the autoencoders.
PAPER_HIDDEN = (20,)

# Draws of PSCF's own latents that each of its answers averages over.
PATH_DRAWS = 10

# Where processes train: small networks are quicker there than one by one on a device.
_BESIDE = "cpu"

# The causes of marital status, education and work that nobody has observed.
_LATENT = ("H_m", "H_d", "H_r")


@dataclass(frozen=True)
class AdultSettings:
    """Of the fairness experiment.

    Attributes
    ----------
    rows, judging_rows : int or None
        Training rows, a sample of the 30 162, and of the 15 060 test rows those that judge VCF; None takes all. Scores
        are taken on all test rows.
    seeds : int
    paper_gammas : tuple of float
        Plain weights of the paper's penalty.
    route_gammas : tuple of float
        Of the independence and the counterfactual route, relative as they are by default.
    shares : tuple of float
        Of the straight line.
    epochs, batch_size : int
    learning_rate : float
        Of the paper's networks and the baselines'.
    route_epochs : int
        Of our routes, whose networks are larger; all else is the default's.
    auto_rows : int
        Training rows that routes are compared on to choose one.
    latent_epochs : int
        Of the autoencoders; all else about them is the paper's.
    points, interventions, draws : int
        d, k and the draws of the latent nodes, the same for every predictor.
    """

    rows: int | None
    judging_rows: int | None
    seeds: int
    paper_gammas: tuple[float, ...]
    route_gammas: tuple[float, ...]
    shares: tuple[float, ...]
    epochs: int
    route_epochs: int
    auto_rows: int
    latent_epochs: int
    points: int
    interventions: int
    draws: int
    batch_size: int = 128
    learning_rate: float = 1e-3

    @property
    def training(self) -> Training:
        """Of the paper's networks and the baselines'."""
        return Training(self.epochs, self.batch_size, self.learning_rate)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, rows to score on and those of them that judge VCF, outcome included."""

    train: pd.DataFrame
    test: pd.DataFrame
    judging: pd.DataFrame

    @classmethod
    def draw(cls, train: pd.DataFrame, test: pd.DataFrame, rows: int | None, judging: int | None, seed: int) -> Split:
        """Take samples, or all."""
        return cls(_sample(train, rows, seed), test, _sample(test, judging, seed))

    @staticmethod
    def seen(rows: pd.DataFrame) -> pd.DataFrame:
        """What predictors may read."""
        return rows.drop(columns=OUTCOME)


def estimated_model(rows: pd.DataFrame, latent: VariationalLatent, seed: int) -> EstimatedModel:
    """The paper's model of Adult: an autoencoder for each unobserved cause.

    Race and native country share a cause in the graph. No intervention on age or sex reaches either, so that which of
    them comes first makes no difference; an arrow between them spares a fourth autoencoder.
    """
    torch.set_num_threads(1)
    drawn = graphs.adult_columns()
    edges = [*drawn.directed, ("race", "native-country")]
    graph = CausalGraph.from_edges(edges, nodes=drawn.nodes, latent=drawn.latent)
    return fit_scm(graph, rows, mechanisms=dict.fromkeys(_LATENT, latent), random_state=seed)


@dataclass(frozen=True, eq=False)
class Trial:
    """What predictors are trained and measured on, and how; each method's table has one row per predictor."""

    split: Split
    settings: AdultSettings
    conditions: Conditions

    def table(self, method: str) -> pd.DataFrame:
        """Train a method with each seed, at each gamma or share where it has such, and measure."""
        _ = self._beside  # begins
        if method in BASELINES:
            return self._measured([{"method": method, "seed": seed} for seed in self.seeds], self._baseline(method))
        if method == AUTO:
            chosen, model = self._made[2]
            return self._measured([{"method": AUTO, "setting": chosen, "seed": self.conditions.seed}], [model])
        return self._line() if method == LINE else self._penalised(method)

    @property
    def seeds(self) -> range:
        """One per predictor of a kind."""
        return self.conditions.seeds(self.settings.seeds)

    def _penalised(self, method: str) -> pd.DataFrame:
        gammas = self.settings.paper_gammas if method == PAPER else self.settings.route_gammas
        pairs = [(gamma, seed) for gamma in gammas for seed in self.seeds]
        names = [{"method": method, "setting": f"γ = {g:g}", "gamma": g, "seed": seed} for g, seed in pairs]
        return self._measured(names, self._stacked(method, pairs))

    def _line(self) -> pd.DataFrame:
        names, models = [], []
        for seed, free in zip(self.seeds, self._stacked(INDEPENDENCE, [(0.0, s) for s in self.seeds]), strict=True):
            for one in self._prepared(INDEPENDENCE).line(free, self.settings.shares):
                one.module_ = one.module_.cpu()
                share = one.share_
                names.append({"method": LINE, "setting": f"{share:.0%} kept", "share": share, "seed": seed})
                models.append(one)
        return self._measured(names, models)

    def _stacked(self, method: str, pairs: Sequence[tuple[float, int]]) -> list[Any]:
        # One stack also on a CPU: steps of networks this small are mostly overhead, which they share.
        fitted = self._prepared(method).stacked(pairs, verbose=self.conditions.verbose)
        for one in fitted:
            # Processes ask them next, and what lies on a device cannot travel.
            one.module_ = one.module_.cpu()
        return list(fitted)

    def _prepared(self, method: str) -> Prepared:
        return Prepared.of(self._estimator(method), self.split.seen(self.split.train), self.split.train[OUTCOME])

    def _estimator(self, method: str) -> CIPClassifier:
        own, training = self.settings, self.settings.training
        model = CIPClassifier(
            graph=graphs.adult_columns(), outcome=OUTCOME, protected=PROTECTED, device=self.conditions.device
        )
        if method == PAPER:
            as_printed: dict[str, Any] = {"hidden": PAPER_HIDDEN, "invariant_path": False, "schedule": "constant"}
            return model.set_params(**vars(training), **as_printed, penalty=InBatchHSCIC.paper())
        model.set_params(epochs=own.route_epochs, batch_size=own.batch_size)
        return model.set_params(counterfactuals=self.trainer) if method == COUNTERFACTUAL else model

    @property
    def trainer(self) -> EstimatedModel:
        """The causal model of the training rows: imagines what the counterfactual route trains with."""
        return self._made[0]

    @property
    def judge(self) -> EstimatedModel:
        """The causal model of the rows that judge: VCF, relative and flips are measured under it."""
        return self._made[1]

    def _baseline(self, name: str) -> list[Any]:
        start = 3 + len(self.seeds) * BASELINES.index(name)
        return self._made[start : start + len(self.seeds)]

    @cached_property
    def _made(self) -> list[Any]:
        """Both causal models, what the library chooses, then every baseline with every seed."""
        return list(self._beside)

    @cached_property
    def _beside(self) -> Iterable[Any]:
        """What makes them: processes, which work while this one trains."""
        own, seed = self.settings, self.conditions.seed
        latent = VariationalLatent(epochs=own.latent_epochs)
        tasks = [
            delayed(estimated_model)(self.split.train, latent, seed),
            delayed(estimated_model)(self.split.judging, latent, seed + 1),
            delayed(_chosen)(self._estimator(INDEPENDENCE), _sample(self.split.train, own.auto_rows, seed), seed),
            *(delayed(_fit)(name, own.training, one, self.split.train) for name in BASELINES for one in self.seeds),
        ]
        made: Iterable[Any] = Parallel(n_jobs=self.conditions.n_jobs, return_as="generator")(tasks)
        return made

    def _measured(self, names: list[dict[str, Any]], models: list[Any]) -> pd.DataFrame:
        own, inputs = self.settings, list(self.split.seen(self.split.test).columns)
        positive = models[0].classes_[1]
        found = variance_of_counterfactuals(
            {str(place): model for place, model in enumerate(models)},
            self.judge,
            self.split.judging,
            PROTECTED,
            own.points,
            own.interventions,
            self.conditions.seed,
            inputs=inputs,
            n_draws=own.draws,
            rate=float((self.split.train[OUTCOME] == positive).mean()),
            n_jobs=self.conditions.n_jobs,
        )
        rows = []
        for name, model, vcf in zip(names, models, found.values(), strict=True):
            flips = vcf.flips_at_equal_rate
            spread = {"vcf": vcf.value, "relative": vcf.relative, "flips": np.nan if flips is None else flips.value}
            rows.append({**name, **scores(model, self.split), **spread})
        table = pd.DataFrame(rows)
        return table.reindex(columns=list(dict.fromkeys(("method", "setting", "gamma", "share", *table.columns))))


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


def _chosen(estimator: CIPClassifier, rows: pd.DataFrame, seed: int) -> tuple[str, Any]:
    """Let the library compare routes on some of the rows that train, and return the name and the model it takes."""
    torch.set_num_threads(1)
    found = compare_routes(estimator.set_params(device=_BESIDE), Split.seen(rows), rows[OUTCOME], random_state=seed)
    return found.chosen, found.model


def _fit(name: str, training: Training, seed: int, rows: pd.DataFrame) -> Any:
    torch.set_num_threads(1)
    common: dict[str, Any] = {
        "graph": graphs.adult_columns(),
        "outcome": OUTCOME,
        "protected": list(PROTECTED),
        "hidden": PAPER_HIDDEN,
        "schedule": "constant",
        "device": _BESIDE,
        "random_state": seed,
        **vars(training),
    }
    made = {
        NAIVE: NaivePredictor(**common),
        FIRST_LEVEL: CF1(**common),
        THIRD_LEVEL: CF2(**common, regress_on="protected"),  # as the paper does
        ON_PARENTS: CF2(**common, regress_on="parents"),
        PATHS: PSCF(**common, n_draws=PATH_DRAWS),
    }
    return made[name].fit(Split.seen(rows), rows[OUTCOME])


def _sample(rows: pd.DataFrame, count: int | None, seed: int) -> pd.DataFrame:
    if count is None or count >= len(rows):
        return rows
    chosen = np.sort(np.random.default_rng(seed).choice(len(rows), count, replace=False))
    return rows.iloc[chosen].reset_index(drop=True)
