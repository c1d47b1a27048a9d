"""The variance of counterfactuals [quinzan2024]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.random import Generator
from tqdm import tqdm

from ciplearn._core.arguments import processes, whole
from ciplearn._core.columns import as_numbers, checked_table, holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.rows import RandomState, as_generator
from ciplearn.causal.names import Names
from ciplearn.evaluation.counterfactual_rows import Points, checked_protected, row_chunks, table_of
from ciplearn.evaluation.interventions import (
    InterventionLaw,
    Spread,
    Support,
    as_law,
    disagreements,
    squared_deviations,
)
from ciplearn.evaluation.predictors import Predictor, Thresholds, thresholds_of
from ciplearn.evaluation.scores import bootstrap_interval
from ciplearn.evaluation.vcf_result import Flips, Overlap, VarianceOfCounterfactuals
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array

# Counterfactual rows whose place relative to the data is looked up, a random part of them where there are more.
_SUPPORT_ROWS = 100_000


@overload
def variance_of_counterfactuals(
    model: Mapping[str, Any], *more: Any, **named: Any
) -> dict[str, VarianceOfCounterfactuals]: ...
@overload
def variance_of_counterfactuals(model: Any, *more: Any, **named: Any) -> VarianceOfCounterfactuals: ...


def variance_of_counterfactuals(
    model: Any,
    scm: StructuralCausalModel,
    rows: pd.DataFrame | Units,
    protected: Names,
    n_points: int = 1000,
    n_interventions: int = 500,
    random_state: RandomState = 0,
    *,
    context: Names | None = None,
    interventions: Any = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_draws: int | None = None,
    reference: pd.DataFrame | None = None,
    threshold: float | None = None,
    rate: float | None = None,
    n_jobs: int | None = None,
) -> VarianceOfCounterfactuals | dict[str, VarianceOfCounterfactuals]:
    """Measure how much a prediction would have varied, had the protected variables been different.

        VCF(Ŷ) = E_w [ Var_{a'} [ E[ Ŷ*_{a'} | W = w ] ] ],   a' ~ P(A)

    over d points w and k values a' of each. The inner mean runs over the noises that fit the point: one where the point
    determines it, ``n_draws`` draws where it does not, the same for every a'. Several outputs add up (the trace of
    their covariance).

    Parameters
    ----------
    model
        Anything with ``predict_proba`` or ``predict``, or a function of a frame. The second of two class probabilities
        counts. A mapping of names to models measures all of them on the same counterfactual rows, made once, and
        returns a dict.
    scm : StructuralCausalModel
        Known or estimated; the result says which.
    rows : DataFrame or Units
        What was observed; columns that the graph does not know are ignored. Units of ``scm.sample_units`` bring their
        noise along.
    protected : name or list of names
        A; all of them change together.
    n_points, n_interventions : int
        d and k. With fewer rows than d, all rows are points. Where the rows hold at most k distinct values of A, each
        point gets all of them, weighted by their shares.
    context : list of names, optional
        W. By default a point is known by its whole row: all columns that are passed, the outcome too if it is there.
        The paper's VCF conditions on the context of the criterion; what W leaves open is then drawn.
    interventions : optional
        None takes whole rows of A from ``rows``: its joint marginal law. A frame or list of values is a grid that every
        point gets; a function ``(n, generator) -> frame`` is a law of your own.
    inputs, method, random_state
        The columns that the model is shown, by default those it remembers from its fit, or else all; ``"predict"`` or
        ``"predict_proba"``; and a seed, a Generator, a RandomState or None.
    n_draws : int, optional
        Draws of the noise per point where a point does not determine what an input depends on; 100 by default.
    reference : DataFrame, optional
        The rows that define where there is data, such as the training rows; ``rows`` by default.
    threshold : float, optional
        Above it a decision is positive: 0.5 for the probability of a class; other numbers decide nothing by default.
    rate : float, optional
        The share of positive decisions at which all models are compared, too. Default: the mean probability that the
        first model gives.
    n_jobs : int, optional
        Processes that share the points; -1 for all cores.

    Examples
    --------
    >>> from ciplearn import datasets, variance_of_counterfactuals
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> models = {"reads training": lambda frame: frame["training"], "says 40": lambda frame: 40 + 0 * frame["age"]}
    >>> measured = variance_of_counterfactuals(models, world, people, protected=["sex"], n_points=100)
    >>> {name: round(vcf.value, 1) for name, vcf in measured.items()}
    {'reads training': 1.0, 'says 40': 0.0}
    """
    names = checked_protected(scm, protected)
    n_points = whole(n_points, "n_points", minimum=2)
    n_interventions = whole(n_interventions, "n_interventions", minimum=2)
    generator = as_generator(random_state)
    table, ignored = table_of(scm, rows, names)
    predictors = Predictor.several(model, list(table.columns), inputs, method, ignored)
    read = {column for predictor in predictors.values() for column in predictor.inputs}
    points = Points.of(scm, rows, names, read, generator, n_points=n_points, n_draws=n_draws, context=context)
    if points.n < 2:
        raise InputError("rows has 1 row; VCF and its interval need at least 2, for one row use counterfactual_effect.")
    law = as_law(interventions, points.one_per_row(), scm.columns(names), n_interventions)
    as_they_are = points.as_they_are()
    factual = {name: each.numbers(each.in_blocks(as_they_are)) for name, each in predictors.items()}
    thresholds = thresholds_of(predictors, factual, threshold, rate)
    supports = _supports(predictors, table if reference is None else reference, table)
    question = _Question(predictors, thresholds, supports, law, *_looked_up(points, law))
    answers = _all_answers(question, points, generator, processes(n_jobs))
    # Rows are drawn again alike for every model: neither its interval nor what is drawn next hangs on the others.
    draws = [generator, *(deepcopy(generator) for _ in range(len(predictors) - 1))]
    results = {
        name: _result(answers[name], factual[name], name, question, points, names, drawn)
        for name, drawn in zip(predictors, draws, strict=True)
    }
    return results if isinstance(model, Mapping) else results["model"]


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked about every point."""

    predictors: dict[str, Predictor]
    thresholds: dict[str, Thresholds]
    supports: dict[tuple[str, ...], Support]
    law: InterventionLaw
    # Whose place relative to the data is looked up, per point.
    interventions_looked_up: int
    draws_looked_up: int

    def about(self, points: Points, seed: int) -> dict[str, _Answer]:
        """Make the counterfactual rows of some points and ask every model about them."""
        generator = np.random.default_rng(seed)
        law, d = self.law, points.n
        k, m, weights = law.k, points.units.draws, law.weights
        given = law.draw(d, generator)
        frame = points.counterfactuals(given.values, k, generator).reset_index(drop=True)
        looked_up = np.arange(k)
        if self.interventions_looked_up < k:
            looked_up = np.sort(generator.choice(k, self.interventions_looked_up, replace=False))
        shares = weights[looked_up] / weights[looked_up].sum()
        inside: dict[tuple[str, ...], Array] = {}
        answered = {}
        for name, predictor in self.predictors.items():
            answers = predictor(frame).reshape(d, k, m, -1)
            read = predictor.inputs
            if read not in inside:
                places = np.arange(len(frame)).reshape(d, k, m)[:, looked_up, : self.draws_looked_up].ravel()
                held = self.supports[read].holds(frame.iloc[places][list(read)])
                inside[read] = held.reshape(d, len(looked_up), -1).mean(axis=2)
            squares = squared_deviations(answers, weights, law.correction)
            means = answers.mean(axis=2)
            # A value of A counts as inside where most draws of the noise are.
            within = inside[read] >= 0.5
            flips = {}
            if name in self.thresholds:
                for which, t in vars(self.thresholds[name]).items():
                    halves = disagreements(answers[..., 0] > t, weights, law.correction)
                    flips[which] = Spread.of(2 * halves, weights, given, law)
            answered[name] = _Answer(
                spread=Spread.of(squares.sum(axis=2), weights, given, law),
                flips=flips,
                per_output=np.einsum("dkq,k->dq", squares, weights),
                lowest=means.min(axis=1),
                highest=means.max(axis=1),
                inside=_trace_where(means[:, looked_up], within * shares, drawn=not law.every),
                outside=_trace_where(means[:, looked_up], ~within * shares, drawn=not law.every),
                share_outside=1 - inside[read] @ shares,
            )
        return answered


