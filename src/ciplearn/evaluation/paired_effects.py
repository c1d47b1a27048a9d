"""Evidence about decisions: this value of a protected variable against that one, for the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import flag, mapping_of, non_negative, several, whole
from ciplearn._core.columns import takes_few_values
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_seed
from ciplearn._core.wording import as_list, told_apart
from ciplearn.causal.names import Names
from ciplearn.evaluation.counterfactual_rows import Points, checked_protected, table_of
from ciplearn.evaluation.effects import said
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import UNKNOWN_INTERVAL, Interval, bootstrap_interval, share_interval
from ciplearn.evaluation.vcf_result import Thresholds, thresholds_of, whose
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.kinds import Array

# Quantiles that stand for a number with many values.
_QUANTILES = (0.1, 0.5, 0.9)

# A prediction counts as moved by more than this: of a probability, or of the standard deviation of other predictions.
_MOVED_PROBABILITY = 0.05
_MOVED_DEVIATIONS = 0.1

_MEASURES = ("effect", "moved", "flips", "flips_at_equal_rate")


@dataclass(frozen=True, eq=False)
class PairedEffects:
    """What changing a protected variable from one value to another does to the same rows.

    Attributes
    ----------
    table : DataFrame
        One row per model, pair of values and output: ``model``, ``variable``, ``first``, ``second``, how many rows
        show either value (``n_first``, ``n_second``), ``output``, and with ``_low`` and ``_high`` for their 95 %
        intervals: ``effect``, the mean of Ŷ*_second − Ŷ*_first; ``moved``, the share of rows moved by more than
        ``moved_by``; ``flips`` and ``flips_at_equal_rate``, the share of rows whose decision differs, NaN where
        nothing is decided.
    moved_by : float
    thresholds : dict of name to Thresholds
        By model, for those that decide.
    n_points : int
        The rows that were imagined under each value.
    model_based : bool
        Whether the structural causal model was estimated.

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
            known = ", ".join(self.table["model"].unique())
            raise InputError(f"There is no model named {model!r}; name one of {known}.")
        largest: pd.Series = table.loc[table["effect"].abs().idxmax()]
        return largest

    @property
    def headline(self) -> str:
        """Name the largest paired effect of each model; however few rows show a value, it is not averaged away."""
        models = list(self.table["model"].unique())
        parts = [self._sentence(self.largest(name), name if len(models) > 1 else None) for name in models]
        return f"{whose(self.model_based)}: {'; '.join(parts)}."

    def _sentence(self, row: pd.Series, name: str | None) -> str:
        flips = "" if np.isnan(row["flips"]) else f", and {100 * row['flips']:.3g} % of decisions flip"
        return (
            f"{'' if name is None else f'{name}: '}the largest effect is that of going from {row['first']} to "
            f"{row['second']}, which moves {row['output']} by {row['effect']:.3g} on average "
            f"({row['effect_low']:.3g} to {row['effect_high']:.3g}){flips}"
        )

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
    scm, rows, inputs, method, n_draws, threshold, rate
        See `variance_of_counterfactuals`.
    protected : name or list of names
        Each is changed alone; two that cross are changed together.
    values : mapping from name to values, optional
        Which values to compare. Default: all labels that occur; of numbers all where they are few, else the 10 %,
        50 % and 90 % quantiles. Crossings of many labels are many pairs: name those that matter.
    crossings : bool
        Whether pairs in which two protected variables differ at once are compared too.
    moved_by : float, optional
        A row counts as moved if its prediction changes by more than this: 0.05 for probabilities, else a tenth of the
        standard deviation of the first model's predictions.
    n_points : int
        Rows that are imagined under every value.
    random_state : int, Generator, RandomState or None

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
    table, ignored = table_of(scm, rows)
    predictors = Predictor.several(model, list(table.columns), inputs, method, ignored)
    asked = mapping_of(values, "values")
    levels = {name: compared_values(table, scm, name, asked) for name in names}
    if all(len(found) < 2 for found in levels.values()):
        raise InputError(f"{as_list(names)} takes one value in these rows, and a pair needs two; pass values=.")
    read = {column for predictor in predictors.values() for column in predictor.inputs}
    seed = as_seed(random_state)
    compared_rows: list[dict[str, Any]] = []
    for family, settings, pairs in pairs_of(levels, crossings=flag(crossings, "crossings")):
        # The same seed: every family is about the same rows.
        generator = np.random.default_rng(seed)
        points = Points.of(scm, rows, family, read, generator, n_points=n_points, n_draws=n_draws)
        if not compared_rows:
            as_they_are = points.as_they_are()
            factual = {name: predictor(as_they_are) for name, predictor in predictors.items()}
            thresholds = thresholds_of(predictors, factual, threshold, rate)
            (name, first), *_ = predictors.items()
            usual = _MOVED_PROBABILITY
            if first.method != "predict_proba":
                usual = _MOVED_DEVIATIONS * float(factual[name].std(axis=0).mean())
            moved = usual if moved_by is None else non_negative(moved_by, "moved_by")
        compared = compare_settings(points, predictors, settings, pairs, thresholds, moved)
        # Of a row with several draws the first speaks: they share what was seen.
        counts = [_count(table.iloc[:: points.row_draws], scm, setting) for setting in settings]
        words = told_apart(settings, said)
        for name, predictor in predictors.items():
            for (one, two), per_output in zip(pairs, compared[name], strict=True):
                for output, measures in zip(predictor.outputs(len(per_output)), per_output, strict=True):
                    row: dict[str, Any] = {"model": name, "variable": " × ".join(family)}
                    row |= {"first": words[one], "second": words[two], "n_first": counts[one], "n_second": counts[two]}
                    row["output"] = output
                    for measure in _MEASURES:
                        value, low, high = _measured(measures.get(measure), measure, generator)
                        row |= {measure: value, f"{measure}_low": low, f"{measure}_high": high}
                    compared_rows.append(row)
    return PairedEffects(pd.DataFrame(compared_rows), moved, thresholds, points.n, scm.model_based)


