"""Paired questions: this value against that one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator
from ciplearn._core.wording import written
from ciplearn.evaluation.counterfactual_rows import Points, checked_protected, table_of
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import bootstrap_interval
from ciplearn.evaluation.vcf_result import whose
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array


@dataclass(frozen=True, eq=False)
class CounterfactualEffect:
    """The mean difference between two counterfactual predictions of the same rows.

    Attributes
    ----------
    value : dict
        Mean over rows of Ŷ under ``second`` minus Ŷ under ``first``, by output.
    interval : dict
        95 % interval by output, bootstrap over rows.
    per_row : DataFrame
        The difference of each row, one column per output.

    Examples
    --------
    >>> from ciplearn import counterfactual_effect, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> counterfactual_effect(lambda frame: frame["age"], world, people, {"sex": "f"}, {"sex": "m"}).value
    {'prediction': 0.0}
    """

    value: dict[str, float]
    interval: dict[str, tuple[float, float]]
    per_row: pd.DataFrame
    first: dict[str, Any]
    second: dict[str, Any]
    model_based: bool

    def __str__(self) -> str:
        changes = "; ".join(
            f"{name} changes by {value:.3g} on average (95 % interval {self.interval[name][0]:.3g} to "
            f"{self.interval[name][1]:.3g})"
            for name, value in self.value.items()
        )
        return f"{whose(self.model_based)}, from {said(self.first)} to {said(self.second)}: {changes}."

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data, without the rows."""
        return fields_as_data(self, "per_row", first=said(self.first), second=said(self.second))


@dataclass(frozen=True, eq=False)
class FlipRate:
    """The share of rows whose predicted label would change.

    Attributes
    ----------
    value : float
    interval : pair of float
        95 %, bootstrap over rows.
    per_row : Series
        For each row the probability of a change: 0 or 1 where the row determines its noise.

    Examples
    --------
    >>> from ciplearn import datasets, flip_rate
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> 0 < flip_rate(lambda frame: frame["hours"] > 40, world, people, {"sex": "m"}).value < 1
    True
    """

    value: float
    interval: tuple[float, float]
    per_row: pd.Series
    first: dict[str, Any] | None
    second: dict[str, Any]
    model_based: bool

    def __str__(self) -> str:
        start = "what was observed" if self.first is None else said(self.first)
        return (
            f"{whose(self.model_based)}, {100 * self.value:.1f} % of the predicted labels flip from {start} to "
            f"{said(self.second)} (95 % interval {100 * self.interval[0]:.1f} % to {100 * self.interval[1]:.1f} %)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data, without the rows."""
        first = None if self.first is None else said(self.first)
        return fields_as_data(self, "per_row", first=first, second=said(self.second))


def counterfactual_effect(
    model: Any,
    scm: StructuralCausalModel,
    rows: pd.DataFrame | Units,
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    random_state: RandomState = 0,
    *,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_draws: int | None = None,
) -> CounterfactualEffect:
    """Measure E[Ŷ*_second − Ŷ*_first]: what changing A from one value to another does to the prediction of each row.

    Parameters
    ----------
    first, second : mapping from node to value
        Two settings of the same nodes, such as ``{"A": 0}`` and ``{"A": 1}``.
    model, scm, rows, random_state, inputs, method, n_draws
        See `variance_of_counterfactuals`.

    Examples
    --------
    >>> from ciplearn import counterfactual_effect, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> effect = counterfactual_effect(lambda frame: frame["hours"], world, people, {"sex": "f"}, {"sex": "m"})
    >>> round(effect.value["prediction"], 6)
    6.0
    """
    generator = as_generator(random_state)
    predictor, points = _asked(model, scm, rows, (first, second), generator, inputs, method, n_draws)
    answers = [each["model"].mean(axis=2) for each in points.answers_under({"model": predictor}, (first, second))]
    difference = np.concatenate([each[:, 1] - each[:, 0] for each in answers])
    outputs = predictor.outputs(difference.shape[1])
    columns = {name: difference[:, place] for place, name in enumerate(outputs)}
    return CounterfactualEffect(
        value={name: float(column.mean()) for name, column in columns.items()},
        interval={name: bootstrap_interval(column, generator) for name, column in columns.items()},
        per_row=pd.DataFrame(columns, index=points.units.index),
        first=dict(first),
        second=dict(second),
        model_based=scm.model_based,
    )


def flip_rate(
    model: Any,
    scm: StructuralCausalModel,
    rows: pd.DataFrame | Units,
    second: Mapping[str, Any],
    first: Mapping[str, Any] | None = None,
    random_state: RandomState = 0,
    *,
    inputs: Sequence[str] | None = None,
    n_draws: int | None = None,
) -> FlipRate:
    """Measure P(Ŷ*_second ≠ Ŷ*_first) for the labels that a classifier's ``predict`` returns.

    Parameters
    ----------
    second : mapping from node to value
    first : mapping from node to value, optional
        The setting to compare with; what was observed by default.
    model, scm, rows, random_state, inputs, n_draws
        See `variance_of_counterfactuals`.

    Examples
    --------
    >>> from ciplearn import datasets, flip_rate
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> flip_rate(lambda frame: frame["region"], world, people, {"sex": "m"}).value
    0.0
    """
    generator, settings = as_generator(random_state), (second if first is None else first, second)
    method = "predict" if hasattr(model, "predict") else None
    predictor, points = _asked(model, scm, rows, settings, generator, inputs, method, n_draws)
    labels = [each["model"] for each in points.answers_under({"model": partial(_labels, predictor)}, (first, second))]
    flips = np.concatenate([(each[:, 0] != each[:, 1]).mean(axis=(1, 2)) for each in labels])
    return FlipRate(
        value=float(flips.mean()),
        interval=bootstrap_interval(flips, generator, bounds=(0.0, 1.0)),
        per_row=pd.Series(flips, index=points.units.index, name="flip"),
        first=None if first is None else dict(first),
        second=dict(second),
        model_based=scm.model_based,
    )


def _asked(
    model: Any,
    scm: Any,
    rows: Any,
    settings: tuple[Any, Any],
    generator: Generator,
    inputs: Sequence[str] | None,
    method: str | None,
    n_draws: int | None,
) -> tuple[Predictor, Points]:
    """Check that two settings set the same nodes; return who is asked, and about which rows."""
    first, second = settings
    for setting in settings:
        if not isinstance(setting, Mapping):
            raise InputTypeError(f"A setting must map nodes to values, got {setting!r}; pass for example {{'A': 1}}.")
    if set(first) != set(second):
        raise InputError(
            f"Both settings must set the same nodes, got {list(first)} and {list(second)}; set all in both."
        )
    names = checked_protected(scm, tuple(first))
    table, ignored = table_of(scm, rows)
    predictor = Predictor.of(model, list(table.columns), inputs, method, ignored)
    return predictor, Points.of(scm, rows, names, predictor.inputs, generator, n_draws=n_draws)


def _labels(predictor: Predictor, frame: pd.DataFrame) -> Array:
    labels = predictor.raw(frame)
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise InputError(
            f"flip_rate compares one label per row, but the predictor returned shape {labels.shape}; pass a classifier "
            "with predict, or a function that returns labels."
        )
    return labels


def said(setting: Mapping[str, Any], digits: int = 4) -> str:
    """Write a setting, numbers with so many digits."""
    return ", ".join(f"{node} = {written(value, digits)}" for node, value in setting.items())