@dataclass(frozen=True, eq=False)
class _Answer:
    """What one model said about some points."""

    spread: Spread
    flips: dict[str, Spread]
    per_output: Array  # (d, q)
    lowest: Array  # (d, q)
    highest: Array  # (d, q)
    inside: Array  # (d,): trace over interventions inside the support, NaN where there are fewer than two
    outside: Array  # (d,)
    share_outside: Array  # (d,)

    @classmethod
    def joined(cls, parts: Sequence[_Answer]) -> _Answer:
        arrays = ("per_output", "lowest", "highest", "inside", "outside", "share_outside")
        flips = {which: Spread.joined([part.flips[which] for part in parts]) for which in parts[0].flips}
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays}
        return cls(spread=Spread.joined([part.spread for part in parts]), flips=flips, **joined)

    def per_row(self, index: pd.Index, outputs: tuple[str, ...]) -> pd.DataFrame:
        # Draws can put the estimate of a single point below zero.
        columns = {"vcf": np.maximum(self.spread.per_point, 0), "share_outside": self.share_outside}
        several = len(outputs) > 1
        for name, vcf, lowest, highest in zip(outputs, self.per_output.T, self.lowest.T, self.highest.T, strict=True):
            suffix = f"[{name}]" if several else ""
            columns |= {f"vcf{suffix}": np.maximum(vcf, 0)} if several else {}
            columns |= {f"lowest{suffix}": lowest, f"highest{suffix}": highest}
        return pd.DataFrame(columns, index=index)


