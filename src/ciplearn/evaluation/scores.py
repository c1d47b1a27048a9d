"""Predictive scores: how good the predictor is at its own task, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from ciplearn._core.columns import as_numbers, holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.labels import log_losses
from ciplearn.evaluation.intervals import NORMAL_ERRORS
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.wording import Unit, decimal, percent
from ciplearn.scm.kinds import Array

Interval = tuple[float, float, float]  # value, low, high
UNKNOWN_INTERVAL: Interval = (math.nan, math.nan, math.nan)

SCORE_NAMES = {"mse": "mean squared error", "r2": "R²", "accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC"}


def predictive_scores(predictor: Predictor, answer: Array, truth: pd.Series) -> dict[str, float]:  # (n,) or (n, q)
    """Return mean squared error and R² of numbers; accuracy, log loss and AUC, where they are known, of labels."""
    if truth.isna().any():
        raise InputError(
            f"The outcome {truth.name!r} is missing in {int(truth.isna().sum())} of {len(truth)} rows; drop those rows."
        )
    if predictor.method == "predict_proba":
        table = np.asarray(answer, dtype=np.float64)
        classes = getattr(predictor.model, "classes_", None)
        known = pd.Index(np.asarray(np.arange(table.shape[1]) if classes is None else classes, dtype=object))
        codes = known.get_indexer(pd.Index(truth.to_numpy(dtype=object)))
        scores = {"accuracy": (table.argmax(axis=1) == codes).mean(), "log_loss": log_losses(table, codes).mean()}
        # Only two labels can be ranked, and only where both occur.
        if table.shape[1] == 2 and set(codes) == {0, 1}:
            scores["auc"] = auc(table[:, 1], codes == 1)[0]
        return {name: float(score) for name, score in scores.items()}
    first = answer.reshape(len(truth), -1)[:, 0]
    if holds_numbers(truth) and np.issubdtype(answer.dtype, np.number):
        numbers = as_numbers(truth)
        error = float(np.square(first - numbers.to_numpy()).mean())
        spread = float(numbers.var(ddof=0))
        return {"mse": error, "r2": 1 - error / spread if spread > 0 else float("nan")}
    return {"accuracy": float((first.astype(object) == truth.to_numpy(dtype=object)).mean())}


def auc(scores: Array, positive: Array) -> Interval:  # (n,), (n,)
    """P(score of a positive > score of a negative), ties by half; the error of DeLong et al. on the scale of logits."""
    p, n = int(positive.sum()), int((~positive).sum())
    if p == 0 or n == 0:
        return UNKNOWN_INTERVAL
    ranks = rankdata(scores)
    # How often each positive beats a negative, and each negative loses to a positive.
    wins = (ranks[positive] - rankdata(scores[positive])) / n
    losses = 1 - (ranks[~positive] - rankdata(scores[~positive])) / p
    value = float(wins.mean())
    if p == 1 or n == 1 or not 0 < value < 1:
        return value, 0.0, 1.0
    half = NORMAL_ERRORS * math.sqrt(wins.var(ddof=1) / p + losses.var(ddof=1) / n) / (value * (1 - value))
    logit = math.log(value / (1 - value))
    return value, 1 / (1 + math.exp(half - logit)), 1 / (1 + math.exp(-half - logit))


def explained(scores: Mapping[str, float], outcome: pd.Series) -> float:
    """1 − loss / loss of the best constant on the same rows; for labels alone, of the share of wrong ones."""
    if "r2" in scores:
        return scores["r2"]
    shares = outcome.value_counts(normalize=True).to_numpy()
    shares = shares[shares > 0]
    if "log_loss" in scores:
        constant, loss = float(-(shares * np.log(shares)).sum()), scores["log_loss"]
    else:
        constant, loss = 1 - float(shares.max()), 1 - scores["accuracy"]
    return 1 - loss / constant if constant > 0 else math.nan


def scores_in_words(scores: Mapping[str, float], unit: Unit) -> dict[str, str]:
    """Names and values of predictive scores, the more telling first."""
    words = {}
    if "accuracy" in scores:
        words["right decisions"] = percent(scores["accuracy"])
    if not math.isnan(scores.get("r2", math.nan)):
        words["variance explained"] = percent(scores["r2"]) if scores["r2"] >= 0 else "none"
    if "auc" in scores:
        words["AUC"] = decimal(scores["auc"], 2)
    if "log_loss" in scores:
        words["log loss"] = decimal(scores["log_loss"])
    if "mse" in scores:
        words["root mean squared error"] = unit.amount(math.sqrt(scores["mse"]))
    return words
