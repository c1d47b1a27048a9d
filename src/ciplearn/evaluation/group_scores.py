"""How a predictor does in each group, and in each crossing of two columns' groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import finite, flag, names_of
from ciplearn._core.columns import as_numbers, checked_table, holds_numbers, takes_few_values
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator
from ciplearn._core.wording import as_list, told_apart, written
from ciplearn.evaluation.predictors import LARGEST, PROBABILITY_THRESHOLD, Predictor
from ciplearn.evaluation.scores import (
    NORMAL_ERRORS,
    UNKNOWN_INTERVAL,
    Interval,
    auc,
    bootstrap_interval,
    share_interval,
)
from ciplearn.scm.kinds import Array

_BANDS = 4  # groups that a number with many values is cut into
MEASURES = ("positive_rate", "ratio", "auc", "fpr", "fnr", "calibration", "error")


@dataclass(frozen=True, eq=False)
class GroupScores:
    """The answer of `group_scores`.

    Attributes
    ----------
    table : DataFrame
        One row per model and group: ``model``, ``columns``, ``group``, ``n_rows``, and with ``_low`` and ``_high`` for
        their 95 % intervals: ``positive_rate``, the share of positive decisions; ``ratio``, that share over the highest
        of all groups of the same columns, whose own uncertainty counts but for the choice of the highest; ``auc``;
        ``fpr`` and ``fnr``, the share of positive decisions among negative outcomes and of negative decisions among
        positive ones; ``calibration``, mean prediction minus mean outcome; ``error``, the share of wrong decisions, or
        the mean squared error where nothing is decided. NaN where a group does not tell.
    threshold, positive
        Above which number a decision is positive, and the outcome that counts as positive; None where there is none.

    Examples
    --------
    >>> from ciplearn import datasets, group_scores
    >>> people = datasets.applicants().sample(300, random_state=0)
    >>> len(group_scores(lambda frame: 2 * frame["training"] + 15, people, "income", ["sex", "region"]).table)
    8
    """

    table: pd.DataFrame
    threshold: float | None
    positive: str | None

    def __str__(self) -> str:
        return self.table.to_string(index=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data; what is unknown is None."""
        return fields_as_data(self, "table", groups=self.table)


def group_scores(
    model: Any,
    rows: pd.DataFrame,
    outcome: str,
    groups: str | Sequence[str],
    *,
    crossings: bool = True,
    threshold: float | None = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    random_state: RandomState = 0,
) -> GroupScores:
    """Measure a predictor in every group of some columns, and in every crossing of two of them.

    Parameters
    ----------
    model, rows, outcome
        A model, or a mapping of names to models, and rows that it was not trained on, outcome included.
    groups : column or list of columns
        Each level is a group, however few rows it has; numbers with many values are cut into four bands of equal size;
        rows without a value are a group of their own.
    crossings : bool
    threshold : float, optional
        0.5 for the probability of the second of two classes; other numbers decide nothing by default.
    inputs, method, random_state
        See `variance_of_counterfactuals`.

    Examples
    --------
    >>> from ciplearn import datasets, group_scores
    >>> people = datasets.applicants().sample(300, random_state=0)
    >>> sorted(group_scores(lambda frame: 2 * frame["training"], people, "income", ["sex"]).table["group"])
    ['f', 'm']
    """
    names = names_of(groups, "groups")
    _check(rows, outcome, names)
    threshold = None if threshold is None else finite(threshold, "threshold")
    columns = [column for column in rows.columns if column != outcome]
    predictors = Predictor.several(model, columns, inputs, method)
    generator = as_generator(random_state)
    labels = {name: grouped(rows[name]) for name in names}
    families = [*((name,) for name in names), *(combinations(names, 2) if flag(crossings, "crossings") else ())]
    per_group: list[dict[str, Any]] = []
    for name, predictor in predictors.items():
        scores = predictor.numbers(predictor.in_blocks(rows))
        task = _Task.of(predictor, scores, rows[outcome], threshold)
        for family in families:
            cells = list(_cells(family, labels))
            decided = [task.decided(inside) for _, inside in cells]
            highest = 0 if task.threshold is None else int(np.argmax([each.mean() for each in decided]))
            for cell, (label, inside) in enumerate(cells):
                measured = task.measures(inside, None if cell == highest else decided[highest], generator)
                row = {"model": name, "columns": " × ".join(family), "group": label, "n_rows": int(inside.sum())}
                for measure, (value, low, high) in measured.items():
                    row |= {measure: value, f"{measure}_low": low, f"{measure}_high": high}
                per_group.append(row)
    return GroupScores(pd.DataFrame(per_group), task.threshold, task.positive)