def _all_answers(question: _Question, points: Points, generator: Generator, n_jobs: int | None) -> dict[str, _Answer]:
    chunks = list(row_chunks(points.n, question.law.k * points.units.draws))
    seeds = generator.integers(2**63, size=len(chunks))
    tasks = ((points.only(places), int(seed)) for places, seed in zip(chunks, seeds, strict=True))
    done: Iterable[dict[str, _Answer]] = (question.about(*task) for task in tasks)
    if n_jobs != 1:
        done = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(question.about)(*task) for task in tasks)
    # disable=None: quiet where nobody watches.
    with tqdm(total=points.n, desc="counterfactuals", unit="point", disable=None, leave=False) as bar:
        parts = []
        for places, part in zip(chunks, done, strict=True):
            parts.append(part)
            bar.update(len(places))
    return {name: _Answer.joined([part[name] for part in parts]) for name in question.predictors}


def _result(
    answer: _Answer,
    factual: Array,
    name: str,
    question: _Question,
    points: Points,
    protected: tuple[str, ...],
    generator: Generator,
) -> VarianceOfCounterfactuals:
    law, predictor, scm = question.law, question.predictors[name], points.scm
    outputs = predictor.outputs(answer.per_output.shape[1])
    value = max(0.0, answer.spread.value)
    n_rows = len(points.one_per_row())
    influence = answer.spread.influence(points.places, n_rows, law)
    relative, of_relative = _relative(value, influence, factual, points)
    between = scm.between(protected, predictor.inputs)
    flips = {}
    for which, spread in answer.flips.items():
        threshold = getattr(question.thresholds[name], which)
        of_flips = spread.influence(points.places, n_rows, law)
        flips[which] = Flips(
            value=min(1.0, max(0.0, spread.value)),
            interval=bootstrap_interval(of_flips, generator, (0.0, 1.0), spread.value),
            threshold=threshold,
            rate=float((factual[:, 0] > threshold).mean()),
        )
    return VarianceOfCounterfactuals(
        value=value,
        interval=bootstrap_interval(influence, generator, (0.0, np.inf), value),
        relative=relative,
        relative_interval=bootstrap_interval(of_relative, generator, (0.0, np.inf), relative),
        flips=flips.get("given"),
        flips_at_equal_rate=flips.get("equal_rate"),
        per_row=answer.per_row(points.units.index, outputs),
        per_output={name: float(answer.per_output[:, column].mean()) for column, name in enumerate(outputs)},
        overlap=Overlap(
            share_outside=float(answer.share_outside.mean()),
            vcf_inside=_mean_where_told(answer.inside),
            vcf_outside=_mean_where_told(answer.outside),
            radius=question.supports[predictor.inputs].radius,
        ),
        protected=protected,
        context=points.context,
        whole_row=set(scm.columns(points.context)) >= set(points.rows.columns),
        n_points=points.n,
        n_interventions=law.k,
        n_draws=points.units.draws,
        model_based=scm.model_based,
        doubts=tuple(finding for finding in (*scm.misfits, *scm.ambiguities) if finding.node in between),
    )


