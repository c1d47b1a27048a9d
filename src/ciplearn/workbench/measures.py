"""What is measured at a stop, each figure with its 95 % interval: bootstrap over the rows that judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ciplearn.evaluation import VarianceOfCounterfactuals, variance_of_counterfactuals
from ciplearn.evaluation.counterfactual_rows import as_known_beforehand
from ciplearn.evaluation.group_scores import grouped
from ciplearn.scm import StructuralCausalModel

Array = np.ndarray[Any, Any]

_RESAMPLES = 400
_POINTS, _INTERVENTIONS, _DRAWS = 300, 60, 10

# A probability of zero has no logarithm.
_SMALLEST = 1e-12


class Judge:
    """Rows that judge, under a causal model that training has not seen.

    Parameters
    ----------
    rows : DataFrame
        Outcome included.
    outcome : str
    protected : sequence of str
    scm : StructuralCausalModel or None
        None where none could be estimated; then there are no counterfactuals.
    classes : array or None
        Labels of a classification, in the order of probabilities.
    seed : int
    """

    def __init__(
        self,
        rows: pd.DataFrame,
        outcome: str,
        protected: tuple[str, ...],
        scm: StructuralCausalModel | None,
        classes: Array | None,
        seed: int,
    ) -> None:
        self.rows, self.outcome, self.protected, self.scm = rows, outcome, protected, scm
        self.inputs = rows.drop(columns=outcome)
        self.classes = classes
        self.seed = seed
        self.truth = rows[outcome].to_numpy(dtype=float) if classes is None else _places(rows[outcome], classes)

    def answers(self, model: Any) -> Array:  # (n, outputs)
        """Return predictions as numbers: values, or a probability per class."""
        return answers(model, self.inputs)

    def losses(self, answers: Array) -> Array:  # (n,)
        """Squared error, or cross-entropy, per row."""
        if self.classes is None:
            return np.square(answers[:, 0] - self.truth)
        return -np.log(np.maximum(answers[np.arange(len(answers)), self.truth], _SMALLEST))

    def hits(self, answers: Array) -> Array:  # (n,)
        """Whether each row is classified right."""
        return (answers.argmax(axis=1) == self.truth).astype(float)

    def measured(self, model: Any) -> dict[str, Any]:
        """Return loss, score, VCF, relative VCF and scores by group of a model."""
        given = self.answers(model)
        losses = self.losses(given)
        vcf = self._vcf(model)
        found: dict[str, Any] = {"loss": self._mean(losses), "score": self._score(given, losses)}
        if vcf is not None:
            found["vcf"] = _figure(vcf.value, vcf.interval)
            found["relative"] = _figure(vcf.relative, vcf.relative_interval)
            if vcf.flips is not None:
                found["flips"] = _figure(vcf.flips.value, vcf.flips.interval)
        found["groups"] = self._groups(given, losses, vcf)
        return found

    def _score(self, given: Array, losses: Array) -> dict[str, float]:
        if self.classes is not None:
            return self._mean(self.hits(given))
        return self._interval(lambda rows: 1 - losses[rows].mean() / max(self.truth[rows].var(), 1e-300))

    def _vcf(self, model: Any) -> VarianceOfCounterfactuals | None:
        if self.scm is None:
            return None
        return variance_of_counterfactuals(
            model,
            self.scm,
            as_known_beforehand(self.scm, self.rows, self.outcome),
            list(self.protected),
            _POINTS,
            _INTERVENTIONS,
            self.seed,
            inputs=list(self.inputs.columns),
            n_draws=_DRAWS,
        )

    def _groups(self, given: Array, losses: Array, vcf: VarianceOfCounterfactuals | None) -> list[dict[str, Any]]:
        found = []
        for column in self.protected:
            labels = grouped(self.rows[column])
            for label in labels.cat.categories:
                inside = (labels == label).to_numpy()
                if not inside.any():
                    continue
                entry: dict[str, Any] = {"column": column, "label": str(label), "rows": int(inside.sum())}
                entry["score"] = self._mean((self.hits(given) if self.classes is not None else losses)[inside])
                if given.shape[1] <= 2:
                    entry["prediction"] = self._mean(given[inside, -1])
                if vcf is not None:
                    here = vcf.per_row["vcf"][vcf.per_row.index.isin(self.rows.index[inside])].to_numpy()
                    if len(here):
                        entry["vcf"] = self._mean(here)
                found.append(entry)
        return found

    def line(self, free: Any, safe: Any) -> list[dict[str, float]]:
        """The straight line g + s (f − g) from CF1 to the unconstrained: its VCF is s² times that of f."""
        f, g = self.answers(free), self.answers(safe)
        vcf = self._vcf(free)
        places = []
        for s in np.linspace(0, 1, 21):
            mixed = g + s * (f - g)
            losses = self.losses(mixed)
            score = self.hits(mixed).mean() if self.classes is not None else 1 - losses.mean() / self.truth.var()
            point = {"s": float(s), "loss": float(losses.mean()), "score": float(score)}
            places.append(point if vcf is None else {**point, "vcf": float(s**2 * vcf.value)})
        return places

    def _mean(self, values: Array) -> dict[str, float]:
        return self._interval(lambda rows: float(values[rows].mean()), len(values))

    def _interval(self, statistic: Callable[[Array], float], n: int | None = None) -> dict[str, float]:
        size = len(self.rows) if n is None else n
        generator = np.random.default_rng(self.seed)
        drawn = [float(statistic(generator.integers(size, size=size))) for _ in range(_RESAMPLES)]
        low, high = np.quantile(drawn, [0.025, 0.975])
        return {"value": float(statistic(np.arange(size))), "low": float(low), "high": float(high)}


def answers(model: Any, inputs: pd.DataFrame) -> Array:  # (n, outputs)
    """Return a predictor's numbers: a probability per class where it has them, else what it predicts."""
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    found = np.asarray(ask(inputs), dtype=float)
    return found[:, None] if found.ndim == 1 else found


def _figure(value: float, interval: tuple[float, float]) -> dict[str, float] | None:
    """Return a figure with its interval; None for one that is not defined."""
    return None if np.isnan(value) else {"value": float(value), "low": float(interval[0]), "high": float(interval[1])}


def _places(labels: pd.Series, classes: Array) -> Array:
    return np.array([list(classes).index(label) for label in labels.to_numpy()])
