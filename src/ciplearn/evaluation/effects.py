"""Paired questions: this value of a protected variable against that one, for the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.arguments import flag, mapping_of, non_negative, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator, as_seed
from ciplearn._core.wording import as_list, told_apart, written
from ciplearn.causal.names import Names
from ciplearn.evaluation.counterfactual_rows import Points, checked_protected, table_of
from ciplearn.evaluation.interventions import compared_values, pairs_of
from ciplearn.evaluation.predictors import Predictor, Thresholds, thresholds_of
from ciplearn.evaluation.scores import UNKNOWN_INTERVAL, bootstrap_interval, share_interval
from ciplearn.evaluation.vcf_result import whose
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array

# A prediction counts as moved by more than this: of a probability, or of the standard deviation of other predictions.
_MOVED_PROBABILITY, _MOVED_DEVIATIONS = 0.05, 0.1
_MEASURES = ("effect", "moved", "flips", "flips_at_equal_rate")


@dataclass(frozen=True, eq=False)
class CounterfactualEffect:
    """The mean difference between two counterfactual predictions of the same rows, by output.

    ``value`` is the mean of Ŷ under ``second`` minus Ŷ under ``first``, ``interval`` its 95 % interval by bootstrap
    over rows, and ``per_row`` the difference of each row.

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
            f"{name} changes by {self.value[name]:.3g} on average (95 % interval {low:.3g} to {high:.3g})"
            for name, (low, high) in self.interval.items()
        )
        return f"{whose(self.model_based)}, from {setting_text(self.first)} to {setting_text(self.second)}: {changes}."

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data, without the rows."""
        return fields_as_data(self, "per_row", first=setting_text(self.first), second=setting_text(self.second))


@dataclass(frozen=True, eq=False)
class FlipRate:
    """The share of rows whose predicted label would change, with its 95 % interval by bootstrap over rows.

    ``per_row`` is the probability of a change: 0 or 1 where the row determines its noise.

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
        (low, high), start = self.interval, "what was observed" if self.first is None else setting_text(self.first)
        return (
            f"{whose(self.model_based)}, {100 * self.value:.1f} % of the predicted labels flip from {start} to "
            f"{setting_text(self.second)} (95 % interval {100 * low:.1f} % to {100 * high:.1f} %)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data, without the rows."""
        first = None if self.first is None else setting_text(self.first)
        return fields_as_data(self, "per_row", first=first, second=setting_text(self.second))


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

    ``first`` and ``second`` set the same nodes, such as ``{"A": 0}`` and ``{"A": 1}``; all else is as in
    `variance_of_counterfactuals`.

    >>> from ciplearn import counterfactual_effect, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> effect = counterfactual_effect(lambda frame: frame["hours"], world, people, {"sex": "f"}, {"sex": "m"})
    >>> round(effect.value["prediction"], 6)
    6.0
    """
    generator = as_generator(random_state)
    predictor, points = _predictor_and_points(model, scm, rows, (first, second), generator, inputs, method, n_draws)
    answers = [each["model"].mean(axis=2) for each in points.answers_under({"model": predictor}, (first, second))]
    difference = np.concatenate([each[:, 1] - each[:, 0] for each in answers])
    columns = dict(zip(predictor.outputs(difference.shape[1]), difference.T, strict=True))
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

    They are settings such as ``{"A": 1}``; the first is what was observed by default. All else is as in
    `variance_of_counterfactuals`.

    >>> from ciplearn import datasets, flip_rate
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> flip_rate(lambda frame: frame["region"], world, people, {"sex": "m"}).value
    0.0
    """
    generator, settings = as_generator(random_state), (second if first is None else first, second)
    method = "predict" if hasattr(model, "predict") else None
    predictor, points = _predictor_and_points(model, scm, rows, settings, generator, inputs, method, n_draws)

    def label(frame: pd.DataFrame) -> Array:
        labels = predictor.raw(frame)
        if labels.ndim == 2 and labels.shape[1] > 1:
            why = f"flip_rate compares one label per row, but the predictor returned shape {labels.shape}"
            raise InputError(f"{why}; pass a classifier with predict, or a function that returns labels.")
        return labels

    labels = [each["model"] for each in points.answers_under({"model": label}, (first, second))]
    flips = np.concatenate([(each[:, 0] != each[:, 1]).mean(axis=(1, 2)) for each in labels])
    return FlipRate(
        value=float(flips.mean()),
        interval=bootstrap_interval(flips, generator, bounds=(0.0, 1.0)),
        per_row=pd.Series(flips, index=points.units.index, name="flip"),
        first=None if first is None else dict(first),
        second=dict(second),
        model_based=scm.model_based,
    )


def _predictor_and_points(
    model: Any, scm: Any, rows: Any, settings: tuple[Any, Any], generator: Generator, inputs: Any, method: Any, n: Any
) -> tuple[Predictor, Points]:
    """Check that two settings set the same nodes; return who is asked, and about which rows with n draws each."""
    for setting in settings:
        if not isinstance(setting, Mapping):
            raise InputTypeError(f"A setting must map nodes to values, got {setting!r}; pass for example {{'A': 1}}.")
    first, second = map(list, settings)
    if set(first) != set(second):
        raise InputError(f"Both settings must set the same nodes, got {first} and {second}; set all in both.")
    names = checked_protected(scm, tuple(first))
    table, ignored = table_of(scm, rows)
    predictor = Predictor.of(model, list(table.columns), inputs, method, ignored)
    return predictor, Points.of(scm, rows, names, predictor.inputs, generator, n_draws=n)


def setting_text(setting: Mapping[str, Any], digits: int = 4) -> str:
    """Write a setting, numbers with so many digits."""
    return ", ".join(f"{node} = {written(value, digits)}" for node, value in setting.items())


@dataclass(frozen=True, eq=False)
class PairedEffects:
    """The answer of `paired_effects`.

    Attributes
    ----------
    table : DataFrame
        One row per model, pair of values and output: ``model``, ``variable``, ``first``, ``second``, how many rows
        show either value (``n_first``, ``n_second``), ``output``, and with ``_low`` and ``_high`` for their 95 %
        intervals: ``effect``, the mean of Ŷ*_second − Ŷ*_first; ``moved``, the share of rows moved by more than
        ``moved_by``; ``flips`` and ``flips_at_equal_rate``, the share of rows whose decision differs, NaN where
        nothing is decided.
    thresholds, n_points, model_based
        By model, for those that decide; the rows that were imagined under each value; whether the causal model was
        estimated.

    Examples
    --------
    >>> from ciplearn import datasets, paired_effects
    >>> world = datasets.applicants()
    >>> pairs = paired_effects(lambda frame: frame["training"], world, world.sample(300, random_state=0), ["sex"])
    >>> pairs.largest()["second"]
    'sex = m'
    """

    table: pd.DataFrame
    moved_by: float
    thresholds: dict[str, Thresholds]
    n_points: int
    model_based: bool

    def largest(self, model: str | None = None) -> pd.Series:
        """Return the row of the largest mean effect, of all models or of one."""
        table = self.table if model is None else self.table[self.table["model"] == model]
        if table.empty:
            names = ", ".join(self.table["model"].unique())
            raise InputError(f"There is no model named {model!r}; name one of {names}.")
        largest: pd.Series = table.loc[table["effect"].abs().idxmax()]
        return largest

    @property
    def headline(self) -> str:
        """Name the largest paired effect of each model; however few rows show a value, it is not averaged away."""
        models, parts = list(self.table["model"].unique()), []
        for name in models:
            row = self.largest(name)
            flips = "" if np.isnan(row["flips"]) else f", and {100 * row['flips']:.3g} % of decisions flip"
            parts.append(
                f"{f'{name}: ' if len(models) > 1 else ''}the largest effect is that of going from {row['first']} to "
                f"{row['second']}, which moves {row['output']} by {row['effect']:.3g} on average "
                f"({row['effect_low']:.3g} to {row['effect_high']:.3g}){flips}"
            )
        return f"{whose(self.model_based)}: {'; '.join(parts)}."

    def __str__(self) -> str:
        return f"{self.headline}\n{self.table.to_string(index=False)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data; what is unknown is None."""
        return fields_as_data(self, "table", headline=self.headline, pairs=self.table)


def paired_effects(
    model: Any,
    scm: StructuralCausalModel,
    rows: pd.DataFrame | Units,
    protected: Names,
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    crossings: bool = True,
    threshold: float | None = None,
    rate: float | None = None,
    moved_by: float | None = None,
    n_points: int = 1000,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_draws: int | None = None,
    random_state: RandomState = 0,
) -> PairedEffects:
    """Compare every pair of values of each protected variable, and of each crossing of two, row by row.

    Parameters
    ----------
    model
        A model, or a mapping of names to models that are asked about the same rows.
    scm, rows, inputs, method, n_draws, threshold, rate, random_state
        See `variance_of_counterfactuals`.
    protected : name or list of names
        Each is changed alone; two that cross are changed together.
    values : mapping from name to values, optional
        Which values to compare. Default: all labels that occur; of numbers all where they are few, else the 10 %,
        50 % and 90 % quantiles. Crossings of many labels are many pairs: name those that matter.
    crossings : bool
        Whether pairs that differ in two protected variables at once are compared too.
    moved_by : float, optional
        A row counts as moved if its prediction changes by more than this: 0.05 for probabilities, else a tenth of the
        standard deviation of the first model's predictions.
    n_points : int
        Rows that are imagined under every value.

    Examples
    --------
    >>> from ciplearn import datasets, paired_effects
    >>> world = datasets.applicants()
    >>> people = world.sample(300, random_state=0)
    >>> pairs = paired_effects(lambda frame: frame["training"], world, people, protected=["sex"])
    >>> pairs.table[["first", "second", "effect"]].round(6).values.tolist()
    [['sex = f', 'sex = m', 2.0]]
    """
    names = checked_protected(scm, protected)
    n_points = whole(n_points, "n_points", minimum=2)
    table, ignored = table_of(scm, rows, names)
    predictors = Predictor.several(model, list(table.columns), inputs, method, ignored)
    named = mapping_of(values, "values")
    levels = {name: compared_values(table, scm, name, named) for name in names}
    if all(len(each) < 2 for each in levels.values()):
        raise InputError(f"{as_list(names)} takes one value in these rows, and a pair needs two; pass values=.")
    read = {column for predictor in predictors.values() for column in predictor.inputs}
    seed = as_seed(random_state)
    compared_rows: list[dict[str, Any]] = []
    for family, settings, pairs in pairs_of(levels, crossings=flag(crossings, "crossings")):
        # The same seed: every family is about the same rows.
        generator = np.random.default_rng(seed)
        points = Points.of(scm, rows, family, read, generator, n_points=n_points, n_draws=n_draws)
        if not compared_rows:
            factual = {name: each.numbers(each.in_blocks(points.as_they_are())) for name, each in predictors.items()}
            thresholds = thresholds_of(predictors, factual, threshold, rate)
            name, first = next(iter(predictors.items()))
            if moved_by is not None:
                moved = non_negative(moved_by, "moved_by")
            elif first.method == "predict_proba":
                moved = _MOVED_PROBABILITY
            else:
                moved = _MOVED_DEVIATIONS * float(factual[name].std(axis=0).mean())
        compared = points.compared(predictors, settings, pairs, thresholds, moved)
        # The first draw of a row speaks for the others: they share what was seen.
        counts = [_count(table.iloc[:: points.row_draws], scm, setting) for setting in settings]
        words = told_apart(settings, setting_text)
        for name, predictor in predictors.items():
            for (one, two), per_output in zip(pairs, compared[name], strict=True):
                for output, measures in zip(predictor.outputs(len(per_output)), per_output, strict=True):
                    row: dict[str, Any] = {"model": name, "variable": " × ".join(family)}
                    row |= {"first": words[one], "second": words[two], "n_first": counts[one], "n_second": counts[two]}
                    row["output"] = output
                    for measure in _MEASURES:
                        per_point, (value, low, high) = measures.get(measure), UNKNOWN_INTERVAL
                        if per_point is not None:
                            interval = bootstrap_interval(per_point, generator) if measure == "effect" else None
                            value, (low, high) = float(per_point.mean()), interval or share_interval(per_point)
                        row |= {measure: value, f"{measure}_low": low, f"{measure}_high": high}
                    compared_rows.append(row)
    return PairedEffects(pd.DataFrame(compared_rows), moved, thresholds, points.n, scm.model_based)


def _count(table: pd.DataFrame, scm: StructuralCausalModel, setting: Mapping[str, Any]) -> int:
    inside = np.ones(len(table), dtype=bool)
    for name, value in setting.items():
        for column, entry in zip(scm.columns([name]), np.atleast_1d(np.asarray(value, dtype=object)), strict=True):
            inside &= (table[column] == entry).to_numpy()
    return int(inside.sum())
