"""How the predictor does in each group, and whom it would have treated otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn.evaluation import VarianceOfCounterfactuals
from ciplearn.evaluation.group_scores import grouped
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import predictive_scores

# Levels shown of one column; the others are one group.
_MOST_LEVELS = 6

# A score of fewer rows says little.
FEW_ROWS = 30


@dataclass(frozen=True)
class Group:
    """Rows that share a value.

    Attributes
    ----------
    column, label : str
    n_rows : int
    prediction, observed : float or None
        Mean prediction and mean outcome; for two classes the share of the second one. None for several classes.
    scores : dict
    vcf : float or None
        Mean over the points that lie in the group.
    """

    column: str
    label: str
    n_rows: int
    prediction: float | None
    observed: float | None
    scores: dict[str, float]
    vcf: float | None


@dataclass(frozen=True)
class Affected:
    """A row whose prediction depends much on the protected variables."""

    place: Any
    values: dict[str, str]
    vcf: float
    prediction: float | None
    lowest: float | None
    highest: float | None


def scores_by_group(
    predictor: Predictor, rows: pd.DataFrame, outcome: str, columns: Sequence[str], vcf: VarianceOfCounterfactuals
) -> list[Group]:
    """Measure each group of each column with the code that measures all rows."""
    said = predictor.in_blocks(rows)
    answers = predictor.numbers(said)
    truth = _as_number(predictor, rows[outcome])
    point_vcf = vcf.per_row["vcf"]
    found = []
    for column in columns:
        labels = grouped(rows[column], _MOST_LEVELS)
        for label in labels.cat.categories:
            inside = (labels == label).to_numpy()
            if not inside.any():
                continue
            here = point_vcf[point_vcf.index.isin(rows.index[inside])]
            found.append(
                Group(
                    column=str(column),
                    label=str(label),
                    n_rows=int(inside.sum()),
                    prediction=float(answers[inside, 0].mean()) if answers.shape[1] == 1 else None,
                    observed=None if truth is None else float(truth[inside].mean()),
                    scores=_scores(predictor, said[inside], rows.loc[inside, outcome]),
                    vcf=float(here.mean()) if len(here) else None,
                )
            )
    return found


def _scores(predictor: Predictor, said: np.ndarray[Any, Any], truth: pd.Series) -> dict[str, float]:
    # R² compares with the spread inside the group, which differs from group to group.
    return {name: value for name, value in predictive_scores(predictor, said, truth).items() if name != "r2"}


def most_affected(
    predictor: Predictor, rows: pd.DataFrame, columns: Sequence[str], vcf: VarianceOfCounterfactuals, n: int = 6
) -> list[Affected]:
    """Return the points with the largest variance of counterfactual predictions."""
    top = vcf.per_row.sort_values("vcf", ascending=False, kind="stable").head(n)
    single = "lowest" in top.columns
    predicted = predictor(rows.loc[top.index])
    return [
        Affected(
            place=index,
            values={str(column): _said(rows.loc[index, column]) for column in columns},
            vcf=float(point["vcf"]),
            prediction=float(predicted[number, 0]) if single else None,
            lowest=float(point["lowest"]) if single else None,
            highest=float(point["highest"]) if single else None,
        )
        for number, (index, point) in enumerate(top.iterrows())
    ]


def _said(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _as_number(predictor: Predictor, truth: pd.Series) -> np.ndarray[Any, Any] | None:
    classes = getattr(predictor.model, "classes_", None)
    if predictor.method == "predict_proba" and classes is not None:
        return (truth == classes[1]).to_numpy(dtype=float) if len(classes) == 2 else None
    return truth.to_numpy(dtype=float) if holds_numbers(truth) else None
