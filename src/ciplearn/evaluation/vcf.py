"""The variance of counterfactuals [quinzan2024]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from tqdm import tqdm

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.numbers import whole
from ciplearn._core.random import RandomState, as_generator
from ciplearn.causal.names import Names
from ciplearn.evaluation.counterfactual_rows import Points, checked_protected
from ciplearn.evaluation.draws import InterventionLaw, as_law
from ciplearn.evaluation.intervals import bootstrap_interval
from ciplearn.evaluation.overlap import Overlap, Support
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array

# Counterfactual rows whose place relative to the data is looked up, a random part of them where there are more.
_SUPPORT_ROWS = 100_000


def variance_of_counterfactuals(
    model: Any,
    scm: StructuralCausalModel,
    rows: pd.DataFrame | Units,
    protected: Names,
    n_points: int = 1000,
    n_interventions: int = 500,
    random_state: RandomState = 0,
    *,
    interventions: Any = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_draws: int | None = None,
    reference: pd.DataFrame | None = None,
) -> VarianceOfCounterfactuals:
    """Measure how much a prediction would have varied, had the protected variables been different.

        VCF(Ŷ) = E_w [ Var_{a'} [ E[ Ŷ*_{a'} | W = w ] ] ],   a' ~ P(A)

    over d points w and k values a' of each. The inner mean runs over the noises that fit the point: one where the point
    determines it, ``n_draws`` draws where it does not, the same for every a'. With m draws the value is too large by
    about the variance of a unit's own response over m. Several outputs add up (the trace of their covariance).

    Parameters
    ----------
    model
        Anything with ``predict_proba`` or ``predict``, or a function of a frame. Of two class probabilities the second
        counts.
    scm : StructuralCausalModel
        Known or estimated; the result says which.
    rows : DataFrame or Units
        What was observed; columns that the graph does not know are ignored. Units of ``scm.sample_units`` bring their
        noise along.
    protected : name or list of names
        A; all of them change together.
    n_points, n_interventions : int
        d and k. With fewer rows than d, all rows are points.
    random_state : int or Generator
    interventions : optional
        None draws whole rows of A from ``rows``: its joint marginal law. A frame or list of values is a grid that every
        point gets; a function ``(n, generator) -> frame`` is a law of your own.
    inputs : list of columns, optional
        What the model is shown. Default: the columns it remembers from its fit, or else all.
    method : "predict" or "predict_proba", optional
    n_draws : int, optional
        Draws of the noise a point where a row does not determine what an input depends on; 100 by default.
    reference : DataFrame, optional
        The rows that define where there is data, such as the training rows; ``rows`` by default.
    """
    names = checked_protected(scm, protected)
    n_points = whole(n_points, "n_points", minimum=2)
    n_interventions = whole(n_interventions, "n_interventions", minimum=2)
    generator = as_generator(random_state)
    points = Points.of(model, scm, rows, names, n_points, n_draws, inputs, method, generator)
    if points.n < 2:
        raise InputError("rows has 1 row; VCF and its interval need at least 2, for one row use counterfactual_effect.")
    columns = scm.columns(names)
    missing = [column for column in columns if column not in points.rows.columns]
    if missing:
        raise InputError(f"rows lacks the protected column {missing[0]!r}; add it.")
    law = as_law(interventions, points.rows, columns)
    support = Support.of(_seen(points, points.rows if reference is None else _checked(reference, points)))
    spread = _measure(points, law, law.size(n_interventions), support, generator)
    trace = spread.variance.sum(axis=1)
    outputs = points.predictor.outputs(spread.variance.shape[1])
    return VarianceOfCounterfactuals(
        value=float(trace.mean()),
        interval=bootstrap_interval(trace, generator, bounds=(0.0, np.inf)),
        per_row=spread.per_row(points, outputs),
        per_output={name: float(spread.variance[:, place].mean()) for place, name in enumerate(outputs)},
        overlap=spread.overlap(support),
        protected=names,
        n_points=points.n,
        n_interventions=law.size(n_interventions),
        n_draws=points.units.draws,
        model_based=scm.model_based,
    )


@dataclass(frozen=True)
class _Spread:
    """What was measured at each point."""

    variance: Array  # (d, q)
    lowest: Array  # (d, q)
    highest: Array  # (d, q)
    inside: Array  # (d,): trace over interventions inside the support, NaN where there are fewer than two
    outside: Array  # (d,)
    share_outside: Array  # (d,)

    def per_row(self, points: Points, outputs: tuple[str, ...]) -> pd.DataFrame:
        columns = {"vcf": self.variance.sum(axis=1), "share_outside": self.share_outside}
        for place, name in enumerate(outputs):
            suffix = "" if len(outputs) == 1 else f"[{name}]"
            if suffix:
                columns[f"vcf{suffix}"] = self.variance[:, place]
            columns[f"lowest{suffix}"] = self.lowest[:, place]
            columns[f"highest{suffix}"] = self.highest[:, place]
        return pd.DataFrame(columns, index=points.units.index)

    def overlap(self, support: Support) -> Overlap:
        return Overlap(
            share_outside=float(self.share_outside.mean()),
            vcf_inside=_mean_of_known(self.inside),
            vcf_outside=_mean_of_known(self.outside),
            radius=support.radius,
        )


def _measure(points: Points, law: InterventionLaw, k: int, support: Support, generator: Generator) -> _Spread:
    pieces = []
    checked = int(np.clip(_SUPPORT_ROWS // (points.n * points.units.draws), 2, k))
    # disable=None: quiet where nobody watches.
    with tqdm(total=points.n, desc="counterfactuals", unit="point", disable=None, leave=False) as bar:
        for places in points.chunks(k):
            d = len(places)
            frame = points.had_been(places, k, law.draw(d, k, generator), generator)
            answers = points.averaged(points.predictor(frame), d, k)  # (d, k, q)
            looked = np.sort(generator.permutation(k)[:checked])
            picked = np.arange(len(frame)).reshape(d, k, -1)[:, looked].ravel()
            inside = support.holds(_seen(points, frame.iloc[picked])).reshape(d, checked, -1).mean(axis=2)
            # A value of A counts as inside where most draws of the noise are.
            within = inside >= 0.5
            pieces.append(
                (
                    _variance(answers, law.ddof),
                    answers.min(axis=1),
                    answers.max(axis=1),
                    _trace_where(answers[:, looked], within),
                    _trace_where(answers[:, looked], ~within),
                    1 - inside.mean(axis=1),
                )
            )
            bar.update(d)
    return _Spread(*(np.concatenate(part) for part in zip(*pieces, strict=True)))


def _variance(answers: Array, ddof: int) -> Array:  # (d, k, q) -> (d, q)
    # Relative to the first answer: a prediction that never changes then has variance zero to the last bit.
    return np.asarray((answers - answers[:, :1]).var(axis=1, ddof=ddof))


def _trace_where(answers: Array, kept: Array) -> Array:  # (d, k, q), (d, k) -> (d,)
    count = kept.sum(axis=1)
    weight = kept[:, :, None] / np.maximum(count, 1)[:, None, None]
    shifted = answers - answers[:, :1]
    mean = (shifted * weight).sum(axis=1, keepdims=True)
    total = (np.square(shifted - mean) * weight).sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count >= 2, total * count / (count - 1), np.nan)


def _mean_of_known(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _checked(reference: Any, points: Points) -> pd.DataFrame:
    if not isinstance(reference, pd.DataFrame):
        raise InputTypeError(
            f"reference must be a pandas DataFrame, got {type(reference).__name__}; pass for example the training rows."
        )
    missing = [column for column in points.predictor.inputs or () if column not in reference.columns]
    if missing:
        raise InputError(f"reference lacks the column {missing[0]!r}, which the predictor reads; add it.")
    return reference


def _seen(points: Points, frame: pd.DataFrame) -> pd.DataFrame:
    inputs = points.predictor.inputs
    if inputs is not None:
        return frame[list(inputs)]
    return frame[[column for column in points.rows.columns if column in frame.columns]]
