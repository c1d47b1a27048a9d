"""What is measured at a stop, each figure with its 95 % interval over the rows that judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ciplearn.causal import Verdict
from ciplearn.estimators.criteria import Judged, loss, score
from ciplearn.evaluation import VarianceOfCounterfactuals, variance_of_counterfactuals
from ciplearn.evaluation.auditing import known_by
from ciplearn.evaluation.group_scores import grouped
from ciplearn.evaluation.intervals import bootstrap_interval, share_interval
from ciplearn.scm import StructuralCausalModel

Array = np.ndarray[Any, Any]
Figure = dict[str, float]

_POINTS, _INTERVENTIONS, _DRAWS = 300, 60, 10


class Judge:
    """Rows that judge, under a causal model that training has not seen.

    ``rows``: outcome included. ``verdict``: of the question: its context is what a row is known by when VCF is
    measured. ``scm``: None where none could be estimated; then there are no counterfactuals. ``classes``: labels of a
    classification, in the order of probabilities.
    """

    def __init__(
        self,
        rows: pd.DataFrame,
        verdict: Verdict,
        scm: StructuralCausalModel | None,
        classes: Array | None,
        seed: int,
    ) -> None:
        self.rows, self.verdict, self.scm = rows, verdict, scm
        self.outcome, self.protected = verdict.outcome, verdict.protected
        outcome = verdict.outcome
        self.inputs = rows.drop(columns=outcome)
        self.classes = classes
        self.seed = seed
        self.truth = rows[outcome].to_numpy(dtype=float) if classes is None else _places(rows[outcome], classes)

    def judged(self, given: Array) -> Judged:  # (n, outputs)
        """Return the rows as their outcomes and what a model says about them."""
        if self.classes is None:
            return Judged(self.truth, given[:, 0], np.atleast_1d(self.truth.mean()))
        return Judged(self.truth, given, np.full(len(self.classes), 1 / len(self.classes)), len(self.classes))

    def measured(self, model: Any) -> dict[str, Any]:
        """Return loss, score, VCF, relative VCF and scores by group of a model."""
        given = answers(model, self.inputs)
        losses = self.judged(given).losses()
        vcf = self._vcf(model)
        found: dict[str, Any] = {"loss": self._mean(losses), "score": self._score(given, losses)}
        if vcf is not None:
            found["vcf"] = _figure(vcf.value, vcf.interval)
            found["relative"] = _figure(vcf.relative, vcf.relative_interval)
            if vcf.flips is not None:
                found["flips"] = _figure(vcf.flips.value, vcf.flips.interval)
        found["groups"] = self._groups(given, losses, vcf)
        return found

    def _score(self, given: Array, losses: Array) -> Figure | None:
        if self.classes is not None:
            return _share(self._hits(given))
        value = score(self.judged(given))
        # R² = 1 − E l / Var y, and what each row adds to it.
        off = np.square(self.truth - self.truth.mean())
        spread = max(off.mean(), 1e-300)
        influence = (losses.mean() * off / spread - losses) / spread
        return _figure(value, bootstrap_interval(influence, self._generator(), (-np.inf, 1.0), value))

    def _hits(self, given: Array) -> Array:  # (n,)
        return (given.argmax(axis=1) == self.truth).astype(float)

    def _vcf(self, model: Any) -> VarianceOfCounterfactuals | None:
        if self.scm is None:
            return None
        return variance_of_counterfactuals(
            model,
            self.scm,
            self.rows,
            list(self.protected),
            _POINTS,
            _INTERVENTIONS,
            self.seed,
            context=known_by(self.verdict, self.scm, self.rows),
            inputs=list(self.inputs.columns),
            n_draws=_DRAWS,
        )

    def _groups(self, given: Array, losses: Array, vcf: VarianceOfCounterfactuals | None) -> list[dict[str, Any]]:
        found = []
        hits = None if self.classes is None else self._hits(given)
        for column in self.protected:
            labels = grouped(self.rows[column])
            for label in labels.cat.categories:
                inside = (labels == label).to_numpy()
                if not inside.any():
                    continue
                entry: dict[str, Any] = {"column": column, "label": str(label), "rows": int(inside.sum())}
                entry["score"] = self._mean(losses[inside]) if hits is None else _share(hits[inside])
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
        f, g = answers(free, self.inputs), answers(safe, self.inputs)
        vcf = self._vcf(free)
        places = []
        for s in np.linspace(0, 1, 21):
            mixed = self.judged(g + s * (f - g))
            point = {"s": float(s), "loss": loss(mixed), "score": score(mixed)}
            places.append(point if vcf is None else {**point, "vcf": float(s**2 * vcf.value)})
        return places

    def _mean(self, values: Array) -> Figure | None:
        return _figure(float(values.mean()), bootstrap_interval(values, self._generator()))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


def answers(model: Any, inputs: pd.DataFrame) -> Array:  # (n, outputs)
    """Return a predictor's numbers: a probability per class where it has them, else what it predicts."""
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    found = np.asarray(ask(inputs), dtype=float)
    return found[:, None] if found.ndim == 1 else found


def _share(hits: Array) -> Figure | None:
    return _figure(float(hits.mean()), share_interval(hits))


def _figure(value: float, interval: tuple[float, float]) -> Figure | None:
    """Return a figure with its interval; None for one that is not defined."""
    return None if np.isnan(value) else {"value": float(value), "low": float(interval[0]), "high": float(interval[1])}


def _places(labels: pd.Series, classes: Array) -> Array:
    return pd.Index(classes).get_indexer(pd.Index(labels.to_numpy()))