def compare_settings(
    points: Points,
    predictors: Mapping[str, Predictor],
    settings: Sequence[Mapping[str, Any]],
    pairs: Sequence[tuple[int, int]],
    thresholds: Mapping[str, Thresholds],
    moved_by: float,
) -> dict[str, list[list[dict[str, Array]]]]:
    """Per model, pair and output: each measure of each point, averaged over the draws of its noise."""
    chunks = [
        {
            name: [_pair(each[:, i], each[:, j], thresholds.get(name), moved_by) for i, j in pairs]
            for name, each in answers.items()
        }
        for answers in points.answers_under(predictors, settings)
    ]
    compared: dict[str, list[list[dict[str, Array]]]] = {}
    for name in predictors:
        joined = [
            {measure: np.concatenate([part[measure] for part in same]) for measure in same[0]}
            for same in zip(*(chunk[name] for chunk in chunks), strict=True)
        ]
        compared[name] = [
            [{measure: each[:, output] for measure, each in pair.items()} for output in range(pair["effect"].shape[1])]
            for pair in joined
        ]
    return compared


def _pair(one: Array, two: Array, thresholds: Thresholds | None, moved_by: float) -> dict[str, Array]:  # (d, draws, q)
    measures = {"effect": (two - one).mean(axis=1), "moved": (np.abs(two - one) > moved_by).mean(axis=1)}
    if thresholds is not None:
        for key, t in (("flips", thresholds.given), ("flips_at_equal_rate", thresholds.equal_rate)):
            measures[key] = ((one > t) != (two > t)).mean(axis=1)
    return measures  # (d, q) each


def _measured(values: Array | None, measure: str, generator: np.random.Generator) -> Interval:
    if values is None:
        return UNKNOWN_INTERVAL
    ends = bootstrap_interval(values, generator) if measure == "effect" else share_interval(values)
    return (float(values.mean()), *ends)


def compared_values(
    table: pd.DataFrame, scm: StructuralCausalModel, name: str, values: Mapping[str, Sequence[Any]]
) -> list[Any]:
    """Return the values of a protected variable that are compared: labels all, of many numbers three quantiles."""
    columns = scm.columns([name])
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(f"rows lacks the protected column {missing[0]!r}; add it.")
    if name in values:
        listed = several(values[name], f"values of {name}")
        if len(listed) < 2:
            raise InputError(f"values names {len(listed)} value of {name}, and a pair needs two; name at least two.")
        return listed
    if len(columns) > 1:
        raise InputError(f"{name} is a vector, which has no levels or quantiles; name values={{{name!r}: [...]}}.")
    column = table[columns[0]].dropna()
    if takes_few_values(column):
        return sorted(column.unique().tolist(), key=lambda level: (str(type(level)), level))
    return list(dict.fromkeys(column.quantile(_QUANTILES, interpolation="nearest").tolist()))


def pairs_of(
    levels: Mapping[str, Sequence[Any]], *, crossings: bool = True
) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]], list[tuple[int, int]]]]:
    """Iterate over protected variables, alone and by twos: their settings, and which two differ in every variable."""
    for family in [*((name,) for name in levels), *(combinations(levels, 2) if crossings else ())]:
        settings = [dict(zip(family, each, strict=True)) for each in product(*(levels[name] for name in family))]
        differ = [
            (i, j)
            for (i, one), (j, two) in combinations(enumerate(settings), 2)
            if all(np.any(np.asarray(one[name] != two[name])) for name in family)
        ]
        yield family, settings, differ


def _count(table: pd.DataFrame, scm: StructuralCausalModel, setting: Mapping[str, Any]) -> int:
    inside = np.ones(len(table), dtype=bool)
    for name, value in setting.items():
        for column, entry in zip(scm.columns([name]), np.atleast_1d(np.asarray(value, dtype=object)), strict=True):
            inside &= (table[column] == entry).to_numpy()
    return int(inside.sum())