@dataclass(frozen=True, eq=False)
class _Task:
    """Predictions and outcomes as numbers; decisions and true classes where something is decided."""

    scores: Array  # (n,)
    truth: Array  # (n,)
    threshold: float | None
    cut: float | None  # above it the outcome is positive
    positive: str | None

    @classmethod
    def of(cls, predictor: Predictor, scores: Array, outcome: pd.Series, threshold: float | None) -> _Task:
        if scores.shape[1] != 1:
            why = f"Group scores are about one number per row, but the predictor gives {scores.shape[1]}"
            raise InputError(f"{why}; pass a function that returns one of them.")
        scores, classes = scores[:, 0], getattr(predictor.model, "classes_", None)
        is_probability = predictor.method == "predict_proba"
        if is_probability and threshold is None:
            threshold = PROBABILITY_THRESHOLD
        if is_probability and classes is not None:
            if len(classes) < 2 or not outcome.isin(classes).any():
                raise InputError(
                    f"Group scores need a model of two classes that the outcome {outcome.name!r} holds, got "
                    f"{as_list(map(repr, classes))} and an outcome like {outcome.iloc[0]!r}; fit the model to such an "
                    "outcome."
                )
            return cls(scores, (outcome == classes[1]).to_numpy(dtype=np.float64), threshold, 0.5, str(classes[1]))
        if not holds_numbers(outcome) and outcome.dtype != bool:
            why = f"The outcome {outcome.name!r} holds labels, but the model has no classes"
            raise InputError(f"{why}; pass a model with predict_proba and classes_, or an outcome of numbers.")
        truth = outcome.to_numpy(dtype=np.float64)
        if is_probability:
            return cls(scores, truth, threshold, 0.5, "1")
        return cls(scores, truth, threshold, threshold, None if threshold is None else f"above {threshold:g}")

    def decided(self, inside: Array) -> Array:  # (rows inside,)
        """The decisions in a group, as zeros and ones."""
        return np.zeros(0) if self.threshold is None else (self.scores[inside] > self.threshold).astype(np.float64)

    def measures(self, inside: Array, highest: Array | None, generator: np.random.Generator) -> dict[str, Interval]:
        """Measure a group; ``highest`` holds the decisions in the group with most positive ones, if it is another."""
        scores, truth, decided = self.scores[inside], self.truth[inside], self.decided(inside)
        gap = scores - truth
        measured = dict.fromkeys(MEASURES, UNKNOWN_INTERVAL)
        measured["calibration"] = (float(gap.mean()), *bootstrap_interval(gap, generator))
        if self.threshold is None or self.cut is None:
            squares = np.square(gap)
            return measured | {"error": (float(squares.mean()), *bootstrap_interval(squares, generator, (0.0, np.inf)))}
        positive = truth > self.cut
        rates = {"positive_rate": decided, "fpr": decided[~positive], "fnr": 1 - decided[positive]}
        rates["error"] = ((decided > 0) != positive).astype(np.float64)
        measured |= {name: (float(each.mean()), *share_interval(each)) for name, each in rates.items() if each.size}
        return measured | {"ratio": _ratio(decided, highest), "auc": auc(scores, positive)}


def grouped(column: pd.Series) -> pd.Series:
    """Return a group's label for each row: levels as they are, numbers with many values in bands of equal size."""
    if holds_numbers(column) and not takes_few_values(column):
        column = as_numbers(column) if column.dtype == object else column
        # By ranks: edges between numbers that are next to nothing, or far off, fall together.
        bands = pd.qcut(column.rank(), _BANDS, duplicates="drop")
        ends = column.groupby(bands, observed=True).agg(["min", "max"])
        names = [f"{written(low)} to {written(high)}" for low, high in ends.itertuples(index=False)]
        if len(set(names)) < len(names):
            names = [f"{band + 1} of {len(names)}: {name}" for band, name in enumerate(names)]
        return bands.cat.rename_categories(names)
    levels = list(column.astype(object).value_counts().index)
    levels = sorted(levels) if all(isinstance(level, int | float | np.number) for level in levels) else levels
    called = dict(zip(levels, told_apart(levels), strict=True))
    # Labels that read alike, 1 and "1", are one group.
    return column.astype(object).map(called).astype(pd.CategoricalDtype(list(dict.fromkeys(called.values()))))


def _cells(family: Sequence[str], labels: Mapping[str, pd.Series]) -> Iterable[tuple[str, Array]]:
    """Iterate over the groups of a column, or of two columns crossed, that have rows."""
    cells: list[tuple[str, Array]] = [("", np.ones(len(labels[family[0]]), dtype=bool))]
    for name in family:
        column = labels[name]
        parts = [(str(level), (column == level).to_numpy()) for level in column.cat.categories]
        parts.append(("missing", column.isna().to_numpy()))
        cells = [
            (f"{one}, {label}" if one else label, before & inside)
            for one, before in cells
            for label, inside in parts
            if (before & inside).any()
        ]
    return cells


def _ratio(decided: Array, highest: Array | None) -> Interval:
    """A share over another: normal on the scale of logarithms, with half a case added to both for its error."""
    top = float((decided if highest is None else highest).mean())
    if top == 0 or highest is None:
        return UNKNOWN_INTERVAL if top == 0 else (1.0, 1.0, 1.0)
    value = float(decided.mean()) / top
    counts = [(each.size + 1, float(each.sum()) + 0.5) for each in (decided, highest)]
    here, there = (math.log(cases / n) for n, cases in counts)
    centre, half = here - there, NORMAL_ERRORS * math.sqrt(sum(1 / cases - 1 / n for n, cases in counts))
    return value, min(value, math.exp(centre - half)), max(value, math.exp(centre + half))


def _check(rows: Any, outcome: str, groups: Sequence[str]) -> None:
    if checked_table(rows, "rows").empty:
        raise InputError("rows has no rows; pass at least one.")
    for role, name in [("outcome", outcome), *(("groups", name) for name in groups)]:
        if not isinstance(name, str) or name not in rows.columns:
            columns = ", ".join(map(str, rows.columns))
            raise InputError(f"{role} names {name!r}, which is no column of the rows; name one of {columns}.")
    if not groups:
        raise InputError("No column to group by was named; pass groups=[...].")
    if rows[outcome].isna().any():
        bad = int(rows[outcome].isna().sum())
        raise InputError(f"The outcome {outcome!r} is missing in {bad} of {len(rows)} rows; drop those rows.")
    if holds_numbers(rows[outcome]) and (largest := np.abs(as_numbers(rows[outcome])).max()) > LARGEST:
        why = f"The outcome {outcome!r} is as large as {largest:.3g}, and errors have no variance that a computer holds"
        raise InputError(f"{why}; drop such rows, or count in a larger unit.")