def _relative(value: float, influence: Array, factual: Array, points: Points) -> tuple[float, Array]:
    """VCF over the variance of the predictions, and each row's influence on it."""
    squares = np.square(factual - factual.mean(axis=0)).sum(axis=1).reshape(points.n, -1).mean(axis=1)
    variance = float(squares.mean() * len(factual) / (len(factual) - 1))
    if not variance > 0:
        return float("nan"), np.zeros(1)
    ratio = value / variance
    of_variance = np.zeros(len(influence))
    of_variance[points.places] = (squares - squares.mean()) * (len(influence) / points.n)
    return ratio, (influence - ratio * of_variance) / variance


def _supports(predictors: dict[str, Predictor], reference: Any, rows: pd.DataFrame) -> dict[tuple[str, ...], Support]:
    if checked_table(reference, "reference").empty:
        raise InputError("reference has no rows; pass for example the training rows.")
    supports = {}
    for read in dict.fromkeys(predictor.inputs for predictor in predictors.values()):
        missing = [column for column in read if column not in reference.columns]
        if missing:
            raise InputError(f"reference lacks the column {missing[0]!r}, which the predictor reads; add it.")
        for column in read:
            numbers = holds_numbers(reference[column])
            if numbers != holds_numbers(rows[column]):
                held = f"{'numbers' if numbers else 'labels'} in the column {column!r}"
                raise InputError(f"reference holds {held}, the rows do not; convert one of them.")
            if numbers and not np.isfinite(as_numbers(reference[column])).all():
                raise InputError(f"reference holds NaN or infinity in the column {column!r}; drop those rows.")
        supports[read] = Support.of(reference[list(read)])
    return supports


def _looked_up(points: Points, law: InterventionLaw) -> tuple[int, int]:
    """How many interventions per point, and draws of the noise for each, there is time to look up."""
    k, m, room = law.k, points.units.draws, _SUPPORT_ROWS // points.n
    if np.ptp(law.weights) > 0:
        # Of values that are listed with their shares, none can be left out.
        return k, int(np.clip(room // k, 1, m))
    return int(np.clip(room // m, 2, k)), m


def _trace_where(answers: Array, weights: Array, *, drawn: bool) -> Array:  # (d, k, q), (d, k) -> (d,)
    """Variance over the interventions with a weight above zero, its trace; NaN where there are fewer than two."""
    total = weights.sum(axis=1, keepdims=True)
    share = (weights / np.where(total > 0, total, 1))[:, :, None]
    shifted = answers - answers[:, :1]
    mean = (shifted * share).sum(axis=1, keepdims=True)
    variance = (np.square(shifted - mean) * share).sum(axis=(1, 2))
    count = (weights > 0).sum(axis=1)
    unbiased = variance * count / np.maximum(count - 1, 1) if drawn else variance
    return np.where(count >= 2, unbiased, np.nan)


def _mean_where_told(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
