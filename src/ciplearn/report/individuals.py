"""Individuals: what the predictor says about a row, and what it would have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.wording import written
from ciplearn.evaluation.counterfactual_rows import Points, as_known_beforehand
from ciplearn.evaluation.effects import said
from ciplearn.evaluation.paired_effects import compared_values
from ciplearn.evaluation.predictors import Predictor
from ciplearn.scm import StructuralCausalModel
from ciplearn.scm.kinds import Array


@dataclass(frozen=True)
class Answer:
    """The predictions for one row in one world, by model; the first is the world as it is."""

    world: str
    predictions: dict[str, float]


@dataclass(frozen=True)
class Individual:
    """A row, in words."""

    place: Any  # the row's label in the table
    values: dict[str, str]  # each column that matters, with its value in words
    answers: tuple[Answer, ...]  # as it is, and under each value of each protected variable

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready data."""
        answers = [{"world": answer.world, **answer.predictions} for answer in self.answers]
        return fields_as_data(self, "place", row=self.place, answers=answers)


def asked_about(
    predictors: Mapping[str, Predictor],
    scm: StructuralCausalModel,
    rows: pd.DataFrame,
    outcome: str,
    places: Sequence[Any],
    protected: Sequence[str],
    columns: Sequence[str],
    n_draws: int,
) -> list[Individual]:
    """Ask the models about some rows as they are, and under each value of each protected variable.

    Where several outputs are given, the first is shown. A vector of protected columns has no list of values, so its
    rows are shown as they are.
    """
    if not len(places):
        return []
    known = set(scm.columns(scm.graph.observed))
    table = as_known_beforehand(scm, rows[[column for column in rows.columns if column in known]], outcome)
    chosen = table.loc[list(places)]
    factual = {name: predictor(chosen)[:, 0] for name, predictor in predictors.items()}
    answers = [[_answer("as it is", factual, n)] for n in range(len(chosen))]
    read = {column for predictor in predictors.values() for column in predictor.inputs}
    for variable in protected:
        try:
            values = compared_values(table, scm, variable, {})
        except InputError:
            continue
        settings = [{variable: value} for value in values]
        points = Points.of(scm, chosen, [variable], read, np.random.default_rng(0), n_draws=n_draws)
        parts = list(points.answers_under(predictors, settings))
        means = {name: np.concatenate([part[name].mean(axis=2)[:, :, 0] for part in parts]) for name in predictors}
        for n, told in enumerate(answers):
            told += [_answer(said(setting), means, (n, place)) for place, setting in enumerate(settings)]
    words = [
        {str(column): in_words(rows[column], row[column]) for column in (*columns, outcome)}
        for _, row in rows.loc[list(places)].iterrows()
    ]
    return [Individual(*one) for one in zip(chosen.index, words, map(tuple, answers), strict=True)]


def _answer(world: str, predictions: Mapping[str, Array], at: Any) -> Answer:
    return Answer(world, {name: float(each[at]) for name, each in predictions.items()})


def in_words(column: pd.Series, value: Any) -> str:
    """Say a value; a number of many with where it stands among the rows."""
    if pd.isna(value):
        return "not known"
    if not holds_numbers(column):
        return str(value)
    at = float(value)
    number = written(at).replace("-", "−")
    if column.nunique() < 10:
        return number
    below = int(100 * (column.to_numpy(dtype=np.float64) < at).mean())
    return f"{number}, above {below} % of rows"
